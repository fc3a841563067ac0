"""Accuracy as people mean it, end to end: labels beside the inputs, metrics by name, int8 judged where it runs."""

import json

import numpy as np
import onnx
import pytest

from running_cli import triage
from unequal_digits import write_unequal_digits

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]

GOAL = 0.95
SCRIPT = "def metric(outputs, feed, labels):\n    return outputs['logits'].argmax(1) == labels\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("digits")
    write_unequal_digits(made)
    (made / "acc.py").write_text(SCRIPT)
    return made


def accuracy(folder, file, metric):
    """Return accuracies of the float model and of a file on ONNX Runtime, by `triage run`."""
    asked = ("--target", "onnxruntime", "--target-model", file, "--inputs", "test.npz", "--metric", metric)
    found = json.loads(triage("run", "cnn.onnx", *asked, "--json", cwd=folder).stdout)
    return tuple(found["task_metrics"].values()), found["task_comparisons"][0]


def convert(folder, *words):
    usual = ("--calibrate", "minmax", "--inputs", "cal.npz", "--holdout", "test.npz", "--metric", "top1")
    done = triage("convert", "cnn.onnx", "--int8", *usual, *words, "--json", cwd=folder)
    return done, json.loads(done.stdout)


@pytest.fixture(scope="module")
def lossy(folder):
    """Convert without a goal; the file loses half of the digits, and is written all the same."""
    done, found = convert(folder, "--no-verify", "-o", "lossy.onnx")
    assert done.returncode == 0
    return found


def test_an_int8_file_scores_what_it_scores_where_it_runs(folder, lossy):
    (own, there), compared = accuracy(folder, "lossy.onnx", "top1")
    assert lossy["metric_before"] == pytest.approx(own)
    assert lossy["metric_after"] == pytest.approx(there)
    assert there < 0.8 < GOAL < own
    assert accuracy(folder, "lossy.onnx", "acc.py")[0] == (own, there)
    assert compared["samples"] == 150  # rows of the one batch
    assert compared["low"] <= compared["difference"] <= compared["high"] < 0
    assert compared["worst"][0]["row"] is not None


def test_a_goal_is_reached_on_the_engine_and_no_kept_product_reads_a_dequantizer(folder):
    done, found = convert(folder, "--metric-min", str(GOAL), "-o", "good.onnx")
    assert done.returncode == 0
    assert (found["reached"], found["judged_on"]) == (True, "onnxruntime")
    assert found["sensitive"]
    (_, there), _ = accuracy(folder, "good.onnx", "top1")
    assert there == pytest.approx(found["metric_after"])
    assert there >= GOAL
    graph = onnx.load(folder / "good.onnx").graph
    makers = {value: node.op_type for node in graph.node for value in node.output}
    kept = [node for node in graph.node if node.name in found["sensitive"]]
    assert kept
    assert "DequantizeLinear" not in {makers.get(node.input[0]) for node in kept}


def test_a_verdict_tells_the_accuracy_and_goes_on_with_the_metric(folder, lossy):
    words = ("--target", "onnxruntime", "--target-model", "lossy.onnx", "--inputs", "test.npz", "--case", "case")
    goal = ("--metric", "top1", "--metric-min", str(GOAL))
    done = triage("diagnose", "cnn.onnx", *words, *goal, "--fix", "fixed.onnx", cwd=folder)
    assert done.returncode == 1
    verdict = json.loads((folder / "case" / "verdict.json").read_text())
    found = verdict["accuracy"]
    assert (found["reference"], found["target"]) == (
        pytest.approx(lossy["metric_before"]), pytest.approx(lossy["metric_after"]),
    )  # fmt: skip
    assert found["comparison"]["samples"] == 150
    assert verdict["verdict"] == "quantization"
    assert verdict["fix"].startswith("fixed.onnx is written: " if (folder / "fixed.onnx").exists() else "nothing is")
    shown = [done.stdout, (folder / "case" / "report.html").read_text()]
    shown.append(triage("report", "case", "--format", "markdown", cwd=folder).stdout)
    for text in shown:
        assert "95 % interval" in " ".join(text.replace("│", " ").split())
    search = [line for line in verdict["next"] if "debug precision" in line]
    assert all(f"--metric top1 --metric-min {GOAL}" in line and "-o mixed.onnx" in line for line in search)


def test_a_metric_without_its_labels_is_refused_before_anything_runs(folder):
    with np.load(folder / "test.npz") as known:
        np.savez(folder / "bare.npz", image=known["image"])
    for command in (("diagnose", "--case", "bare"), ("run",)):
        words = ("--target", "onnxruntime", "--inputs", "bare.npz", "--metric", "acc.py")
        done = triage(command[0], "cnn.onnx", *command[1:], *words, cwd=folder)
        assert done.returncode == 2
        assert "error[metric-labels-missing]" in done.stderr
