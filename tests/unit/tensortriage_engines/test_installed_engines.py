"""What engines of environments of their own say alike: of wrong options, and where the environment is missing."""

import pytest

from tensortriage.engines.registry import create
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineMissing, UsageError

OPTIONS = {
    "iree": {"optimize": "o1", "flag.iree-llvmcpu-target-cpu": "generic"},
    "litert": {},
    "mnn": {},
    "ncnn": {},
    "tvm": {"left_out": "FuseOps"},
}
WRONG = [
    ("iree", {"optimize": "O9"}, "engine-option-value"),
    ("iree", {"precision": "int8"}, "engine-option-value"),
    ("litert", {"delegate": "gpu"}, "engine-option-value"),
    ("litert", {"precision": "bf16"}, "engine-option-value"),
    ("litert", {"file": "/no/such.tflite"}, "engine-option-file"),
    ("litert", {"quantize": "1"}, "engine-option-unknown"),
    ("mnn", {"gelu": "tanh"}, "engine-option-value"),
    ("mnn", {"precision": "bf16"}, "engine-option-value"),
    ("mnn", {"file": "/no/such.mnn"}, "engine-option-file"),
    ("mnn", {"quantize": "1"}, "engine-option-unknown"),
    ("ncnn", {"kernels": "slow"}, "engine-option-value"),
    ("ncnn", {"precision": "int8"}, "engine-option-value"),
    ("ncnn", {"size": "1"}, "engine-option-unknown"),
    ("tvm", {"optimize": "9"}, "engine-option-value"),
    ("tvm", {"passes": "FuseOps"}, "engine-option-unknown"),
    ("tvm", {"file": "m.py"}, "engine-option-unknown"),
]


@pytest.mark.parametrize(("name", "options", "slug"), WRONG)
def test_wrong_options_are_refused(name, options, slug):
    with pytest.raises(UsageError) as caught:
        create(EngineSpec(name)).check(options)
    assert caught.value.slug == slug


@pytest.mark.parametrize("name", OPTIONS)
def test_without_its_environment_it_is_missing_and_says_how_to_get_it(name):
    engine = create(EngineSpec(name))
    assert engine.availability().cure == f"triage engines install {name}"
    with pytest.raises(EngineMissing) as caught:
        engine.check(OPTIONS[name])
    assert caught.value.cure == f"triage engines install {name}"
