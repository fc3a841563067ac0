"""The inspector's JSON in the spellings of several releases; samples are (parts of) real ones, their source named."""

import json
from pathlib import Path

import pytest

from tensortriage_engines.tensorrt.worker.inspector import RANGE, regions, split

CONVOLUTION = {
    "Name": "node_of_gpu_0/res4_0_branch2a_1 + node_of_gpu_0/res4_0_branch2a_bn_1 + node_of_gpu_0/res4_0_branch2a_bn_2",
    "LayerType": "CaskConvolution",
    "Inputs": [{"Name": "gpu_0/res3_3_branch2c_bn_3", "Dimensions": [16, 512, 28, 28],
                "Format/Datatype": "Thirty-two wide channel vectorized row major Int8 format."}],
    "Outputs": [{"Name": "gpu_0/res4_0_branch2a_bn_2", "Dimensions": [16, 256, 28, 28],
                 "Format/Datatype": "Thirty-two wide channel vectorized row major Int8 format."}],
    "ParameterType": "Convolution", "Weights": {"Type": "Int8", "Count": 131072},
    "TacticName": "sm80_xmma_fprop_implicit_gemm_interleaved_i8i8_i8i32_f32_nchw_vect_c_32kcrs_vect_c_32",
    "TacticValue": "0x11bde0e1d9f2f35d",
}  # fmt: skip
"""TensorRT developer guide, release 8, section on the engine inspector (shortened)."""

REFORMAT = {
    "Name": "Reformatting CopyNode for Input Tensor 0 to conv1 + relu1", "LayerType": "Reformat",
    "Inputs": [{"Name": "x", "Location": "Device", "Dimensions": [1, 3, 224, 224],
                "Format/Datatype": "Row major linear FP16 format"}],
    "Outputs": [{"Name": "Reformatted Input Tensor 0 to conv1 + relu1", "Location": "Device",
                 "Dimensions": [1, 3, 224, 224],
                 "Format/Datatype": "Channel major FP16 format where channel % 4 == 0"}],
    "ParameterType": "Reformat", "Origin": "REFORMAT", "TacticValue": "0x00000000000003ea", "StreamId": 0,
    "Metadata": "",
}  # fmt: skip
"""pytorch/TensorRT, page on engine information: TensorRT 8.6 (names of the layers shortened)."""

KGEN = {
    "Name": "__myl_CastCastAddMaxCast_fused", "LayerType": "kgen",
    "Inputs": [{"Name": "left", "Format/Datatype": "Half"}, {"Name": "right", "Format/Datatype": "Half"}],
    "Outputs": [{"Name": "/block/relu/Relu_output_0", "Format/Datatype": "Half"}],
    "Metadata": "[ONNX Layer: /block/Add]\x1f[ONNX Layer: /block/relu/Relu]\x1e[ONNX Layer: /block/Add]",
}  # fmt: skip
"""A Myelin kernel of TensorRT 10; separators of the metadata as NVIDIA's samples describe them."""

GEMM_11 = {
    "Name": "gemm_myl0_3", "LayerType": "gemm", "Inputs": [{"Name": "a", "Format": "Linear", "DataType": "BF16"}],
    "Outputs": [{"Name": "b", "Format": "Linear", "DataType": "Float"}], "TacticName": "sm90_xmma_gemm_bf16",
    "Metadata": "[ONNX Layer: fc]",
}  # fmt: skip
"""The keys that TensorRT 11 splits, as in its migration guide and in its open-source tools' lists of keys."""


RECORDED = Path(__file__).parents[4] / "data" / "tensorrt"
"""``inspector-8.5.3-*.json``: what TensorRT 8.5.3 on an H200 told of three nets (keys that are not read left out)."""


def test_a_recorded_convolutional_net():
    found = regions((RECORDED / "inspector-8.5.3-cnn.json").read_text())
    assert len(found) == 19
    by_name = {region["name"]: region for region in found}
    first = by_name["/stem/Conv + /stem/Relu"]
    assert (first["nodes"], first["precision"]) == (["/stem/Conv", "/stem/Relu"], "float16")
    assert first["implementation"].startswith("sm80_xmma_fprop_implicit_gemm_indexed_wo_smem_f16f16")
    copies = [region for region in found if region["name"].startswith("Reformatting CopyNode")]
    assert copies
    assert not any(region["nodes"] for region in copies)


def test_a_recorded_transformer_is_one_region_of_unknown_precision():
    (region,) = regions((RECORDED / "inspector-8.5.3-transformer.json").read_text())
    assert region["nodes"] == ["embeddings.word.weight", RANGE, "/pooler/Tanh"]
    assert (region["kind"], region["precision"]) == ("Myelin", "")
    assert region["outputs"] == ["last_hidden_state", "pooler_output"]


def test_a_recorded_quantized_net():
    found = regions((RECORDED / "inspector-8.5.3-quantized.json").read_text())
    assert [region["precision"] for region in found] == ["float32", "int8", "int8", "int8"]
    assert found[0]["nodes"] == ["/layer.0/QuantizeLinear"]
    assert found[1]["nodes"] == ["/layer.0.weight", "/layer.0/Conv", "/layer.0/Relu"]


def told(*layers, **more):
    return regions(json.dumps({"Layers": list(layers), **more}))


def test_a_fused_convolution():
    (region,) = told(CONVOLUTION)
    assert region["nodes"] == CONVOLUTION["Name"].split(" + ")
    assert (region["kind"], region["precision"]) == ("Convolution", "int8")
    assert region["implementation"].startswith("sm80_xmma_fprop_implicit_gemm")
    assert (region["inputs"], region["outputs"]) == (["gpu_0/res3_3_branch2c_bn_3"], ["gpu_0/res4_0_branch2a_bn_2"])


def test_a_reformat_belongs_to_no_node():
    (region,) = told(REFORMAT)
    assert region["nodes"] == []
    assert (region["precision"], region["implementation"]) == ("float16", "0x00000000000003ea")


def test_metadata_tell_the_nodes():
    (region,) = told(KGEN)
    assert region["nodes"] == ["/block/Add", "/block/relu/Relu"]
    assert region["precision"] == "float16"


def test_the_keys_of_release_11():
    (region,) = told(GEMM_11, **{"I/O Tensors": [{"Name": "x", "IOMode": "Input"}, {"Name": "y", "IOMode": "Output"}]})
    assert (region["nodes"], region["precision"]) == (["fc"], "bfloat16")


def test_layer_names_only():
    """With ProfilingVerbosity.LAYER_NAMES_ONLY every layer is a string."""
    (region,) = told("conv1 + PWN(PWN(sigmoid), mul)")
    assert region["nodes"] == ["conv1", "sigmoid", "mul"]
    assert (region["kind"], region["precision"], region["outputs"]) == ("", "", [])


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("{ForeignNode[first.../decoder/last]}", ["first", RANGE, "/decoder/last"]),
        # NVIDIA/TensorRT issue 3748, release 9.3
        (
            "ForeignNode[/conv/act/Constant_3_output_0 + ONNXTRT_Broadcast_101.../op_list.4/Add]",
            ["/conv/act/Constant_3_output_0", "ONNXTRT_Broadcast_101", RANGE, "/op_list.4/Add"],
        ),
        ("{ForeignNode[only]}", ["only"]),
        ("mm1 || mm2", ["mm1", "mm2"]),
        ("PWN(/a/Sigmoid, /a/Mul)", ["/a/Sigmoid", "/a/Mul"]),
        ("Conv_616 + PWN(PWN(Sigmoid_617), Mul_618)", ["Conv_616", "Sigmoid_617", "Mul_618"]),
        ("(Unnamed Layer* 4) [Shuffle] + add", ["(Unnamed Layer* 4) [Shuffle]", "add"]),
        ("a + a", ["a"]),
    ],
)
def test_names_of_fused_layers(name, nodes):
    (region,) = told(name)
    assert region["nodes"] == nodes


def test_a_plus_inside_of_brackets_does_not_split():
    assert split("PWN(a + b) + c") == ["PWN(a + b)", "c"]


def test_no_json_is_an_error():
    with pytest.raises(ValueError):
        regions("nothing")
