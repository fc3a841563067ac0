"""Whatever became of the files of a case, a command in it ends with an answer or an error with slug and cure."""

import pytest
from hypothesis import given

from hostile import mutated_files
from hostile.originals import model_files
from hostile.tally import SEEDS, fuzzed

pytestmark = pytest.mark.lengthy

DIAGNOSE = ["diagnose", "m.onnx", "--target", "emulate:precision=bf16", "--no-repro", "--case", "case", "--seed", "3"]
AGAIN = (
    ["report", "case"], ["report", "case", "--format", "html"], ["report", "case", "--format", "markdown"],
    ["report", "case", "--format", "json"], ["report", "case", "--format", "model-explorer", "-o", "o.json"], DIAGNOSE,
    ["report", "case", "--json"], ["inspect", "data", "case/runs"],
    ["debug", "reduce", "m.onnx", *DIAGNOSE[2:4], *DIAGNOSE[5:], "-o", "o.onnx"],
)  # fmt: skip


@pytest.fixture(scope="module")
def case_files(tmp_path_factory):
    """Return the files of a case by path, as a diagnosis leaves them."""
    from running_cli import triage

    folder = tmp_path_factory.mktemp("case")
    (folder / "m.onnx").write_bytes(model_files()["mlp"])
    done = triage(*DIAGNOSE, cwd=folder)
    assert done.returncode in (0, 1, 4), done.stderr
    paths = [path for path in (folder / "case").rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@given(seed=SEEDS)
@fuzzed(25)
def test_a_command_in_a_mutated_case(commands, tally, case_files, seed):
    name, files = mutated_files.case(case_files, seed)
    words = AGAIN[seed % len(AGAIN)]
    ended = commands.run(words, {**files, "m.onnx": model_files()["mlp"]})
    tally.add("case", words[0], ended.slug)
    faults = ended.faults(("case", "o.json", "o.onnx"))
    if faults:
        tally.find(seed, f"{name}: triage {' '.join(words)}: {faults}\n{ended.err[-3000:]}")
