import models
from tensortriage.model.shape_inference import inferred_specs as module
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec


def test_shape_inference_is_asked_once_for_a_model(monkeypatch):
    asked = []
    infer = module.infer_shapes
    monkeypatch.setattr(module, "infer_shapes", lambda proto: asked.append(len(proto)) or infer(proto))
    model, other = models.mlp(), models.mlp()
    assert value_specs(model) == value_specs(model)
    assert value_specs(model, {"h": ValueSpec("h", DType.FLOAT16, (7, 8))})["h"].dtype is DType.FLOAT16
    assert len(asked) == 1
    value_specs(other)
    assert len(asked) == 2
