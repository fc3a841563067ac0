"""What stays behind: nothing, however the host, the supervisor or the engine ends; and which interpreters can work."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from tensortriage.engines.base import Limits
from tensortriage.engines.process.isolated import IsolatedEngine
from tensortriage.engines.script import ScriptEngine
from tensortriage.errors import BuildFailed, EngineCrashed, EngineMissing, StoreError
from tensortriage.values.dtype import DType
from tensortriage_engines.openvino.engine import OpenVinoEngine
from tensortriage_worker import exchange

pytestmark = pytest.mark.usefixtures("fresh_processes")
LIMITS = Limits(build_seconds=20, run_seconds=20)
ECHO = """
class Engine:
    def compile(self, model, options):
        return self
    inputs = [("x", "bfloat16", None)]
    outputs = [("y", "bfloat16", None)]
    def run(self, feed):
        return {"y": feed["x"]}
"""
HOST = """
import os, sys, time
from tensortriage.engines.base import Limits
from tensortriage.engines.script import ScriptEngine
from tensortriage.engines.process import workers
import numpy as np
session = ScriptEngine(limits=Limits(20, 60)).compile(__import__("pathlib").Path({model!r}), {{"file": {script!r}}})
worker = session._conversation.worker
print(worker.hello["pid"], worker.supervisor_pid, *worker.folders, flush=True)
{then}
"""
HANG = """
class Engine:
    inputs = [("x", "float32", None)]
    outputs = [("y", "float32", None)]
    def compile(self, model, options): return self
    def run(self, feed):
        while True: pass
"""
RUN = "session.run({'x': np.zeros(1, 'f4')})"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.onnx"
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[N] x) => (float[N] y) { y = Identity(x) }'
    onnx.save(parser.parse_model(text), path)
    return path


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "engine.py"
    path.write_text(ECHO)
    return path


@pytest.fixture
def host(tmp_path: Path, model: Path) -> Iterator:
    """Start a Python that opens a session and then does something; return it with its output about its worker."""
    started: list[subprocess.Popen[str]] = []

    def start(script_text: str, then: str) -> tuple[subprocess.Popen[str], list[int], list[Path]]:
        script = tmp_path / "engine.py"
        script.write_text(script_text)
        text = HOST.format(model=str(model), script=str(script), then=textwrap.dedent(then))
        process = subprocess.Popen(
            [sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        words = process.stdout.readline().split()
        return process, [int(word) for word in words[:2]], [Path(word) for word in words[2:]]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def vanished(pids: list[int], folders: list[Path], seconds: float = 8) -> list[object]:
    """Wait for processes and folders to disappear; return those that did not."""
    deadline = time.monotonic() + seconds
    while True:
        left: list[object] = [pid for pid in pids if running(pid)]
        left += [folder for folder in folders if folder.exists()]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.lengthy
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize(("text", "then"), [(ECHO, "time.sleep(60)"), (HANG, RUN)], ids=["idle", "running"])
def test_killing_the_host_leaves_nothing(host, how, text, then):
    process, pids, folders = host(text, then)
    assert all(map(running, pids))
    assert all(folder.is_dir() for folder in folders)
    time.sleep(0.1)
    process.send_signal(how)
    assert vanished(pids, folders) == []


@pytest.mark.lengthy
def test_interrupting_the_host_kills_the_worker(host):
    process, pids, folders = host(HANG, f"try:\n    {RUN}\nexcept KeyboardInterrupt:\n    print('stopped')")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert (out, err, process.returncode) == ("stopped\n", "", 0)
    assert vanished(pids, folders) == []


@pytest.mark.lengthy
@pytest.mark.parametrize("then", ["", "raise SystemExit(3)", "session.close()", "del session", "workers.close_idle()"])
def test_a_host_that_ends_leaves_nothing(host, then):
    process, pids, folders = host(ECHO, then)
    _, err = process.communicate(timeout=20)
    assert err == ""
    assert vanished(pids, folders) == []


@pytest.mark.lengthy
@pytest.mark.parametrize("then", ["", "session.close()\n"], ids=["open", "idle"])
def test_a_host_may_end_where_no_thread_can_be_started_any_more(host, then):
    """Python 3.12.0 and 3.12.1 refuse them in what runs at exit."""
    refuse = (
        "import _thread, atexit\n"
        'def refused(*words):\n    raise RuntimeError("can\'t create new thread at interpreter shutdown")\n'
        "atexit.register(setattr, _thread, 'start_new_thread', refused)"
    )
    process, pids, folders = host(ECHO, then + refuse)
    _, err = process.communicate(timeout=20)
    assert err == ""
    assert vanished(pids, folders) == []


def test_killing_the_supervisor_is_a_crash_and_leaves_nothing(host):
    then = f"""
    os.kill(worker.supervisor_pid, 9)
    try:
        {RUN}
    except Exception as error:
        print(type(error).__name__)
    session.close()
    """
    process, pids, folders = host(HANG, then)
    out, err = process.communicate(timeout=20)
    assert (out, err) == ("EngineCrashed\n", "")
    assert vanished(pids, folders) == []


def test_workers_are_reused_per_script_and_a_dead_one_is_replaced(model, script):
    engine = ScriptEngine(limits=LIMITS)
    options = {"file": str(script)}

    def pid() -> int:
        session = engine.compile(model, options)
        session.close()
        return session.pid

    first = pid()
    assert pid() == first
    other = script.with_name("other.py")
    other.write_text(ECHO)
    session = engine.compile(model, {"file": str(other)})
    assert session.pid != first
    session.close()
    os.kill(first, signal.SIGKILL)
    assert vanished([first], []) == []
    assert pid() != first


def test_modules_in_the_current_folder_do_not_get_in_the_way(tmp_path, model, monkeypatch):
    for name in ("queue", "json", "numpy", "tensortriage_worker"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')")
    script = tmp_path / "engine" / "script.py"
    script.parent.mkdir()
    script.write_text("import os\nprint(os.getcwd())\n" + ECHO.replace("return self", "os.abort()"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EngineCrashed, match=f"it last printed: {tmp_path} "):
        ScriptEngine(limits=LIMITS).compile(model, {"file": str(script)})


@pytest.mark.lengthy
def test_two_open_sessions_have_two_workers(model, script):
    engine = ScriptEngine(limits=LIMITS)
    sessions = [engine.compile(model, {"file": str(script)}) for _ in range(2)]
    assert sessions[0].pid != sessions[1].pid
    for session in sessions:
        session.close()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "no such program"),
        ("#!/bin/sh\nexit 0\n", "ended at once"),
        ("#!/bin/sh\necho not python >&2; exit 1\n", "not python"),
        ("not a program", "xec format"),
    ],
)
def test_interpreters_that_cannot_work(tmp_path, model, script, text, reason):
    python = tmp_path / "python"
    if text is not None:
        python.write_text(text)
        python.chmod(0o755)
    with pytest.raises(EngineMissing) as caught:
        ScriptEngine(limits=LIMITS).compile(model, {"file": str(script), "worker": str(python)})
    assert caught.value.slug == "worker-unusable"
    assert reason in caught.value.message


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """An interpreter with numpy and nothing else: no ml_dtypes, execnet, openvino or tensortriage."""
    python = tmp_path / "my python"
    bare = tmp_path / "bare"
    bare.mkdir()
    numpy_home = Path(np.__file__).parent
    (bare / "numpy").symlink_to(numpy_home)
    libraries = numpy_home.with_name("numpy.libs")
    if libraries.exists():
        (bare / libraries.name).symlink_to(libraries)
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{bare}" exec "{base}" -S "$@"\n')
    python.chmod(0o755)
    return python


def test_another_interpreter_gets_the_worker_package_by_content(bare_python, tmp_path, model):
    script = tmp_path / "engine.py"
    script.write_text(
        "import importlib.util, sys\n"
        "ours = ('ml_dtypes', 'execnet', 'openvino', 'tensortriage')\n"
        "assert not [name for name in ours if importlib.util.find_spec(name)], sys.path\n" + ECHO
    )
    session = ScriptEngine(limits=LIMITS).compile(model, {"file": str(script), "worker": str(bare_python)})
    feed = {"x": np.array([1.5, -2, np.nan], DType.BFLOAT16.numpy)}
    result = session.run(feed)["y"]
    session.close()
    assert result.dtype == DType.BFLOAT16.numpy
    assert result.tobytes() == feed["x"].tobytes()


def test_an_engine_that_the_other_interpreter_lacks(bare_python, model):
    with pytest.raises(EngineMissing) as caught:
        OpenVinoEngine(limits=LIMITS).compile(model, {"worker": str(bare_python)})
    assert caught.value.slug == "openvino-missing"
    assert caught.value.cure == "pip install openvino"


def test_large_outputs_come_in_several_shards(model, tmp_path, monkeypatch):
    script = tmp_path / "engine.py"
    script.write_text(
        "from tensortriage_worker import exchange\nexchange.SHARD_BYTES = 1000\n"
        + ECHO.replace('("y", "bfloat16", None)', '(f"y{i}", "float32", None) for i in range(9)')
        .replace("bfloat16", "float32")
        .replace('{"y": feed["x"]}', '{f"y{i}": feed["x"] + i for i in range(9)}')
    )
    monkeypatch.setattr(exchange, "SHARD_BYTES", 1000)
    session = ScriptEngine(limits=LIMITS).compile(model, {"file": str(script)})
    result = session.run({"x": np.arange(200, dtype=np.float32)})
    left = [path for folder in session._conversation.worker.folders for path in Path(folder).glob("*.safetensors*")]
    session.close()
    assert left == []
    assert list(result) == [f"y{i}" for i in range(9)]
    for i in range(9):
        np.testing.assert_array_equal(result[f"y{i}"], np.arange(200, dtype=np.float32) + i)


def test_no_room_is_a_clear_error(model, script, monkeypatch):
    monkeypatch.setattr(exchange, "MARGIN_BYTES", 1 << 60)
    session = ScriptEngine(limits=LIMITS).compile(model, {"file": str(script)})
    with pytest.raises(StoreError) as caught:
        session.run({"x": np.zeros(3, DType.BFLOAT16.numpy)})
    session.close()
    assert caught.value.slug == "exchange-full"


def test_no_room_for_the_outputs_is_no_fault_of_the_engine(model, script):
    script.write_text("from tensortriage_worker import exchange\nexchange.MARGIN_BYTES = 1 << 60\n" + ECHO)
    session = ScriptEngine(limits=LIMITS).compile(model, {"file": str(script)})
    with pytest.raises(StoreError, match="do not fit") as caught:
        session.run({"x": np.zeros(3, DType.BFLOAT16.numpy)})
    session.close()
    assert caught.value.slug == "exchange-full"
    assert caught.value.cure


def test_an_unknown_file_type_of_result_is_not_trusted(model, script):
    """What a worker names as result must be a shard; a hostile or broken one cannot make the host read nonsense."""
    script.write_text(
        ECHO + "\nfrom tensortriage_worker import exchange\n"
        "def put(folders, items):\n"
        "    path = folders[0] + '/bad.safetensors'\n"
        "    open(path, 'w').write('nonsense')\n"
        "    return [path]\n"
        "exchange.put = put\n"
    )
    session = ScriptEngine(limits=LIMITS).compile(model, {"file": str(script)})
    with pytest.raises(Exception, match="shard") as caught:
        session.run({"x": np.zeros(3, DType.BFLOAT16.numpy)})
    session.close()
    assert caught.value.slug == "engine-outputs-wrong"


@pytest.mark.lengthy
@pytest.mark.parametrize("dtype", [d for d in DType if d is not DType.STRING], ids=lambda d: d.name)
def test_every_type_travels_unchanged(tmp_path_factory, model, dtype):
    folder = tmp_path_factory.getbasetemp() / "echo"
    folder.mkdir(exist_ok=True)
    script = folder / "engine.py"  # one file for all: the worker is reused
    script.write_text(ECHO.replace('"bfloat16"', "None"))
    session = ScriptEngine(limits=LIMITS).compile(model, {"file": str(script)})
    codes = np.arange(24, dtype=np.uint8) % 2
    arrays = [codes.astype(dtype.numpy).reshape(2, 3, 4).transpose(2, 0, 1), np.array(1).astype(dtype.numpy)]
    arrays.append(np.zeros((0, 3), dtype.numpy))
    for array in arrays:
        result = session.run({"x": array})["y"]
        assert (result.dtype, result.shape) == (array.dtype, array.shape)
        assert result.tobytes() == array.tobytes()
    session.close()


def test_strings_travel(model, script):
    script.write_text(ECHO.replace('"bfloat16"', '"string"'))
    session = ScriptEngine(limits=LIMITS).compile(model, {"file": str(script)})
    words = np.array([["ä", ""], ["b\n", "c"]], dtype=object)
    np.testing.assert_array_equal(session.run({"x": words})["y"], words)
    session.close()


def test_an_adapter_that_does_not_exist_is_a_build_failure(model):
    with pytest.raises(BuildFailed, match="No module named 'nothing'"):
        IsolatedEngine("nothing", title="nothing", limits=LIMITS).compile(model, {})


def test_a_session_that_hangs_when_it_is_closed_is_killed(model, tmp_path):
    script = tmp_path / "engine.py"
    script.write_text(ECHO + "    def close(self):\n        import time; time.sleep(600)\n")
    session = ScriptEngine(limits=Limits(run_seconds=1.0)).compile(model, {"file": str(script)})
    pid = session.pid
    session.close()
    assert vanished([pid], []) == []


def test_a_session_can_crash_between_runs(model, script):
    session = ScriptEngine(limits=LIMITS).compile(model, {"file": str(script)})
    os.kill(session.pid, signal.SIGKILL)
    assert vanished([session.pid], []) == []
    with pytest.raises(EngineCrashed, match="SIGKILL"):
        session.run({"x": np.zeros(3, DType.BFLOAT16.numpy)})
    session.close()
