"""Programs that convert models: what is told when they fail."""

import sys

import pytest

from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.converters import Library, convert, imported, telling


def python(text):
    return [sys.executable, "-S", "-c", text]


def refusal(tmp_path, text, said=lambda lines: lines):
    with pytest.raises(AdapterError) as found:
        convert("the converter", python(text), tmp_path, [tmp_path / "made"], said)
    assert found.value.kind is AdapterFailure.BUILD
    return found.value.message


def test_a_converter_that_makes_its_file_in_its_folder_says_nothing(tmp_path):
    convert("the converter", python("open('made', 'w'); print('done')"), tmp_path, [tmp_path / "made"], telling)


def test_without_its_file_it_has_failed_whatever_it_says(tmp_path):
    assert refusal(tmp_path, "print('  10%\\r 20%'); print('\\033[31mred\\033[0m')") == (
        "the converter failed: 10% | 20% | red"
    )
    assert refusal(tmp_path, "") == "the converter failed: it gave no reason"


def test_an_exit_code_is_a_failure_with_the_file_and_a_signal_is_named(tmp_path):
    (tmp_path / "made").touch()
    assert refusal(tmp_path, "import sys; sys.exit('Error: no')") == "the converter failed: Error: no"
    assert refusal(tmp_path, "import os; os.abort()").startswith("the converter failed: signal 6: ")


def test_the_lines_that_tell_are_those_with_a_word_or_all():
    assert telling(["a", "An ERROR", "b"]) == ["An ERROR"]
    assert telling(["a", "b"]) == ["a", "b"]
    assert telling(["a", "b is unsupported"], ("unsupported",)) == ["b is unsupported"]


def test_a_module_that_is_absent_is_told_with_what_installs_it():
    assert imported(Library("mnn", "Math", slug="x", modules=("math", "os.path")))[0].pi > 3
    with pytest.raises(AdapterError) as found:
        imported(Library("mnn", "MNN", slug="mnn-missing", modules=("math", "no_such_module")))
    assert (found.value.slug, found.value.cure) == ("mnn-missing", "triage engines install mnn")
    assert found.value.message == "MNN cannot be imported: No module named 'no_such_module'"
