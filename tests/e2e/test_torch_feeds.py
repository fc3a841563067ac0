"""Feeds from Python functions and from PyTorch: loaders, saved batches, recordings."""

import functools
import importlib.util
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import models
from running_cli import triage
from tensortriage.engines.base import Limits
from tensortriage.errors import DataError, EngineMissing
from tensortriage.inputs.files.open_data import open_data
from tensortriage.model.model import Model
from tensortriage.runs.feeds.feed_request import FeedRequest, feeds
from tensortriage.runs.feeds.torch_batches import torch_feeds
from tensortriage.torch import record

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
TWO_INPUTS = """
    g (float[n, 2] x, float[n, 2] m) => (float[n, 2] y) { y = Add(x, m) }
"""
LOADER = """
import numpy as np
ONES = np.ones((1, 2), np.float32)
def tuples():
    yield ONES, 2 * ONES, "label"
    yield [3 * ONES, 4 * ONES]
def one():
    yield ONES
def short():
    yield (ONES,)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "loader.py").write_text(LOADER)
    models.write(tmp_path / "two.onnx", TWO_INPUTS)
    return tmp_path


def fed(folder, *paths):
    return [dict(feed.tensors) for feed in feeds(FeedRequest(paths=paths), Model.load(folder / "two.onnx"))]


def test_a_function_yields_tuples_in_the_order_of_the_inputs(folder):
    found = fed(folder, f"{folder / 'loader.py'}:tuples")
    assert [(feed["x"][0, 0], feed["m"][0, 0]) for feed in found] == [(1, 2), (3, 4)]


def test_functions_and_files_follow_each_other(folder):
    np.savez(folder / "a.npz", x=np.zeros((1, 2), np.float32), m=np.full((1, 2), 9, np.float32))
    found = fed(folder, str(folder / "a.npz"), f"{folder / 'loader.py'}:tuples", str(folder / "a.npz"))
    assert [feed["m"][0, 0] for feed in found] == [9, 2, 4, 9]


def test_a_tuple_that_is_too_short_is_an_error(folder):
    with pytest.raises(DataError) as caught:
        fed(folder, f"{folder / 'loader.py'}:short")
    assert caught.value.slug == "script-not-feed"
    assert "order of the inputs" in caught.value.cure


def test_on_the_command_line(folder):
    done = triage("run", "two.onnx", "--onnxrt", "--inputs", "loader.py:tuples", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "random" not in done.stdout


def test_a_missing_batch(folder):
    with pytest.raises(DataError) as caught:
        fed(folder, str(folder / "absent.pt"))
    assert caught.value.slug == "feed-file-missing"


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is installed")
def test_a_batch_without_pytorch(folder):
    (folder / "batch.pt").write_bytes(b"")
    with pytest.raises(EngineMissing):
        fed(folder, str(folder / "batch.pt"))


@needs_torch
def test_what_torch_save_wrote(folder):
    code = (
        "import torch, pathlib\n"
        "one = torch.ones(1, 2)\n"
        "torch.save({'x': one, 'm': 2 * one}, 'dict.pt')\n"
        "torch.save([(one, 3 * one), (one, 4 * one)], 'list.pt')\n"
        "torch.save({'x': pathlib.Path('.')}, 'code.pt')\n"
        "torch.save({'x': torch.zeros(1).expand(2**29, 2), 'm': one}, 'endless.pt')\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    found = fed(folder, str(folder / "dict.pt"), str(folder / "list.pt"))
    assert [feed["m"][0, 0] for feed in found] == [2, 3, 4]
    with pytest.raises(DataError) as caught:
        list(torch_feeds(Path(folder / "code.pt"), Model.load(folder / "two.onnx").inputs, Limits()))
    assert caught.value.slug == "torch-batch"
    with pytest.raises(DataError, match="expand from"):
        fed(folder, str(folder / "endless.pt"))


class Handle:
    def __init__(self, hooks, hook):
        self.remove = lambda: hooks.remove(hook)


class Network:
    """What `record` asks of a module, without PyTorch."""

    def __init__(self):
        self.before, self.after = [], []

    def forward(self, x, cache=None, *, scale=1.0):
        x += 1  # in place: what was fed must have been copied
        return {"y": x * scale, "cache": [x]}

    def register_forward_pre_hook(self, hook, *, with_kwargs):
        assert with_kwargs
        self.before.append(hook)
        return Handle(self.before, hook)

    def register_forward_hook(self, hook, *, always_call):
        assert always_call
        self.after.append(hook)
        return Handle(self.after, hook)

    def __call__(self, *arguments, **keywords):
        for hook in self.before:
            hook(self, arguments, keywords)
        result = None
        try:
            result = self.forward(*arguments, **keywords)
        finally:
            for hook in self.after:
                hook(self, arguments, result)
        return result


class Tensor(np.ndarray):
    """An array that answers as a tensor does."""

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self


def tensor(value):
    return np.full((1, 2), value, np.float32).view(Tensor)


def test_a_recording_holds_calls_as_they_were_made(tmp_path):
    network = Network()
    with record(network, tmp_path / "recorded", most=2) as recording:
        for value in (1.0, 2.0, 3.0):
            network(tensor(value), [tensor(value), tensor(7)], scale=2.0)
        with pytest.raises(TypeError):
            network(None)
    assert (network.before, network.after) == ([], [])
    assert [sorted(call) for call in recording.inputs] == [["cache_0", "cache_1", "x"]] * 2
    saved = open_data(tmp_path / "recorded/inputs.npz")
    first, second = (iteration.tensors for iteration in saved.series[0])
    assert (first["x"][0, 0], second["x"][0, 0], second["cache_1"][0, 0]) == (1, 2, 7)
    assert recording.outputs[0]["0"][0, 0] == 4


def test_nothing_is_written_without_a_call(tmp_path):
    with record(Network(), tmp_path / "recorded"):
        pass
    assert not (tmp_path / "recorded").exists()


def test_what_cannot_be_watched_is_told_before_the_application_runs(tmp_path):
    with pytest.raises(TypeError):
        record(3, tmp_path)
    with pytest.raises(ValueError, match="at least one"):
        record(Network(), tmp_path, most=0)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        record(Network(), tmp_path / "file")


class Recursive(Network):
    """A network that calls itself, and takes anything."""

    def forward(self, x, *more, depth=1, **others):
        return self(x + 1, depth=depth - 1) if depth else x


class Uncopied(Tensor):
    def numpy(self):
        raise TypeError("sparse")


def test_calls_that_cannot_be_recorded_do_not_stop_the_application(tmp_path):
    around = [tensor(1)]
    around.append(around)
    deep = functools.reduce(lambda inner, _: [inner], range(5000), tensor(1))
    network = Recursive()

    def application():
        with record(network, tmp_path / "recorded") as recording:
            network(tensor(1), np.ones((1, 2)).view(Uncopied))
            network(tensor(1), deep)
            network(tensor(2), around)
        return recording

    with pytest.warns(RuntimeWarning, match=r"2 calls of the network are not recorded: .*sparse"):
        recording = application()
    assert [sorted(call) for call in recording.inputs] == [["more_0_0", "x"]]
    assert (recording.inputs[0]["x"][0, 0], recording.outputs[0]["0"][0, 0]) == (2, 3)  # of the outermost call
    assert len(list(open_data(tmp_path / "recorded/inputs.npz").series[0])) == 1


def test_names_that_are_alike_or_odd_stay_apart(tmp_path):
    network = Recursive()
    with record(network, tmp_path) as recording:
        network(tensor(1), b=[tensor(2), tensor(3)], b_0=tensor(4), **{"../a/b\0": tensor(5)})
    values = {name: array[0, 0] for name, array in recording.inputs[0].items()}
    assert values == {"x": 1, "b_0": 2, "b_1": 3, "b_0__2": 4, ".._a_b_": 5}


def test_calls_of_several_threads_keep_their_own_outputs(tmp_path):
    network, together = Recursive(), threading.Barrier(4)

    def calls(value):
        together.wait()
        for _ in range(50):
            network(tensor(value))

    with record(network, tmp_path, most=200) as recording:
        threads = [threading.Thread(target=calls, args=(value,)) for value in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    pairs = list(zip(recording.inputs, recording.outputs, strict=True))
    assert len(pairs) == 200
    assert all(outputs["0"][0, 0] == inputs["x"][0, 0] + 1 for inputs, outputs in pairs)


class Native(Network):
    """A network whose forward says nothing of its parameters, as many native functions do."""

    class _Sum:
        __signature__ = None

        def __call__(self, *terms):
            return sum(terms)

        def __getattr__(self, name):
            raise ValueError("no signature")

    forward = _Sum()


def test_a_forward_without_a_signature_is_recorded_by_place(tmp_path):
    network = Native()
    with record(network, tmp_path) as recording:
        assert network(tensor(1), tensor(2))[0, 0] == 3
    assert sorted(recording.inputs[0]) == ["args_0", "args_1"]


class Wordy(Network):
    def forward(self, x):
        return str(x)


def test_a_network_that_returns_no_tensor_is_told(tmp_path):
    network = Wordy()

    def application():
        with record(network, tmp_path / "recorded"):
            assert network(3) == "3"

    with pytest.warns(RuntimeWarning, match="no tensor was found in the str"):
        application()
    assert not (tmp_path / "recorded").exists()


def test_an_error_of_the_application_is_not_replaced(tmp_path):
    network = Network()
    (tmp_path / "file").touch()

    def application():
        with record(network, tmp_path / "file" / "recorded"):
            network(tensor(1))
            raise KeyError("mine")

    with pytest.warns(RuntimeWarning, match="nothing is recorded"), pytest.raises(KeyError):
        application()
