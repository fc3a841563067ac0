"""Recording the calls of a network, which is here a stand-in for one of PyTorch's."""

import functools
import threading

import numpy as np
import pytest

from tensortriage.inputs.files.open_data import open_data
from tensortriage_torch.record import MOST_CALLS, record


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


def test_a_problem_of_writing_is_an_error_of_its_own_where_there_is_no_other(tmp_path):
    network = Network()
    (tmp_path / "file").touch()
    recording = record(network, tmp_path / "file" / "recorded")
    with pytest.raises(NotADirectoryError), recording:
        network(tensor(1))
    assert network.before == []


def test_as_many_calls_as_are_usual_are_recorded(tmp_path):
    network = Network()
    with record(network, str(tmp_path)) as recording:
        for _ in range(MOST_CALLS + 1):
            network(tensor(1))
    assert len(recording.inputs) == len(recording.outputs) == MOST_CALLS
    assert recording.left_out == []


class Odd:
    """A tensor of a type that numpy lacks, or that is not what its memory says, and becomes itself when asked to."""

    def __init__(self, dtype, calls):
        self.dtype, self.calls = dtype, calls

    def __getattr__(self, name):
        if name not in ("detach", "cpu", "resolve_conj", "resolve_neg", "float"):
            raise AttributeError(name)

        def call():
            self.calls.append(name)
            return self

        return call

    def numpy(self):
        return np.zeros((1, 2), np.float32)


@pytest.mark.parametrize(
    ("dtype", "last"),
    [("torch.bfloat16", "float"), ("torch.float8_e4m3fn", "float"), ("torch.float16", "resolve_neg")],
)
def test_what_numpy_lacks_is_kept_in_float32(tmp_path, dtype, last):
    network, calls = Recursive(), []
    with record(network, tmp_path) as recording:
        network(tensor(1), x_too=Odd(dtype, calls))
    assert (sorted(recording.inputs[0]), calls[-1]) == (["x", "x_too"], last)
    assert calls[:4] == ["detach", "cpu", "resolve_conj", "resolve_neg"]


def test_what_is_no_tensor_is_passed_over_and_what_returns_nothing_is_not_recorded(tmp_path):
    class Silent(Network):
        def forward(self, x, *, switch):
            return x if switch else None

    network = Silent()
    with record(network, tmp_path) as recording:
        network(tensor(1), switch=False)
        network((tensor(2), None, {"deep": [tensor(3)]}), switch=True)
    assert [sorted(call) for call in recording.inputs] == [["x_0", "x_2_deep_0"]]
    assert [sorted(call) for call in recording.outputs] == [["0", "1"]]
