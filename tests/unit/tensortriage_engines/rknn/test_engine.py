"""Options of RKNN, and what its adapter does without the toolkit."""

import sys

import pytest

from tensortriage.errors import EngineMissing, UsageError
from tensortriage_engines.rknn.engine import RknnEngine
from tensortriage_engines.rknn.worker.toolkit import _names_of_torch

ENGINE = RknnEngine()


def test_the_ladder_begins_without_the_optimizer_in_the_same_format():
    assert [words for words, _ in ENGINE.ladder({})] == ["optimize=0", "as given"]
    assert ENGINE.ladder({"precision": "int8"})[0][1] == {"precision": "int8", "optimize": "0"}
    assert [words for words, _ in ENGINE.ladder({"file": "m.model"})] == ["as given"]


def test_the_first_feed_sets_the_ranges_of_int8_unless_a_file_has_them():
    assert not ENGINE.calibrates({})
    assert ENGINE.calibrates({"precision": "int8"})
    assert ENGINE.calibrates({"file": "m.model"})
    assert ENGINE.precision({"file": "m.model"}) == "int8"


def test_a_given_file_runs_before_its_integers_where_it_is_asked_for_fp16():
    file = {"file": "m.model", "target": "rk3588"}
    assert ENGINE.precision({**file, "precision": "fp16"}) == "fp16"
    assert not ENGINE.calibrates({**file, "precision": "fp16"})
    assert ENGINE.unrounded(file) == {**file, "precision": "fp16"}
    assert ENGINE.unrounded({**file, "precision": "int8"}) == {**file, "precision": "fp16"}
    assert ENGINE.unrounded({**file, "precision": "fp16"}) is None
    assert ENGINE.unrounded({"precision": "int8"}) is None


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ({"precision": "fp32"}, "engine-option-value"),
        ({"target": "rk1"}, "engine-option-value"),
        ({"file": "/no/such.model"}, "engine-option-file"),
        ({"board": "rk3588"}, "engine-option-unknown"),
    ],
)
def test_wrong_options_are_refused(options, slug):
    with pytest.raises(UsageError) as caught:
        ENGINE.check(options)
    assert caught.value.slug == slug


def test_the_files_of_a_quantization_belong_together(tmp_path):
    (tmp_path / "m.model").touch()
    (tmp_path / "m.data").touch()
    with pytest.raises(UsageError, match=r"m\.quantization\.cfg does not exist"):
        ENGINE.check({"file": str(tmp_path / "m.model")})


def test_without_its_environment_it_is_missing_and_says_how_to_get_it():
    with pytest.raises(EngineMissing) as caught:
        ENGINE.check({})
    assert caught.value.cure == "triage engines install rknn"


@pytest.mark.skipif("torch" in sys.modules, reason="PyTorch is here")
def test_where_pytorch_is_missing_some_of_its_names_are_there_for_a_while():
    with _names_of_torch():
        import torch

        if hasattr(torch, "__version__"):
            pytest.skip("PyTorch is installed")
        assert torch.no_grad()(len) is len
        assert isinstance(torch.nn.Module, type)
        assert isinstance(torch.Tensor, type)
        assert not hasattr(torch, "tensor")
    assert "torch" not in sys.modules
