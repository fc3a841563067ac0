import contextlib
import json
from pathlib import Path

import pytest

from tensortriage.errors import StoreError
from tensortriage.runs.check_cache import CheckCache
from tensortriage.runs.commands.artifacts import BAD, GOOD, OTHER, Artifacts
from tensortriage.runs.commands.check import Checker, CheckSpec, ShownOutput, shell_words, verdict_word
from tensortriage.runs.commands.command_fingerprint import CheckIdentity, file_digests, named_files
from tensortriage.runs.commands.failure_rules import Rules


@pytest.fixture
def check(request):
    made = []

    def run(command, *, folder, iteration=0, **spec):
        told: list[str] = []
        checker = Checker(CheckSpec(words=("sh", "-c", command), **spec), tell=told.append)
        made.append(checker)
        return checker.check(iteration, folder=folder), told, checker

    yield run
    for checker in made:
        checker.close()


@pytest.mark.parametrize(
    ("shown", "code", "expected"),
    [
        (ShownOutput.FAILURES, 0, []),
        (ShownOutput.FAILURES, 1, ["hello"]),
        (ShownOutput.EVERYTHING, 0, ["hello"]),
        (ShownOutput.NOTHING, 1, []),
    ],
)
def test_whose_output_is_shown(check, tmp_path, shown, code, expected):
    assert check(f"echo hello; exit {code}", folder=tmp_path, shown=shown)[1] == expected


def test_the_reason_ends_with_the_last_words(check, tmp_path):
    ruling = check("echo first; echo ModuleNotFoundError: x; exit 1", folder=tmp_path)[0]
    assert ruling.reason == "exit code 1: ModuleNotFoundError: x"


def test_the_command_reads_its_iteration(check, tmp_path):
    ruling, told, _ = check(
        "cat info.json", folder=tmp_path, iteration=7, iteration_info=Path("info.json"), shown=ShownOutput.EVERYTHING
    )
    assert ruling.failed is False
    assert json.loads(told[0]) == {"iteration": 7}
    assert not (tmp_path / "info.json").exists()


def test_artifacts_are_sorted_and_never_replaced(tmp_path):
    artifacts = Artifacts((Path("model.onnx"), Path("missing.txt")), tmp_path / "sorted")
    for text in ("one", "two"):
        (tmp_path / "model.onnx").write_text(text)
        artifacts.sort(BAD, "N3_outputs", beside=tmp_path)
    found = sorted((tmp_path / "sorted" / "bad").iterdir())
    assert {path.read_text() for path in found} == {"one", "two"}
    assert all("_N3_outputs" in path.name and path.suffix == ".onnx" for path in found)


def test_artifacts_that_cannot_be_moved(tmp_path):
    (tmp_path / "model.onnx").write_text("x")
    (tmp_path / "sorted").write_text("a file")
    with pytest.raises(StoreError) as caught:
        Artifacts((Path("model.onnx"),), tmp_path / "sorted").sort(GOOD, "N0", beside=tmp_path)
    assert caught.value.slug == "artifact-not-moved"


def test_words_of_directories():
    words = [verdict_word(False), verdict_word(True), verdict_word(True, same=False), verdict_word(None)]
    assert words == [GOOD, BAD, OTHER, OTHER]


def test_one_quoted_text_is_for_the_shell():
    assert shell_words(["grep -q x | wc"]) == ("sh", "-c", "grep -q x | wc")
    assert shell_words(["./check.sh"]) == ("./check.sh",)
    assert shell_words(["python", "check me.py"]) == ("python", "check me.py")


def test_files_in_the_words_are_found(tmp_path):
    script, data = tmp_path / "check.py", tmp_path / "golden.npz"
    script.write_text("1")
    data.write_text("2")
    names = named_files(["sh", "-c", f"python {script} --data={data} > {tmp_path}/log.txt"])
    assert {str(script), str(data)} <= set(names)
    assert not any("log.txt" in name for name in names)


def test_a_changed_file_that_the_command_only_reads_is_another_command(tmp_path):
    script, log = tmp_path / "check.py", tmp_path / "log.txt"
    script.write_text("1")
    log.write_text("")
    words = ("sh", str(script), str(log))

    def identity(bound_to="x"):
        return CheckIdentity(bound_to, words, notes, written=[tmp_path / "ours"])

    with contextlib.closing(CheckCache(tmp_path / "checks.sqlite")) as notes:
        first = identity()
        log.write_text("one more run")
        settled = first.settle()
        log.write_text("and another")
        assert identity().digest == settled == first.settle()
        assert identity("y").digest != settled
        script.write_text("2")
        assert identity().digest != settled
    assert file_digests([str(tmp_path / "gone")]) == {str(tmp_path / "gone"): ""}


def test_other_rules_are_another_command():
    assert CheckSpec(words=("true",)).identity() != CheckSpec(words=("true",), rules=Rules(fail_codes=(3,))).identity()
