"""``triage diagnose`` with several kinds of data and bounded means: random against real, budgets, Ctrl-C, precision."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from engine_scripts import FAULTY
from running_cli import EXAMPLES, triage, verdict_in
from tensortriage_testing import encoder, save_model

pytestmark = pytest.mark.slow

CNN = EXAMPLES / "digits_cnn.onnx"
REAL = EXAMPLES / "digits.npz"
CLIPS = """
import numpy as np
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine

class Session:
    def __init__(self, session): self.session = session
    def run(self, feed):
        return self.session.run({name: LIMIT(array) for name, array in feed.items()})

class Engine:
    def compile(self, model, options):
        return Session(OnnxRuntimeEngine().compile(model, {}))
"""


def steps_of(case):
    return {step["question"]: step["answer"] for step in verdict_in(case)["steps"]}


# --- random against real ----------------------------------------------------------------------------------------------


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("limit", "how"),
    [
        ("lambda x: np.clip(x, 0, 1)", "is off by"),
        ("lambda x: x if x.max() <= 1 else x / 0", "fails to run"),
        ("lambda x: np.where((x < 0) | (x > 1), np.nan, x).astype(x.dtype)", "NaN or Inf"),
    ],
    ids=["clips", "raises", "nan"],
)
def test_what_fails_on_random_data_only_is_input_sensitive(tmp_path, limit, how):
    # digits lie between 0 and 1, random data are normal numbers: the engine is right on the former alone
    text = CLIPS.replace("LIMIT", f"({limit})") + "\nnp.seterr(all='raise')\n"
    (tmp_path / "clips.py").write_text(text)
    done = triage("diagnose", CNN, "--inputs", REAL, "--target", "script:clips.py", cwd=tmp_path)
    found = verdict_in(tmp_path / "triage-case")
    assert (found["verdict"], found["inputs"], done.returncode) == ("input-sensitive", "real", 0), done.stdout
    assert how in found["summary"]
    assert "--inputs" not in found["next"][0]


@pytest.mark.lengthy
def test_random_data_are_left_alone_when_asked_to(tmp_path):
    (tmp_path / "clips.py").write_text(CLIPS.replace("LIMIT", "(lambda x: np.clip(x, 0, 1))"))
    words = ["--inputs", REAL, "--target", "script:clips.py", "--no-random-data"]
    assert triage("diagnose", CNN, *words, cwd=tmp_path).returncode == 0
    assert verdict_in(tmp_path / "triage-case")["verdict"] == "match"
    assert "is the target right on made-up data as well?" not in steps_of(tmp_path / "triage-case")


@pytest.mark.lengthy
def test_a_healthy_engine_passes_on_both(tmp_path):
    triage("diagnose", CNN, "--inputs", REAL, "--target", "onnxruntime", cwd=tmp_path)
    assert verdict_in(tmp_path / "triage-case")["verdict"] == "match"
    assert (
        steps_of(tmp_path / "triage-case")["is the target right on made-up data as well?"]
        == "yes: within the difference between healthy engines"
    )


@pytest.mark.lengthy
def test_what_fails_on_real_data_is_not_excused_by_random_data(diagnosed):
    done = diagnosed("scaled-conv")
    assert done.verdict["verdict"] == "local-fault"
    assert "is the target right on made-up data as well?" not in steps_of(done.folder / "case")


# --- several samples --------------------------------------------------------------------------------------------------


@pytest.mark.lengthy
def test_the_worst_of_several_samples_is_looked_into_and_the_share_is_bounded(tmp_path):
    image = np.load(REAL)["image"]
    np.savez(tmp_path / "many.npz", image=np.stack([image * 0.1, image, image * 0.2, image * 0.3]))
    (tmp_path / "clips.py").write_text(CLIPS.replace("LIMIT", "(lambda x: np.minimum(x, np.float32(0.5)))"))
    words = ["--inputs", "many.npz", "--target", "script:clips.py", "--no-repro"]
    triage("diagnose", CNN, *words, cwd=tmp_path)
    found = verdict_in(tmp_path / "triage-case")
    step = next(
        step for step in found["steps"] if step["question"] == "does the output differ by more than fp32 engines do?"
    )
    assert step["evidence"]["failing_feeds"] == 1
    assert step["evidence"]["feed"].endswith("[1]")
    # Clopper and Pearson's interval for 1 of 4 at 95 %, from the table in their paper's form: 0.6 % to 80.6 %.
    low, high = step["evidence"]["failing_share_95"]
    assert low == pytest.approx(0.00631, abs=1e-4)
    assert high == pytest.approx(0.80588, abs=1e-4)


# --- bounded means ----------------------------------------------------------------------------------------------------


@pytest.mark.lengthy
def test_a_spent_budget_is_inconclusive_says_what_was_not_asked_and_goes_on_later(tmp_path):
    words = ["diagnose", EXAMPLES / "digits_vit_overflow.onnx", "--inputs", EXAMPLES / "digits_vit_overflow.npz"]
    words += ["--target", "emulate:precision=fp16", "--no-repro"]
    done = triage(*words, "--budget", "0.05", cwd=tmp_path)
    found = verdict_in(tmp_path / "triage-case")
    assert (found["verdict"], done.returncode) == ("inconclusive", 4), done.stdout + done.stderr
    assert "budget of 0.05 s" in found["summary"]
    assert (
        "is any op wrong in isolation?"
        in steps_of(tmp_path / "triage-case")["which questions were skipped for lack of time?"]
    )
    assert triage(*words, "--budget", "300", cwd=tmp_path).returncode == 1
    assert verdict_in(tmp_path / "triage-case")["verdict"] == "range-overflow"


@pytest.mark.lengthy
def test_a_run_that_outlasts_the_budget_is_no_hang_of_the_engine(tmp_path):
    (tmp_path / "slow.py").write_text(CLIPS.replace("LIMIT", "(lambda x: __import__('time').sleep(60))"))
    began = time.monotonic()
    done = triage("diagnose", CNN, "--inputs", REAL, "--target", "script:slow.py", "--budget", "8", cwd=tmp_path)
    assert time.monotonic() - began < 50
    assert (verdict_in(tmp_path / "triage-case")["verdict"], done.returncode) == ("inconclusive", 4), done.stdout


def test_ctrl_c_keeps_what_was_found_and_the_rerun_goes_on(tmp_path):
    words = ["diagnose", str(CNN), "--inputs", str(REAL), "--case", "case", "--target"]
    (tmp_path / "slow.py").write_text(CLIPS.replace("LIMIT", "(lambda x: (__import__('time').sleep(WAIT), x)[1])"))
    slow = (tmp_path / "slow.py").read_text()
    (tmp_path / "slow.py").write_text(slow.replace("WAIT", "100"))
    process = subprocess.Popen(
        [sys.executable, "-c", "from tensortriage.cli import main; main()", *words, "script:slow.py"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if "finite, not constant" in line:  # the reference has run, the target is at work
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=60)
    assert process.returncode == 130, text
    assert "kept" in text
    done = triage(*words, "onnxruntime", "--json", cwd=tmp_path)
    verdict = json.loads(done.stdout)["verdict"]
    assert verdict["verdict"] == "match"
    sound = next(step for step in verdict["steps"] if step["question"] == "is the reference sound?")
    assert sound["checks"] == 0  # the reference was not run again


def test_a_precision_that_cannot_be_had_is_told_before_anything_runs(tmp_path):
    words = ["diagnose", CNN, "--inputs", REAL, "--target", "openvino:precision=bf16,device=NPU"]
    done = triage(*words, cwd=tmp_path)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "sound" not in done.stdout
    assert not (tmp_path / "triage-case").exists()


def test_an_unknown_option_is_told_before_anything_runs(tmp_path):
    done = triage("diagnose", CNN, "--inputs", REAL, "--target", "emulate:precision=fp17", cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert not (tmp_path / "triage-case").exists()


# --- shapes -----------------------------------------------------------------------------------------------------------

SHAPES = """
import os
import numpy as np
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine

class Session:
    def __init__(self, session): self.session = session
    def run(self, feed):
        found = self.session.run(feed)
        size = next((len(array) for name, array in feed.items() if name == 'input_ids'), 0)
        FAULT
        return found

class Engine:
    def compile(self, model, options):
        return Session(OnnxRuntimeEngine().compile(model, {}))
"""
WRONG_AT_8 = "found = {n: a * np.float32(1 + 0.1 * (len(a) == 8)) for n, a in found.items()}"


@pytest.fixture(scope="module")
def dynamic(tmp_path_factory):
    path = tmp_path_factory.mktemp("dynamic") / "encoder.onnx"
    return save_model(encoder(layers=1, width=16, heads=2, tokens=8, batch="N", vocabulary=50), path)


def sweep(tmp_path, model, fault, *words):
    (tmp_path / "shapes.py").write_text(SHAPES.replace("FAULT", fault))
    return triage("diagnose", model, "--target", "script:shapes.py", "--no-repro", *words, cwd=tmp_path)


@pytest.mark.lengthy
def test_a_sweep_says_at_which_shapes_it_fails(tmp_path, dynamic):
    done = sweep(tmp_path, dynamic, WRONG_AT_8, "--sweep", "N=1,2,8")
    found = verdict_in(tmp_path / "triage-case")
    assert done.returncode == 1, done.stdout + done.stderr
    rows = {row["shape"]: row for row in found["shapes"]}
    assert {shape: row["outcome"] for shape, row in rows.items()} == {"N=1": "match", "N=2": "match", "N=8": "wrong"}
    assert rows["N=8"]["error"] == pytest.approx(0.1, rel=1e-3)  # the factor that was planted
    assert "fails at N=8" in found["summary"]
    assert "passes at N=1, N=2" in found["summary"]
    assert "N=8" in done.stdout.partition("Shapes")[2]  # the table
    for form in ("markdown", "html", "json"):
        assert "N=8" in triage("report", "triage-case", "-f", form, "-o", f"x.{form}", cwd=tmp_path).stderr + (
            tmp_path / f"x.{form}"
        ).read_text(encoding="utf-8")


@pytest.mark.lengthy
def test_a_shape_that_crashes_does_not_end_the_sweep_and_is_not_asked_again(tmp_path, dynamic):
    fault = "size == 2 and os.abort()"
    done = sweep(tmp_path, dynamic, fault, "--sweep", "batch=1,2,3")
    found = verdict_in(tmp_path / "triage-case")
    assert (found["verdict"], done.returncode) == ("engine-crash", 1), done.stdout + done.stderr
    outcomes = {row["shape"]: row["outcome"] for row in found["shapes"]}
    assert outcomes == {"batch=1": "match", "batch=2": "engine-crash", "batch=3": "match"}
    sweep(tmp_path, dynamic, fault, "--sweep", "batch=1,2,3")
    again = verdict_in(tmp_path / "triage-case")
    assert again["shapes"] == found["shapes"]
    step = next(step for step in again["steps"] if step["question"] == "at which shapes does it fail?")
    assert step["checks"] == 0


@pytest.mark.lengthy
def test_a_healthy_engine_passes_at_every_shape(tmp_path, dynamic):
    done = triage("diagnose", dynamic, "--target", "onnxruntime", "--sweep", "batch=1,3", cwd=tmp_path)
    found = verdict_in(tmp_path / "triage-case")
    assert (found["verdict"], done.returncode) == ("match", 0), done.stdout
    assert [row["outcome"] for row in found["shapes"]] == ["match", "match"]


@pytest.mark.parametrize(
    ("word", "slug", "cure"),
    [("width=1,2", "sweep-unknown", "N"), ("N", "sweep-malformed", "batch=1,2,8"), ("N=0", "sweep-malformed", "")],
)
def test_a_sweep_of_nothing_is_an_error(tmp_path, dynamic, word, slug, cure):
    done = triage("diagnose", dynamic, "--target", "onnxruntime", "--sweep", word, cwd=tmp_path)
    assert done.returncode == 2
    assert f"error[{slug}]" in done.stderr
    assert cure in done.stderr.partition("cure:")[2]


# --- what differs from run to run -------------------------------------------------------------------------------------


@pytest.mark.lengthy
@pytest.mark.parametrize("kind", ["warm-up", "stale", "nondeterministic"])
def test_an_answer_that_depends_on_the_run_before_is_no_fault_of_numbers(tmp_path, kind):
    # warm-up is wrong in the first run of a session, stale after other data: neither differs between plain repeats
    image = np.load(REAL)["image"]
    np.savez(tmp_path / "two.npz", image=np.stack([image, image[::-1] * 0.5]))
    (tmp_path / "faulty.py").write_text(FAULTY)
    target = f"script:faulty.py,kind={kind},node=/block2/conv1/Conv"
    done = triage("diagnose", CNN, "--inputs", "two.npz", "--target", target, "--no-repro", cwd=tmp_path)
    found = verdict_in(tmp_path / "triage-case")
    assert (found["verdict"], done.returncode) == ("nondeterministic-run", 1), done.stdout
    assert found["culprits"][0]["node"] == "/block2/conv1/Conv"
