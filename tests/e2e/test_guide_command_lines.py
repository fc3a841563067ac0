"""Every command line that docs/guide.md quotes in its tables runs as it stands, and so do those of NVIDIA's guide.

The blocks of the page are run by the test of the docs. In its tables, capital words stand for files and names, and
``...`` for what the reader adds; TensorRT, which is not here, is replaced by a second ONNX Runtime.
"""

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from tensortriage.cli import main

REPOSITORY = Path(__file__).resolve().parents[2]
TYPED = re.compile(r"`((?:polygraphy|triage) [^`]*)`")
JUDGE = f"{sys.executable} judge.py"
TUNED = "--target script:varying.py,node=/block2/conv1/Conv,kind=scale,tactics=2,draws=count"
"""An engine that chooses tactics, as TensorRT does."""
STANDS_FOR = {
    "MODEL": "m.onnx", "OUT": "out.onnx", "PIECE": "piece.onnx", "FILE": "feed.npz",
    "N": "2", "NAME...": "/block2/Relu_output_0", "ENGINE": "onnxruntime", "CASE": "case",
    "NODE...": "/block1/conv1/Conv",
    "T:auto:auto": "/block2/Relu_output_0:auto:auto", "T:auto": "/block2/conv1/Conv_output_0:auto",
    "x:[...]": "image:[1,1,8,8]", "--trt": "--onnxrt",
}  # fmt: skip
WHOLE = {
    "triage run": "triage run m.onnx --target onnxruntime",
    "triage debug build": "triage debug build m.onnx --target onnxruntime --until 2",
    "triage debug reduce": f"triage debug reduce m.onnx -o out.onnx --check {JUDGE}",
    "triage debug precision": "triage debug precision m.onnx --target emulate:precision=fp16 -o out.onnx",
    "triage diagnose": "triage diagnose m.onnx --target onnxruntime --inputs feed.npz --case case",
    "triage check lint": "triage check lint m.onnx",
    "triage inspect model": "triage inspect model m.onnx",
    "triage surgeon sanitize": "triage surgeon sanitize m.onnx -o out.onnx",
    "triage surgeon extract": "triage surgeon extract m.onnx --outputs /block2/Relu_output_0:auto -o out.onnx",
    "triage inspect diff-tactics": "triage inspect diff-tactics --dir polygraphy_artifacts",
    "triage run --onnx-outputs mark all": "triage run m.onnx --target onnxruntime --onnx-outputs mark all",
    "triage run --onnx-outputs NAME...": "triage run m.onnx --target onnxruntime --onnx-outputs /block2/Relu_output_0",
    "triage convert --precision fp16 --keep-nodes NODE...":
        "triage convert m.onnx --precision fp16 --keep-nodes /block1/conv1/Conv -o out.onnx",
}  # fmt: skip
"""Names of commands in running text, and what the reader types then."""
REPLAY = """{"replay": {"conv1": {"implementation": 7, "tactic": TACTIC, "inputs": [], "outputs": [],
"polygraphy_class": "Algorithm"}}, "polygraphy_class": "TacticReplayData"}"""
SEEDS = [
    # the page on reducing and its example; every option that the guide names
    f"polygraphy debug reduce m.onnx -o out.onnx --mode bisect --fail-regex FAILED --check {JUDGE}",
    f"polygraphy debug reduce m.onnx -o out.onnx --mode linear --no-reduce-inputs --check {JUDGE}",
    f"polygraphy debug reduce m.onnx -o out.onnx --min-good g.onnx --artifacts polygraphy_debug.onnx --check {JUDGE}",
    f"polygraphy debug reduce m.onnx -o out.onnx --iter-artifact polygraphy_debug.onnx --check {JUDGE}",
    f"polygraphy debug reduce m.onnx -o out.onnx --model-input-shapes image:[1,1,8,8] --check {JUDGE}",
    f"polygraphy debug reduce m.onnx -o out.onnx --force-fallback-shape-inference --check {JUDGE}",
    f"polygraphy debug reduce m.onnx -o out.onnx --fail-code 1 --check {JUDGE}",
    f"polygraphy debug build m.onnx --until 2 --save-tactics t.json --artifacts t.json {TUNED} --check true",
    "polygraphy surgeon sanitize m.onnx --override-input-shapes image:[1,1,8,8] -o out.onnx",
    "polygraphy surgeon sanitize m.onnx --fold-constants -o out.onnx",
    "polygraphy run m.onnx --trt --onnxrt --trt-outputs mark all --onnx-outputs mark all",
    "polygraphy run m.onnx --trt --onnxrt --trt-outputs mark all --onnx-outputs mark all --atol 1e-3 --rtol 1e-3",
    "polygraphy run m.onnx --trt --validate --trt-outputs mark all",
    "polygraphy run m.onnx --onnxrt --onnx-outputs mark all --mark-debug '*' --save-outputs golden.json",
    "polygraphy run m.onnx --trt --onnxrt --load-inputs feed.npz",
    "polygraphy run m.onnx --trt --onnxrt --trt-outputs /block2/Relu_output_0 --onnx-outputs mark all",
    "polygraphy run m.onnx --onnxrt --onnx-outputs mark all --onnx-exclude-outputs logits --trt-outputs mark all",
    "polygraphy inspect model m.onnx --show layers",
]


ENDS = {
    "polygraphy debug build MODEL --until N --save-tactics replay.json --artifacts replay.json --check ...":
        "engine-missing",  # TensorRT is its default engine
    "polygraphy debug reduce MODEL -o OUT --mode bisect --check polygraphy run polygraphy_debug.onnx --trt --onnxrt":
        "premise-not-failing",  # the model is healthy
}  # fmt: skip
"""Lines that say in an error what this machine, or a healthy model, lacks; all others end with 0."""


def quoted():
    """Return what the tables of the page say to type."""
    tables = [line for line in (REPOSITORY / "docs/guide.md").read_text().splitlines() if line.startswith("|")]
    return list(dict.fromkeys(found for line in tables for found in TYPED.findall(line)))


def typed(line):
    """Return the words of a line in which capital words stand for files."""
    line = WHOLE.get(line, line)
    words = [STANDS_FOR.get(word, word) for word in shlex.split(line)]
    if "..." in words:  # what the reader adds: a command that judges, or the tolerance that it has
        place = words.index("...")
        added = shlex.split(JUDGE) if words[place - 1] == "--check" else ["m.onnx", "--onnxrt", "--onnxrt"]
        words[place : place + 1] = added
    if "--check" in words and words[words.index("--check") + 1] == "polygraphy":
        place = words.index("--check") + 1
        words[place : place + 1] = [sys.executable, "-m", "tensortriage", "polygraphy"]
    return words


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Go to a folder with ``m.onnx``, ``piece.onnx``, ``out.onnx``, ``feed.npz``, an engine with tactics."""
    monkeypatch.chdir(tmp_path)
    for name in ("m.onnx", "piece.onnx", "out.onnx"):
        (tmp_path / name).write_bytes((REPOSITORY / "examples/digits_cnn.onnx").read_bytes())
    np.savez("feed.npz", image=np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 1, 8, 8))
    (tmp_path / "varying.py").write_text("from tensortriage_testing import VaryingEngine as Engine\n")
    (tmp_path / "judge.py").write_text(
        "import pathlib, sys\n"
        "if b'block2' in pathlib.Path('polygraphy_debug.onnx').read_bytes():\n    sys.exit(print('FAILED') or 1)\n"
    )
    return tmp_path


def ended(words):
    """Run a command line in this process and return its exit code."""
    with pytest.raises(SystemExit) as caught:
        main(words[1:] if words[0] == "triage" else words)
    return caught.value.code


def test_the_tables_of_the_guide_quote_command_lines():
    assert sum(line.startswith("polygraphy ") for line in quoted()) >= 8
    assert not set(ENDS) - set(quoted())


@pytest.mark.lengthy
@pytest.mark.slow
@pytest.mark.parametrize("line", quoted())
def test_what_the_guide_quotes_runs(line, folder, capsys):
    if "diff-tactics" in line:
        for word, tactic in (("good", 1), ("bad", 2)):
            place = folder / "polygraphy_artifacts" / word / "replay.json"
            place.parent.mkdir(parents=True)
            place.write_text(REPLAY.replace("TACTIC", str(tactic)))
    if "report" in line:
        assert ended(typed("triage diagnose")) == 0
    capsys.readouterr()
    code, printed = ended(typed(line)), capsys.readouterr()
    if line == "triage inspect diff-tactics":
        assert code == 1, "it found one, and says so"
    elif line in ENDS:
        assert f"error[{ENDS[line]}]" in printed.err
    else:
        assert code == 0, printed.err


@pytest.mark.lengthy
@pytest.mark.slow
@pytest.mark.parametrize("line", SEEDS)
def test_what_nvidias_guide_says_runs(line, folder, capsys):
    assert ended(typed(line)) == 0, capsys.readouterr().err
