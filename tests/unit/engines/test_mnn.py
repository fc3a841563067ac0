"""Options of MNN, and what an engine with a converter says without its environment."""

import pytest

from tensortriage.engines.mnn import MnnEngine
from tensortriage.errors import EngineMissing, UsageError

ENGINE = MnnEngine()


def test_the_ladder_begins_with_an_exact_gelu():
    assert [words for words, _ in ENGINE.ladder({})] == ["precision=fp32,gelu=exact", "as given"]
    rungs = ENGINE.ladder({"precision": "int8"})
    assert [words for words, _ in rungs] == ["precision=fp32,gelu=exact", "precision=fp32", "as given"]
    assert rungs[-1][1] == {"precision": "int8"}


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ({"gelu": "tanh"}, "engine-option-value"),
        ({"precision": "bf16"}, "engine-option-value"),
        ({"file": "/no/such.mnn"}, "engine-option-file"),
        ({"quantize": "1"}, "engine-option-unknown"),
    ],
)
def test_wrong_options_are_refused(options, slug):
    with pytest.raises(UsageError) as caught:
        ENGINE.check(options)
    assert caught.value.slug == slug


def test_without_its_environment_it_is_missing_and_says_how_to_get_it():
    assert ENGINE.availability().cure == "triage engines install mnn"
    with pytest.raises(EngineMissing) as caught:
        ENGINE.check({})
    assert caught.value.cure == "triage engines install mnn"
