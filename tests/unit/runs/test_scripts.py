import os
import signal
import textwrap
import threading

import numpy as np
import pytest

from tensortriage.engines.base import Limits
from tensortriage.errors import DataError
from tensortriage.inputs.feed import Origin
from tensortriage.runs.scripts import COMPARE, METRIC, POSTPROCESS, ScriptFunction, script_feeds
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

SPECS = [ValueSpec("x", DType.FLOAT, ("n", 3))]


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / "loader.py"
        path.write_text(textwrap.dedent(text))
        return path

    return write


def test_the_default_function_and_a_named_one(script):
    path = script("""
        import numpy as np
        def load_data():
            for k in range(2):
                yield {"x": np.full((1, 3), k, np.float32)}
        def other():
            return [{"x": np.ones((2, 3), np.float32)}]
    """)
    feeds = list(script_feeds(str(path), SPECS))
    assert [feed.name for feed in feeds] == ["loader.py[0]", "loader.py[1]"]
    assert feeds[1].tensors["x"].tolist() == [[1, 1, 1]]
    assert feeds[1].origin is Origin.REAL
    (feed,) = script_feeds(f"{path}:other", SPECS)
    assert feed.tensors["x"].shape == (2, 3)


def test_a_loader_object_is_told_what_the_inputs_are(script):
    path = script("""
        import numpy as np
        class Loader:
            input_metadata = None
            def __iter__(self):
                for name, (dtype, shape) in self.input_metadata.items():
                    yield {name: np.ones((1, shape[1]), dtype)}
        load_data = Loader
    """)
    (feed,) = script_feeds(str(path), SPECS)
    np.testing.assert_array_equal(feed.tensors["x"], np.ones((1, 3), np.float32), strict=True)


def test_neighbours_can_be_imported_and_arrays_of_other_libraries_used(script, tmp_path):
    (tmp_path / "tensortriage_test_neighbour.py").write_text("VALUE = 4")
    path = script("""
        import numpy as np
        from tensortriage_test_neighbour import VALUE
        class Tensor:
            def detach(self): return self
            def cpu(self): return self
            def numpy(self): return np.full((1, 3), VALUE, np.float32)
        def load_data():
            return [{"x": Tensor()}, {"x": [[1.0, 2.0, 3.0]]}]
    """)
    feeds = list(script_feeds(str(path), SPECS))
    assert [feed.tensors["x"].tolist() for feed in feeds] == [[[4, 4, 4]], [[1, 2, 3]]]


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("text", "slug", "words"),
    [
        ("def load_data():\n    return 1 / 0\n", "script-failed", "line 2: ZeroDivisionError"),
        ("def load_data():\n    yield {'x': 0}[1]\n", "script-failed", "line 2: KeyError"),
        ("import nothing_of_this_name\n", "script-failed", "line 1: ModuleNotFoundError"),
        ("def load_data(:\n", "script-failed", "line 1: SyntaxError"),
        ("raise SystemExit(0)\n", "script-failed", "SystemExit"),
        ("def load_data(path):\n    return []\n", "script-failed", "TypeError"),
        ("", "script-unusable", "no function 'load_data'"),
        ("def load_data():\n    return []\n", "feed-empty", "no sample"),
        ("def load_data():\n    return {'x': 1}\n", "script-not-feed", "returned a dict"),
        ("def load_data():\n    return None\n", "script-not-feed", "returned a NoneType"),
        ("def load_data():\n    yield None\n", "script-not-feed", "yielded a NoneType"),
        ("def load_data():\n    yield {'x': object()}\n", "script-not-feed", "'x' is a object"),
    ],
)
def test_what_goes_wrong_is_told_with_its_line(script, text, slug, words):
    with pytest.raises(DataError) as caught:
        list(script_feeds(str(script(text)), SPECS))
    assert caught.value.slug == slug
    assert words in caught.value.message


def test_what_is_no_script_is_refused(tmp_path):
    (tmp_path / "data.npz").write_bytes(b"PK")
    for name in ("absent.py", "data.npz"):
        with pytest.raises(DataError) as caught:
            list(script_feeds(str(tmp_path / name), SPECS))
        assert caught.value.slug == "script-unusable"


def test_a_loader_may_fill_one_buffer_again_and_again(script):
    path = script("""
        import numpy as np
        def load_data():
            buffer = np.empty((1, 3), np.float32)
            for k in range(3):
                buffer[...] = k
                yield {"x": buffer}
    """)
    assert [feed.tensors["x"][0, 0] for feed in script_feeds(str(path), SPECS)] == [0, 1, 2]
    assert [feed.tensors["x"][0, 0] for feed in list(script_feeds(str(path), SPECS))] == [0, 1, 2]


def test_what_a_script_prints_is_no_part_of_a_document(script, capsys):
    path = script("""
        print("imported")
        def load_data():
            print("called")
            yield {"x": [[1.0, 2.0, 3.0]]}
    """)
    list(script_feeds(str(path), SPECS))
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "imported\ncalled\n")


def test_lines_are_told_of_a_script_beside_the_user(script, monkeypatch):
    path = script("def load_data():\n    yield {'x': 1 / 0}\n")
    monkeypatch.chdir(path.parent)
    with pytest.raises(DataError, match=r"loader\.py, line 2: ZeroDivisionError"):
        list(script_feeds(path.name, SPECS))


HOSTILE = [
    ("import os\nos._exit(0)\n", "script-crashed", "exit code 0"),
    ("import os\ndef load_data():\n    os._exit(0)\n", "script-crashed", "exit code 0"),
    ("import os\ndef load_data():\n    yield {'x': [[1.0] * 3]}\n    os._exit(0)\n", "script-crashed", "exit code 0"),
    ("import os, signal\ndef load_data():\n    os.kill(os.getpid(), signal.SIGSEGV)\n", "script-crashed", "SIGSEGV"),
    ("import os, signal\ndef load_data():\n    os.killpg(0, signal.SIGTERM)\n", "script-crashed", "SIGTERM"),
    ("import ctypes\ndef load_data():\n    ctypes.string_at(0)\n", "script-crashed", "SIGSEGV"),
    ("def load_data():\n    raise KeyboardInterrupt\n", "script-failed", "line 2: KeyboardInterrupt"),
    ("def load_data():\n    raise MemoryError\n", "script-failed", "line 2: MemoryError"),
    ("def load_data():\n    return load_data()\n", "script-failed", "RecursionError"),
    ("while True: pass\n", "script-hung", "after 3 s"),
    ("import time\ndef load_data():\n    yield {'x': [[1.0] * 3]}\n    time.sleep(600)\n", "script-hung", "after 3 s"),
    (
        "def load_data():\n    held = []\n    while True: held.append(b'1' * (1 << 24))\n",
        "script-out-of-memory",
        "512 MB",
    ),
]


@pytest.mark.lengthy
@pytest.mark.parametrize(("text", "slug", "words"), HOSTILE)
def test_whatever_a_script_does_it_is_an_error_of_the_script(script, text, slug, words):
    limits = Limits(build_seconds=3.0 if slug == "script-hung" else 120.0, memory_bytes=512 << 20)
    with pytest.raises(DataError) as caught:
        list(script_feeds(str(script(text)), SPECS, limits))
    assert (caught.value.slug, caught.value.exit_code) == (slug, 2)
    assert words in caught.value.message
    assert caught.value.cure


def test_what_a_script_changes_stays_with_it(script):
    path = script("""
        import os, signal, sys, threading, time
        import numpy as np
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.environ["TRIAGE_DEBUG"] = "1"
        os.chdir("/")
        os.umask(0o777)
        sys.stdout.close()
        np.float32 = None
        threading.Thread(target=time.sleep, args=(600,)).start()
        def load_data():
            return [{"x": [[1.0, 2.0, 3.0]]}]
    """)
    before = (os.getcwd(), os.environ.get("TRIAGE_DEBUG"), signal.getsignal(signal.SIGTERM), threading.active_count())
    (feed,) = script_feeds(str(path), SPECS)
    assert feed.tensors["x"].tolist() == [[1, 2, 3]]
    after = (os.getcwd(), os.environ.get("TRIAGE_DEBUG"), signal.getsignal(signal.SIGTERM))
    assert after == before[:3]
    assert np.float32 is not None


def test_a_metric_takes_dicts_of_arrays_that_it_may_change(script):
    path = script("""
        def metric(outputs, feed):
            outputs["y"] += 1
            return outputs["y"].sum() - feed["x"].sum()
    """)
    outputs = {"y": np.ones((2, 2), np.float32)}
    with ScriptFunction(str(path), METRIC) as metric:
        assert metric.numbers(outputs, {"x": np.full(3, 2.0)}) == (2.0,)
        assert metric.numbers(outputs, {"x": np.zeros(3)}) == (8.0,)
    assert outputs["y"].tolist() == [[1, 1], [1, 1]]


@pytest.mark.lengthy
@pytest.mark.parametrize("result", ["'0.9'", "None", "[[1.0], [2.0, 3.0]]", "[]", "b'1'", "object()", "1j"])
def test_a_metric_returns_a_number(script, result):
    path = script(f"def metric(outputs, feed):\n    return {result}\n")
    with ScriptFunction(str(path), METRIC) as metric, pytest.raises(DataError) as caught:
        metric.numbers({}, {})
    assert caught.value.slug == "script-not-number"
    assert "metric() returned a" in caught.value.message


def test_a_comparing_function_and_a_postprocess_function(script):
    path = script("""
        def compare_outputs(name, reference, target):
            return name == "y" and abs(reference - target).max() < 1
        def postprocess_outputs(outputs):
            return {"classes": outputs["y"].argmax(-1), **outputs}
    """)
    one, other = np.array([[1.0, 2.0]]), np.array([[1.5, 2.5]])
    with ScriptFunction(str(path), COMPARE) as function:
        assert function.truth("y", one, other) is True
        assert function.truth("z", one, other) is False
    with ScriptFunction(str(path), POSTPROCESS) as function:
        made = function.arrays({"y": one})
    assert list(made) == ["classes", "y"]
    np.testing.assert_array_equal(made["classes"], np.array([1]), strict=True)


@pytest.mark.parametrize("result", ["None", "[1]", "{1: 2}", "{'y': object()}"])
def test_a_postprocess_function_returns_arrays(script, result):
    path = script(f"def postprocess_outputs(outputs):\n    return {result}\n")
    with ScriptFunction(str(path), POSTPROCESS) as function, pytest.raises(DataError) as caught:
        function.arrays({"y": np.ones(1)})
    assert caught.value.slug == "script-not-outputs"
