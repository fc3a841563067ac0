"""How long a run may take: the user's word, else 60 s or twenty times what the reference needed."""

import sys
import types

import numpy as np
import pytest

import models
from tensortriage.engines.base import Limits
from tensortriage.engines.process import interpreters
from tensortriage.engines.registry import create, resolve
from tensortriage.engines.session_capabilities import BuildsWhenFed, KnowsSomeValues
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import BuildFailed, EngineHung
from tensortriage.runs.observation.runner import Runner
from tensortriage.runs.tally import Tally
from tensortriage.runs.workspace import Workspace

SLEEPY = """
import time
class Session:
    def run(self, feed):
        time.sleep(1.5)
        return {"y": feed["x"]}
class Engine:
    def compile(self, model, options):
        return Session()
"""
FEED = {"x": np.ones((2, 3), np.float32)}


def test_the_default_grows_with_the_reference_and_the_users_word_stands():
    assert Limits().longest_run() == 60.0
    assert Limits().longest_run(2.0) == 60.0  # 20 * 2 s is less
    assert Limits().longest_run(5.0) == 100.0
    assert Limits(run_seconds=7.0).longest_run(5.0) == 7.0


@pytest.fixture
def sleepy(tmp_path):
    file = tmp_path / "sleepy.py"
    file.write_text(SLEEPY)
    return EngineSpec("script", {"file": str(file)})


def test_a_slow_run_is_no_hang_where_the_reference_is_slow_too(sleepy, tmp_path, monkeypatch):
    monkeypatch.setattr("tensortriage.engines.base.RUN_SECONDS", 0.3)
    with Workspace(tmp_path / "work") as workspace:
        with Runner(sleepy, models.chain(1), workspace=workspace, tally=Tally()) as runner, pytest.raises(EngineHung):
            runner.run(FEED)
        patient = Tally(reference_run_seconds=0.5)  # so 10 s are allowed
        with Runner(sleepy, models.chain(1), workspace=workspace, tally=patient) as runner:
            np.testing.assert_array_equal(runner.run(FEED)["y"], FEED["x"])


class Fed(BuildsWhenFed):
    """A session that builds for what it is fed, in so many seconds each."""

    def __init__(self, *, opened: int) -> None:
        self.made = [5.0] * opened

    def builds_made(self):
        return tuple(self.made)

    def run(self, feed):
        if feed["x"].shape[0] != len(self.made):
            self.made.append(7.0)
        return {"y": feed["x"]}

    def plan(self):
        return None

    def close(self):
        pass


@pytest.mark.parametrize(("opened", "seconds"), [(0, [7.0, 14.0]), (1, [0.0, 7.0])])
def test_what_a_session_builds_when_it_is_fed_is_counted_as_builds(tmp_path, monkeypatch, opened, seconds):
    """One build a shape, and its time is no time of a run. A session opened without one builds for its first feed.

    The opening itself takes next to nothing here.
    """
    engine = types.SimpleNamespace(compile=lambda path, options: Fed(opened=opened))
    monkeypatch.setattr("tensortriage.runs.observation.runner.create", lambda spec, limits=None: engine)
    tally = Tally()
    with (
        Workspace(tmp_path / "work") as workspace,
        Runner(EngineSpec("fed"), models.chain(1), workspace=workspace, tally=tally) as runner,
    ):
        runner.run({"x": np.ones((1, 3), np.float32)})
        assert (tally.builds, runner.builds_made()) == (1, 1)
        assert tally.build_seconds == pytest.approx(seconds[0], abs=1.0)
        runner.run({"x": np.ones((1, 3), np.float32)})
        runner.run({"x": np.ones((2, 3), np.float32)})
        assert (tally.builds, runner.builds_made()) == (2, 2)
        assert tally.build_seconds == pytest.approx(seconds[1], abs=1.0)
        assert tally.run_seconds < 1.0


def test_an_engine_from_a_file_is_not_run_in_place_of_a_part(tmp_path):
    """It would run as a whole, and what it answers be put down to the part."""
    (tmp_path / "a.engine").write_bytes(b"engine")
    spec = EngineSpec("tensorrt", {"load_engine": str(tmp_path / "a.engine")})
    with (
        Workspace(tmp_path / "work") as workspace,
        Runner(spec, models.chain(1), workspace=workspace) as runner,
        pytest.raises(BuildFailed, match="runs as a whole") as caught,
    ):
        runner.build()
    assert caught.value.slug == "engine-given"


def test_the_users_limit_holds_however_slow_the_reference_is(sleepy, tmp_path):
    with (
        Workspace(tmp_path / "work") as workspace,
        Runner(
            sleepy,
            models.chain(1),
            workspace=workspace,
            limits=Limits(run_seconds=0.3),
            tally=Tally(reference_run_seconds=100.0),
        ) as runner,
        pytest.raises(EngineHung),
    ):
        runner.run(FEED)


def test_an_upgrade_in_a_workers_python_makes_it_another_engine(tmp_path):
    packages = tmp_path / "packages"
    (packages / "openvino-2024.0.0.dist-info").mkdir(parents=True)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={packages} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    spec = EngineSpec("openvino", {"worker": str(python)})

    def identity():
        interpreters.check_interpreter.cache_clear()  # each stands for a command of its own
        return resolve(spec).identity

    old = identity()
    assert identity() == old
    (tmp_path / "packages" / "openvino-2024.0.0.dist-info").rename(
        tmp_path / "packages" / "openvino-2024.1.0.dist-info"
    )
    assert identity() != old


def test_builds_are_counted_for_each_engine_and_a_mean_is_of_one_engine_only():
    tally = Tally()
    tally.built("onnxruntime", 0.5)
    tally.built("tensorrt", 100.0)
    tally.built("tensorrt", 60.0)
    assert tally.builds == 3
    assert tally.build_seconds == 160.5
    assert tally.builds_by_engine == {"onnxruntime": 1, "tensorrt": 2}
    assert tally.seconds_a_build("tensorrt") == 80.0  # not 160.5 / 3
    assert tally.seconds_a_build("openvino") == 0.0


def test_an_engine_of_this_process_builds_a_model_without_a_file_as_it_does_from_one(tmp_path):
    model = models.chain(4)
    saved = tmp_path / "model.onnx"
    model.save(saved)
    specs = [
        EngineSpec("float64", options)
        for options in ({}, {"rounding": "results"}, {"format": "bf16"}, {"format": "fp16", "fused": "true"})
    ]
    with Workspace(tmp_path / "work") as workspace:
        for spec in (*specs, *reversed(specs)):  # one model, whatever was built of it before
            with Runner(spec, model, workspace=workspace) as runner:
                found = runner.run(FEED)
            assert list(workspace.folder.iterdir()) == []
            expected = create(spec).compile(saved, spec.options).run(FEED)
            assert {name: array.tolist() for name, array in found.items()} == {
                name: array.tolist() for name, array in expected.items()
            }


class Knowing(KnowsSomeValues):
    """A session that knows one of two outputs."""

    def run(self, feed):
        raise AssertionError("it cannot give all")

    def run_known(self, feed):
        return {"y": feed["x"]}

    def close(self):
        """Nothing is held."""


def test_what_a_session_does_not_know_is_left_out_where_that_is_wanted(tmp_path, monkeypatch):
    class Known:
        def compile(self, model, options):
            return Knowing()

    monkeypatch.setattr("tensortriage.runs.observation.runner.create", lambda spec, limits=None: Known())
    with Workspace(tmp_path / "work") as workspace:
        runner = Runner(EngineSpec("known"), models.chain(1), workspace=workspace)
        assert [*runner.run(FEED, known_only=True)] == ["y"]
        with pytest.raises(AssertionError, match="cannot give all"):
            runner.run(FEED)
