import pytest

from tensortriage.model.ir.display_names import first_line, quoted


def test_ordinary_names_are_quoted_as_they_are():
    assert quoted("/encoder/layer.3/MatMul") == "'/encoder/layer.3/MatMul'"


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31m", "\u202e", "\0", b"\xff"])
def test_nothing_that_a_terminal_obeys_is_left(name):
    assert quoted(name).isprintable()


def test_a_long_name_keeps_both_ends():
    text = quoted("a" + "x" * 100_000 + "b")
    assert len(text) < 200
    assert text.startswith("'ax")
    assert "xb'" in text
    assert "100002 characters" in text


def test_the_first_cause_speaks():
    error = RuntimeError("wrapper")
    error.__cause__ = ValueError("\n\n  the reason \x1b\nmore")
    assert first_line(error) == "the reason ?"


def test_an_exception_without_words_gives_its_type():
    assert first_line(KeyError()) == "KeyError"
