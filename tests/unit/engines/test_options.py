import pytest

from tensortriage.engines.options import read_options
from tensortriage.errors import UsageError
from tensortriage.values.dtype import Precision

KNOWN = {"threads": "number of threads", "mode": "a or b", "config.KEY": "any config entry", "precision": "format"}


def test_typed_values():
    options = read_options({"threads": " 3 ", "mode": "B", "config.a.b": "x=1", "precision": "f16"}, KNOWN)
    assert options.integer("threads", 0) == 3
    assert options.choice("mode", {"a": 10, "b": 20}, 0) == 20
    assert options.family("config") == {"a.b": "x=1"}
    assert options.precision("precision", (Precision.FP16, Precision.BF16)) is Precision.FP16
    assert "mode" in options
    assert options.text("mode") == "B"


def test_defaults_when_nothing_is_given():
    options = read_options({}, KNOWN)
    assert options.integer("threads", 7) == 7
    assert options.choice("mode", {"a": 10}, 5) == 5
    assert options.boolean("mode", default=True) is True
    assert options.precision("precision", [Precision.FP32], Precision.FP32) is Precision.FP32
    assert options.family("config") == {}
    assert options.words("mode") == ()
    assert options.text("mode", "z") == "z"
    assert "mode" not in options


@pytest.mark.parametrize(("word", "value"), [("true", True), ("1", True), ("ON", True), ("no", False), ("Off", False)])
def test_booleans(word, value):
    assert read_options({"mode": word}, KNOWN).boolean("mode", default=not value) is value


def test_lists_are_joined_with_plus():
    assert read_options({"mode": "a+ b++c"}, KNOWN).words("mode") == ("a", "b", "c")


@pytest.mark.parametrize("word", ["thread", "Threads", "config", "config.", ""])
def test_unknown_words_are_refused(word):
    with pytest.raises(UsageError) as caught:
        read_options({word: "1"}, KNOWN)
    assert caught.value.slug == "engine-option-unknown"


def test_unknown_word_names_the_nearest():
    with pytest.raises(UsageError, match="'thread' is not an option") as caught:
        read_options({"thread": "1"}, KNOWN)
    assert "did you mean 'threads'" in caught.value.cure


def test_engine_without_options_says_so():
    with pytest.raises(UsageError) as caught:
        read_options({"x": "1"}, {})
    assert caught.value.cure == "this engine has no options"


@pytest.mark.parametrize("value", ["-1", "1.5", "two", "", "²", "1" * 30, "0"])
def test_bad_integers(value):
    with pytest.raises(UsageError, match="threads="):
        read_options({"threads": value}, KNOWN).integer("threads", 1, minimum=1)


def test_bad_choice_boolean_precision():
    options = read_options({"mode": "c", "precision": "int8"}, KNOWN)
    with pytest.raises(UsageError) as caught:
        options.choice("mode", {"a": 1, "b": 2}, 1)
    assert caught.value.cure == "give one of a, b"
    with pytest.raises(UsageError, match="mode=c"):
        options.boolean("mode", default=False)
    with pytest.raises(UsageError) as caught:
        options.precision("precision", (Precision.FP16,))
    assert caught.value.cure == "give one of fp16"


def test_required_precision():
    with pytest.raises(UsageError) as caught:
        read_options({}, KNOWN).precision("precision", (Precision.FP16, Precision.BF16))
    assert caught.value.slug == "engine-option-required"
    assert "fp16, bf16" in caught.value.cure
