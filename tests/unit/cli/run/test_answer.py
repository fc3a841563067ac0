"""``triage run``: which engine is assumed right, which are compared with it, and what is refused before any work."""

import dataclasses
import json
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

import models
from tensortriage.cli import cli
from tensortriage.cli.dialect import OURS
from tensortriage.cli.onnxruntime_options import OnnxRuntimeOptions
from tensortriage.cli.run.answer import (
    check_places,
    check_saved_alone,
    engines_of,
    headline,
    participants,
    prepared,
    recorded,
    request_of,
    runner,
    tell_worst,
)
from tensortriage.cli.run.judgement import JudgementOptions
from tensortriage.cli.run.options import RunOptions, TensorrtOutputs
from tensortriage.compare.judgement.tolerance import PolygraphyTolerance
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.errors import TriageError
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.common.output_selection import OutputChoice
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage.workflows.comparison.participants import Saved
from tensortriage.workflows.comparison.saved_results import load_saved
from tensortriage_engines.tensorrt.flags import TensorrtOptions

ORT, OV = "onnxruntime", "openvino"
SAVED = Saved("out in out.npz", [{"y": np.ones(2, np.float32)}])


def options(request=None, **given):
    """Return what a command line of ``triage run`` asks for."""
    return RunOptions(request=request or CompareRequest(), **given)


def slug_of(ask, *given):
    """Return the slug with which something is refused."""
    with pytest.raises(TriageError) as caught:
        ask(*given)
    return caught.value.slug


@pytest.mark.parametrize(
    ("given", "saved", "reference", "targets"),
    [
        ({}, False, None, []),
        ({"runners": (OV,)}, False, None, [OV]),
        ({"runners": (ORT, "float64", ORT, OV)}, False, ORT, [ORT, "float64", OV]),
        ({"runners": ("float64", OV)}, False, OV, ["float64"]),
        ({"targets": (OV,)}, False, str(PLAIN), [OV]),
        ({"targets": (OV,), "runners": ("float64",)}, False, str(PLAIN), ["float64", OV]),
        ({"targets": (OV,), "runners": ("float64", ORT)}, False, ORT, ["float64", OV]),
        ({"targets": (OV,), "runners": (ORT,), "reference": "float64"}, False, "float64", [ORT, OV]),
        ({"targets": (OV,), "runners": (ORT,)}, True, None, [ORT, OV]),
        ({"reference": "float64"}, True, "float64", []),
    ],
)
def test_which_engine_is_the_reference(given, saved, reference, targets):
    found, others = engines_of(options(**given), [SAVED] if saved else [])
    assert (found and str(found), [*map(str, others)]) == (reference, targets)


def test_flags_of_a_runner_need_it_and_make_its_spec():
    fp16 = TensorrtOptions(fp16=True)
    assert slug_of(engines_of, options(tensorrt=fp16, runners=(ORT,)), []) == "flag-without-runner"
    given = options(tensorrt=fp16, runners=("tensorrt",), onnxruntime=OnnxRuntimeOptions(level="ORT_DISABLE_ALL"))
    assert str(engines_of(given, [])[1][0]) == "tensorrt:precision=fp16"
    assert (str(runner(ORT, given)), str(runner("float64", given))) == ("onnxruntime:optimization=none", "float64")


def test_a_request_has_usable_engines_and_every_output_that_is_named(tmp_path):
    given = options(
        CompareRequest(model=tmp_path / "m.onnx", outputs=OutputChoice(mark=("a",), exclude=("x",))),
        targets=("float64",),
        marked=TensorrtOutputs(outputs=("b",), excluded=("y",)),
    )
    found = request_of(given, OURS)
    assert (str(found.reference), [*map(str, found.targets)]) == (str(PLAIN), ["float64"])
    assert (found.outputs.mark, found.outputs.exclude, found.outputs.strict) == (("a", "b"), ("x", "y"), True)
    assert (found.tolerances, found.strict) == ([], True)
    assert slug_of(lambda: request_of(options(targets=("nonesuch",)), OURS)) == "engine-unknown"


@pytest.mark.parametrize(
    ("given", "slug"),
    [
        ({}, None),
        ({"save_inputs": Path("i.json")}, "option-needs-model"),
        ({"to_fp16": True}, "option-needs-model"),
        ({"request": CompareRequest(target_model=Path("t.onnx"))}, "option-needs-model"),
        ({"load_outputs": ()}, "usage"),
        ({"targets": (ORT,)}, "usage"),
        ({"reference": ORT}, "usage"),
        ({"runners": (ORT,)}, "usage"),
    ],
)
def test_without_a_model_saved_outputs_alone_are_judged(given, slug):
    asked, context = options(**{"load_outputs": (Path("o.json"),), **given}), click.Context(click.Command("run"))
    if slug is None:
        check_saved_alone(asked, context)
    elif slug == "usage":
        with pytest.raises(click.UsageError):
            check_saved_alone(asked, context)
    else:
        assert slug_of(check_saved_alone, asked, context) == slug


def test_names_of_participants_in_polygraphys_order():
    two = EngineSpec.parse(OV)
    request = CompareRequest(reference=PLAIN, targets=[two, two], saved=[SAVED])
    assert participants(request) == [OV, f"{OV} #2", str(PLAIN), SAVED.name]
    assert participants(dataclasses.replace(request, reference=None)) == [OV, f"{OV} #2", SAVED.name]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (CompareRequest(model=Path("m"), targets=[EngineSpec(OV)]), ["running openvino on m"]),
        (CompareRequest(model=Path("m")), ["running no engine on m"]),
        (CompareRequest(model=Path("m"), reference=PLAIN), [f"reference {PLAIN}", "target none", "model m"]),
        (CompareRequest(reference=PLAIN, saved=[SAVED]), [f"reference {PLAIN}", f"target {SAVED.name}", "no model"]),
        (CompareRequest(saved=[SAVED, Saved("b", [])]), [f"reference {SAVED.name}", "target b,", "no model"]),
    ],
)
def test_the_first_line_says_who_is_compared_with_whom(request_, words):
    assert [word for word in words if word not in headline(request_)] == []


def test_files_that_could_not_hold_what_is_to_be_saved_are_refused(tmp_path):
    request = CompareRequest(reference=PLAIN, targets=[EngineSpec(OV)])
    check_places(request, options(save_inputs=tmp_path / "i.json", save_outputs=tmp_path / "o.json"))
    assert slug_of(check_places, request, options(save_worst=tmp_path / "w.npz")) == "option-needs-another"
    assert slug_of(check_places, request, options(save_outputs=tmp_path / "o.npz")) == "several-runners"
    check_places(dataclasses.replace(request, reference=None), options(save_outputs=tmp_path / "o.npz"))
    saved = dataclasses.replace(request, reference=None, saved=[SAVED])
    assert slug_of(check_places, saved, options(save_outputs=tmp_path / "o.npz")) == "several-runners"
    scored = dataclasses.replace(request, metric=lambda outputs, feed: 1.0)
    check_places(scored, options(save_worst=tmp_path / "w.npz"))


def compared(tmp_path, *, names=(), saved=(), **given):
    """Compare a model on two engines and write what is requested; return the result."""
    model = models.write(tmp_path / "m.onnx", "g (float[2] x) => (float[2] y) { y = Exp(x) }")
    request = CompareRequest(
        model=model, reference=PLAIN, targets=[EngineSpec("float64")], saved=saved, tolerances=[PolygraphyTolerance()]
    )
    return recorded(request, options(request, **given), dict(names))


def test_a_comparison_writes_what_was_asked_for(tmp_path):
    place = tmp_path / "written"
    result = compared(
        tmp_path, save_inputs=place / "in.npz", save_outputs=place / "out.json", save_input_blob=place / "blobs",
        save_accuracy_results=place / "accuracy.json", judgement=JudgementOptions(check_average=True),
    )  # fmt: skip
    assert result.passed
    assert [found.name for found in load_saved(place / "out.json")] == [f"{PLAIN} in out.json", "float64 in out.json"]
    x = np.load(place / "in.npz")["x"]
    np.testing.assert_array_equal(x, np.fromfile(place / "blobs" / "0000000000" / "x.bin", np.float32))
    assert "average" in (place / "accuracy.json").read_text()


def test_under_polygraphys_names_loaded_outputs_are_not_saved_again(tmp_path):
    given = Saved("loaded", [{"y": np.ones(2, np.float32)}])
    place = tmp_path / "out.json"
    compared(tmp_path, saved=[given], names={"float64": "pluginref", str(PLAIN): "ort"}, save_outputs=place)
    assert [found.name.partition(" in ")[0] for found in load_saved(place)] == ["pluginref", "ort"]
    compared(tmp_path, saved=[given], save_outputs=place)
    assert len([*load_saved(place)]) == 3


def test_without_iterations_targets_are_built_as_they_are(tmp_path):
    model = models.write(tmp_path / "m.onnx", "g (float[2] x) => (float[2] y) { y = Exp(x) }")
    request = CompareRequest(model=model, targets=[EngineSpec("float64")], feeding=FeedRequest(iterations=0))
    assert prepared(request, model, options(request), tmp_path) == request
    once = dataclasses.replace(request, feeding=FeedRequest())
    assert prepared(once, model, options(once), tmp_path) == once


def test_the_worst_samples_are_told_with_the_command_that_looks_into_them(tmp_path):
    request = CompareRequest(reference=PLAIN, targets=[EngineSpec(OV)])
    path = tmp_path / "w.npz"
    assert len([*tell_worst(request, Path("m"), path, 0)]) == 1
    (_, line) = tell_worst(request, Path("m"), path, 2)
    assert line.split("triage ")[1] == f"diagnose m --target {OV} --inputs {path}"
    other = dataclasses.replace(request, reference=EngineSpec("float64"))
    assert [*tell_worst(other, Path("m"), path, 2)][1].endswith("--reference float64")
    without = dataclasses.replace(request, reference=None)
    assert "--reference" not in [*tell_worst(without, Path("m"), path, 2)][1]


def run(*words):
    """Return what comes of a command line of ``triage run`` in this process."""
    return CliRunner().invoke(cli, ["run", *map(str, words)], standalone_mode=False)


def test_saved_outputs_are_compared_without_a_model(tmp_path):
    for name, factor in (("a", 1.0), ("b", 1.0), ("c", 1.1)):
        np.savez(tmp_path / f"{name}.npz", y=np.float32([1, 2]) * np.float32(factor))
    same = run("--load-outputs", tmp_path / "a.npz", tmp_path / "b.npz", "--atol", "1e-3", "--json")
    assert (same.exit_code, json.loads(same.stdout)["passed"]) == (0, True)
    other = run("--load-outputs", tmp_path / "a.npz", tmp_path / "c.npz", "--atol", "1e-3")
    assert other.exit_code == 1
    assert other.output.startswith("reference a.npz")


def test_without_iterations_engines_are_built_and_nothing_is_run(tmp_path):
    model = models.write(tmp_path / "m.onnx", "g (float[2] x) => (float[2] y) { y = Exp(x) }")
    done = run(model, "--onnxrt", "--iterations", "0", "--json")
    assert done.exit_code == 0
    assert "built 1 engine" in done.output
    assert done.stdout.startswith("{")
