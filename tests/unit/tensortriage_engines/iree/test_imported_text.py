"""The text of IREE's importer: which values it has, and how further ones are returned."""

import pytest

from tensortriage_engines.iree.worker.imported_text import ImportedModel
from tensortriage_worker.adapter import AdapterError
from tensortriage_worker.declared import check_whole

TEXT = """module {
  func.func @main(%arg0: !torch.vtensor<[2,3],f32>) -> !torch.vtensor<[2,3],f32> attributes {torch.onnx_meta.x = 1} {
    %0 = torch.operator "onnx.Constant"() {torch.onnx.value = dense_resource<w> : tensor<3xf32>} : () -> !torch.vtensor<[3],f32> 
    %none = torch.constant.none
    %1 = torch.operator "onnx.Add"(%arg0, %0) : (!torch.vtensor<[2,3],f32>, !torch.vtensor<[3],f32>) -> !torch.vtensor<[2,3],f32> 
    %2:2 = torch.operator "onnx.Split"(%1) {torch.onnx.axis = 0 : si64} : (!torch.vtensor<[2,3],f32>) -> (!torch.vtensor<[1,3],f32>, !torch.vtensor<[1,3],f32>) 
    %3 = torch.operator "onnx.Relu"(%1) : (!torch.vtensor<[2,3],f32>) -> !torch.vtensor<[2,3],f32> 
    return %3 : !torch.vtensor<[2,3],f32>
  }
}
"""  # noqa: E501, W291 - as the importer writes it
NODES = [["Add", ["sum"]], ["Split", ["a", "b"]], ["Relu", ["y"]]]


def test_operators_are_the_nodes_in_their_order():
    found = ImportedModel(TEXT).values(NODES)
    assert {name: value.name for name, value in found.items()} == {"sum": "%1", "y": "%3"}
    assert ImportedModel(TEXT).values(NODES[1:]) == {}


def test_further_values_are_returned_behind_the_outputs():
    model = ImportedModel(TEXT)
    text = model.marked([model.values(NODES)["sum"]])
    assert "-> (!torch.vtensor<[2,3],f32>, !torch.vtensor<[2,3],f32>) attributes" in text
    assert "return %3, %1 : !torch.vtensor<[2,3],f32>, !torch.vtensor<[2,3],f32>\n" in text


def test_another_models_file_is_refused():
    model = ImportedModel(TEXT)
    held = {"inputs": model.inputs, "outputs": model.outputs}
    check_whole({"inputs": [{"shape": [2, 3]}], "outputs": [{"shape": None}]}, **held)
    with pytest.raises(AdapterError, match="the file has outputs of the shapes"):
        check_whole({"inputs": [{"shape": [2, 3]}], "outputs": [{"shape": [2, 4]}]}, **held)
    with pytest.raises(AdapterError, match="is not what iree-import-onnx writes"):
        ImportedModel("module {}")
