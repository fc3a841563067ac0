import onnx

import models
from tensortriage.model.model import Model
from tensortriage.values.spec import ValueSpec


def test_a_classifier_that_ends_in_maps_keeps_their_type(tmp_path):
    # What skl2onnx writes for a classifier: label, and a sequence of maps from label to probability.
    message = models.proto("""
        <ir_version: 10, opset_import: ["": 18, "ai.onnx.ml": 3]>
        g (float[N, 2] p) => (float[N, 2] q, float[1] maps) {
            q = Identity(p)
            [zip] maps = ai.onnx.ml.ZipMap <classlabels_int64s = [0, 1]> (q)
        }""")
    types = onnx.helper.make_sequence_type_proto(
        onnx.helper.make_map_type_proto(onnx.TensorProto.INT64, onnx.helper.make_tensor_type_proto(1, []))
    )
    message.graph.output[1].type.CopyFrom(types)
    model = Model.load(models.write(tmp_path / "m.onnx", message))
    assert model.outputs[1] == ValueSpec("maps", None, None)
    model.check()
    saved = onnx.load(model.clone().save(tmp_path / "saved.onnx"))
    assert saved.graph.output[1].type == types
    assert Model.load(tmp_path / "saved.onnx").fingerprint == model.fingerprint
