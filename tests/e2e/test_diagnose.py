"""``triage diagnose`` end to end, in processes of their own: the bundled examples, failing engines, resuming."""

import json
import shlex
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from machine import bf16_target
from running_cli import EXAMPLES, triage, verdict_in

pytestmark = pytest.mark.slow

BF16 = bf16_target()

ENGINE = """
import os, sys, time
import numpy as np

class Session:
    def __init__(self, session): self.session = session
    def run(self, feed):
        {run}
        return self.session.run(feed)

class Engine:
    def compile(self, model, options):
        {compile}
        from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
        return Session(OnnxRuntimeEngine().compile(model, {{}}))
"""


def script(tmp_path, *, run="pass", compile="pass"):
    path = tmp_path / "engine.py"
    path.write_text(ENGINE.format(run=run, compile=compile))
    return f"script:{path.name}"


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("words", "verdict", "culprit", "code"),
    [
        (["digits_vit.onnx", "--inputs", "digits.npz", "--target", "onnxruntime"], "match", None, 0),
        (["digits_vit.onnx", "--inputs", "digits.npz", "--target", BF16], "rounding", None, 0),
        (
            ["digits_vit_mask.onnx", "--inputs", "digits_vit_mask.npz", "--target", "emulate:precision=fp16"],
            "range-overflow",
            "/attention_bias/Mul",
            1,
        ),
        (
            [
                "digits_cnn.onnx",
                "--inputs",
                "digits.npz",
                "--target",
                "onnxruntime",
                "--target-model",
                "digits_cnn_broken.onnx",
            ],
            "model-changed",
            "/block2/conv1/Conv",
            1,
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else str(value),
)
def test_the_examples_get_their_true_verdicts(tmp_path, words, verdict, culprit, code):
    words = [str(EXAMPLES / word) if word.endswith((".onnx", ".npz")) else word for word in words]
    done = triage("diagnose", *words, "--case", tmp_path / "case", cwd=tmp_path)
    found = verdict_in(tmp_path / "case")
    assert found["verdict"] == verdict
    assert done.returncode == code, done.stdout + done.stderr
    assert [c["node"] for c in found["culprits"][:1]] == ([culprit] if culprit else [])
    assert found["inputs"] == "real"
    assert (tmp_path / "case" / "report.html").stat().st_size > 10_000
    assert not (tmp_path / "case" / "tmp").exists()


@pytest.mark.lengthy
def test_the_example_that_overflows_gets_its_true_verdict(diagnosed):
    done = diagnosed("overflow")
    found = done.verdict
    assert (found["verdict"], found["inputs"], done.returncode) == ("range-overflow", "real", 1), done.stdout
    assert found["culprits"][0]["node"] == "/norm_pre/Pow"
    assert (done.folder / "case" / "report.html").stat().st_size > 10_000
    assert not (done.folder / "case" / "tmp").exists()


@pytest.mark.lengthy
def test_a_format_that_leaves_nothing_is_said_to_be_too_coarse(tmp_path):
    words = [EXAMPLES / f"digits_vit_positions.{kind}" for kind in ("onnx", "npz")]
    done = triage("diagnose", words[0], "--inputs", words[1], "--target", BF16, cwd=tmp_path)
    assert (done.returncode, verdict_in(tmp_path / "triage-case")["verdict"]) == (1, "rounding")
    summary = verdict_in(tmp_path / "triage-case")["summary"]
    assert "bf16 is too coarse for this model: Cast '/positions/Cast' holds whole numbers up to 1,015" in summary
    assert "triage debug precision" in verdict_in(tmp_path / "triage-case")["next"][0]


@pytest.mark.lengthy
def test_the_suggested_command_works_and_its_promise_holds(diagnosed):
    found = diagnosed("overflow")
    done = triage(*shlex.split(found.verdict["next"][0])[1:], cwd=found.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout


def planted(tmp_path, words, **engine):
    model = shutil.copy(EXAMPLES / "digits_cnn.onnx", tmp_path)
    return triage(
        "diagnose",
        model,
        "--inputs",
        EXAMPLES / "digits.npz",
        "--case",
        "case",
        "--target",
        script(tmp_path, **engine),
        "--no-repro",
        *words,
        cwd=tmp_path,
    )


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("engine", "words", "verdict"),
    [
        ({"run": "os.abort()"}, [], "engine-crash"),
        ({"compile": "os.abort()"}, [], "engine-crash"),
        ({"run": "time.sleep(600)"}, ["--timeout", "3"], "engine-hang"),
        ({"run": "x = [np.ones(1 << 24) for _ in range(1000)]"}, ["--memory-limit", "600M"], "inconclusive"),
        ({"run": "raise ValueError('no such kernel')"}, [], "engine-crash"),
        ({"compile": "raise ValueError('op 17 is not supported')"}, [], "build-failed"),
    ],
    ids=["abort", "abort-in-build", "hang", "memory", "exception", "build"],
)
def test_an_engine_that_fails_is_a_verdict_and_leaves_the_case_intact(tmp_path, engine, words, verdict):
    done = planted(tmp_path, words, **engine)
    found = verdict_in(tmp_path / "case")
    code = 4 if verdict == "inconclusive" else 1
    assert (found["verdict"], done.returncode) == (verdict, code), done.stdout + done.stderr
    if verdict == "inconclusive":
        assert "the memory limit was reached" in found["summary"]
        assert "600 MB of --memory-limit" in found["summary"]
        assert [shlex.split(line)[1] for line in found["next"]] == ["diagnose"]
        assert "--memory-limit 1200M" in found["next"][0]
    assert "Traceback" not in done.stdout + done.stderr
    rendered = triage("report", "case", "--format", "markdown", cwd=tmp_path)
    assert rendered.returncode == 0
    assert verdict in rendered.stdout


@pytest.mark.lengthy
def test_an_engine_that_scales_the_outputs_of_any_model_is_found_by_value(tmp_path):
    done = planted(tmp_path, [], run="return {k: v * 1.01 for k, v in self.session.run(feed).items()}")
    found = verdict_in(tmp_path / "case")
    assert (found["verdict"], done.returncode) == ("comparison-unsound", 1)
    assert "is the model's multiplied by 1.01" in found["summary"]


@pytest.mark.lengthy
def test_an_engine_that_answers_differently_each_time(tmp_path):
    noise = "np.random.default_rng().normal(size=v.shape).astype(v.dtype)"
    done = planted(tmp_path, [], run=f"return {{k: v + {noise} for k, v in self.session.run(feed).items()}}")
    found = verdict_in(tmp_path / "case")
    assert (found["verdict"], done.returncode) == ("nondeterministic-run", 1)
    assert found["culprits"][0]["node"] == "/stem/Conv"


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("run", "verdicts"),
    [
        ("return {}", {"comparison-unsound", "engine-crash"}),
        # Of the ops alone, each has another shape: that is decisive.
        ("return {k: v[:1] for k, v in self.session.run(feed).items()}", {"local-fault"}),
        (
            "return {k: v.astype(int) for k, v in self.session.run(feed).items()}",
            {"comparison-unsound", "engine-crash"},
        ),
    ],
    ids=["missing", "shape", "dtype"],
)
def test_outputs_that_cannot_be_compared_never_pass(tmp_path, run, verdicts):
    done = planted(tmp_path, [], run=run)
    assert done.returncode == 1, done.stdout + done.stderr
    assert verdict_in(tmp_path / "case")["verdict"] in verdicts


@pytest.mark.lengthy
@pytest.mark.parametrize("name", ["overflow", "scaled-conv"])
def test_a_rerun_in_the_same_case_asks_no_engine_again(diagnosed, name):
    done = diagnosed(name)
    first = done.verdict
    triage(*done.words, cwd=done.folder)
    second = done.verdict
    assert second["verdict"] == first["verdict"]
    assert second["culprits"] == first["culprits"]
    assert {step["question"]: step["checks"] for step in second["steps"] if step["checks"]} == {}
    assert (second["cost"]["builds"], second["cost"]["checks"]) == (0, 0)
    assert (first["cost"]["known"], second["cost"]["known"] > 0) == (0, True)


@pytest.mark.lengthy
def test_a_killed_diagnosis_resumes(tmp_path):
    words = [EXAMPLES / "digits_vit_overflow.onnx", "--inputs", EXAMPLES / "digits_vit_overflow.npz"]
    words = ["diagnose", *map(str, words), "--target", "emulate:precision=fp16", "--case", "case"]
    for seconds in (0.9, 1.3, 1.8):
        process = subprocess.Popen(
            [sys.executable, "-c", "from tensortriage.cli import main; main()", *words],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = triage(*words, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert verdict_in(tmp_path / "case")["verdict"] == "range-overflow"
    assert not (tmp_path / "case" / "tmp").exists()


def test_one_json_document_on_stdout_and_text_on_stderr(tmp_path):
    done = triage(
        "diagnose",
        EXAMPLES / "digits_cnn.onnx",
        "--inputs",
        EXAMPLES / "digits.npz",
        "--target",
        "onnxruntime",
        "--json",
        cwd=tmp_path,
    )
    document = json.loads(done.stdout)
    assert document["format"].startswith("tensortriage.")
    assert "sound" in done.stderr


def test_without_a_target_the_usable_engines_are_listed_as_commands(tmp_path):
    done = triage("diagnose", EXAMPLES / "digits_cnn.onnx", cwd=tmp_path)
    assert done.returncode == 2
    assert "error[target-missing]" in done.stderr
    assert "triage diagnose" in done.stderr
    assert "--target onnxruntime" in done.stderr


@pytest.mark.lengthy
def test_random_data_are_said_to_be_random(tmp_path):
    triage("diagnose", EXAMPLES / "digits_cnn.onnx", "--target", "onnxruntime", "--case", "case", cwd=tmp_path)
    assert verdict_in(tmp_path / "case")["inputs"] == "random"


def test_the_users_tolerance_decides_when_given(tmp_path):
    words = ["diagnose", EXAMPLES / "digits_vit.onnx", "--inputs", EXAMPLES / "digits.npz"]
    words += ["--target", "emulate:precision=bf16", "--case", "case"]
    assert triage(*words, "--atol", "10", cwd=tmp_path).returncode == 0
    assert verdict_in(tmp_path / "case")["verdict"] == "match"


@pytest.mark.lengthy
def test_several_samples_are_judged_by_the_worst(tmp_path):
    samples = np.load(EXAMPLES / "digits_samples.npz")
    assert len(next(iter(samples.values()))) > 8
    done = triage(
        "diagnose",
        EXAMPLES / "digits_vit.onnx",
        "--inputs",
        EXAMPLES / "digits_samples.npz",
        "--samples",
        "5",
        "--target",
        "onnxruntime",
        "--case",
        "case",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 feeds" in verdict_in(tmp_path / "case")["summary"]
