"""What Polygraphy offers and this program does not is refused by name, by the command that would have it."""

import pytest

from tensortriage_polygraphy.not_offered import refusal, refused, refused_command


@pytest.mark.parametrize(
    ("command", "option", "words"),
    [
        ("run", "--save-pb", "TensorFlow"),
        ("run", "--opset", "TensorFlow"),
        ("inspect model", "--convert-to", "inspect plan"),
        ("inspect model", "--tensor-formats", "inspect plan"),  # elsewhere a matter of the network
        ("debug build", "--tensor-formats", "triage surgeon"),
        ("debug build", "--trt-outputs", "triage convert"),
        ("debug precision", "--trt-min-shapes", "spec"),
        ("check lint", "--fp-to-fp16", "convert first"),
        ("run", "--gen-script", "tensortriage.api"),
        ("debug reduce", "--verbosity", "--log LEVEL"),
    ],
)
def test_an_option_is_refused_with_what_to_do_instead(command, option, words):
    error = refusal(command, option)
    assert error.slug == "option-not-offered"
    assert f"{option} of Polygraphy is not offered by {command}: " in error.message
    assert words in f"{error.message} {error.cure}"


@pytest.mark.parametrize(
    ("command", "option"),
    [("run", "--no-such-option"), ("convert", "--opset"), ("run", "--input-shapes"), ("", "")],
)
def test_what_polygraphy_does_not_have_there_either_is_none_of_it(command, option):
    assert refusal(command, option) is None


@pytest.mark.parametrize("word", ["multi-device", "shard-hints", "autotune"])
def test_a_command_is_refused_with_what_to_do_instead(word):
    error = refused_command(word)
    assert (error.slug, word in error.message, "Polygraphy" in error.cure) == ("option-not-offered", True, True)


def test_any_other_word_is_no_command_of_polygraphys():
    assert refused_command("run") is None


def test_the_word_of_the_shell_before_a_command_changes_nothing():
    assert refused("polygraphy run", "--tf").message == refused("run", "--tf").message
    assert refused("polygraphy", "template").slug == refused("", "template").slug == "option-not-offered"
    assert refused("polygraphy run", "--no-such-option") is None
