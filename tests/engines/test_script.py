"""The script engine in real worker processes: what works, and how each way of going wrong is told."""

import contextlib
import os
import signal
import textwrap
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from tensortriage.engines.base import Limits, Plan, Region
from tensortriage.engines.process import workers
from tensortriage.engines.script import ScriptEngine
from tensortriage.errors import (
    BuildFailed,
    DataError,
    EngineCrashed,
    EngineHung,
    EngineMissing,
    EngineOutOfMemory,
    RunFailed,
    TriageError,
    UsageError,
)
from tensortriage.testing import check_engine_conformance
from tensortriage.values.dtype import DType

FAST = Limits(build_seconds=20, run_seconds=20)
SHORT = Limits(build_seconds=0.5, run_seconds=0.5)
FEED = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
DOUBLING = """
    class Session:
        def run(self, feed):
            return {"y": feed["x"] * 2}
    class Engine:
        def compile(self, model, options):
            return Session()
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[N,3] x) => (float[N,3] y) { y = Add(x, x) }'
    path = tmp_path_factory.mktemp("model") / "double.onnx"
    onnx.save(parser.parse_model(text), path)
    return path


@pytest.fixture
def compiled(model: Path):
    """Write a script and compile the model with it; sessions are closed at the end.

    The file is always the same one, so that workers are reused and the tests are quick.
    """
    sessions = []

    def compile_script(text: str, limits: Limits = FAST, **options: str):
        file = model.with_name("engine.py")
        file.write_text(textwrap.dedent(text))
        session = ScriptEngine(limits=limits).compile(model, {"file": str(file), **options})
        sessions.append(session)
        return session

    yield compile_script
    for session in sessions:
        session.close()


def run_body(body: str) -> str:
    """Return a script whose run(feed) has this body."""
    text = "import os, sys, time, numpy as np\nclass Session:\n    def run(self, feed):\n"
    text += textwrap.indent(textwrap.dedent(body).strip(), "        ")
    return text + "\nclass Engine:\n    def compile(self, model, options):\n        return Session()\n"


def test_minimal_script_runs_and_specs_come_from_the_model(compiled):
    session = compiled(DOUBLING)
    result = session.run(FEED)
    np.testing.assert_array_equal(result["y"], FEED["x"] * 2)
    assert [(s.name, s.dtype, s.shape) for s in session.inputs] == [("x", DType.FLOAT, ("N", 3))]
    assert [s.name for s in session.outputs] == ["y"]
    assert session.plan() is None


def test_results_outlive_the_session(compiled):
    session = compiled(DOUBLING)
    first = session.run(FEED)["y"]
    second = session.run({"x": FEED["x"] + 1})["y"]
    session.close()
    np.testing.assert_array_equal(first, FEED["x"] * 2)
    np.testing.assert_array_equal(second, FEED["x"] * 2 + 2)


def test_declared_specs_plan_and_close_are_used(compiled, model):
    session = compiled(
        """
        import pathlib
        class Session:
            inputs = [("x", "float32", (None, 3))]
            outputs = [{"name": "y", "dtype": "float32", "shape": None}]
            def run(self, feed): return {"y": feed["x"]}
            def plan(self): return [{"name": "k", "nodes": ["a", "b"], "precision": "float16"}]
            def close(self): pathlib.Path(__file__).with_name("closed").touch()
        def make(): return type("E", (), {"compile": lambda self, model, options: Session()})()
        """,
        attribute="make",
    )
    assert session.inputs[0].shape == (None, 3)
    assert session.outputs[0].shape is None
    assert session.plan() == Plan((Region("k", ("a", "b"), precision="float16"),))
    session.close()
    assert model.with_name("closed").exists()


def test_own_options_reach_the_script_as_strings(compiled):
    script = """
        import numpy as np
        class Custom:
            def compile(self, model, options):
                assert model.is_absolute() and options == {"gain": "3"}, options
                gain = np.float32(options["gain"])
                return type("S", (), {"run": lambda self, feed: {"y": feed["x"] * gain}})()
    """
    np.testing.assert_array_equal(compiled(script, gain="3").run(FEED)["y"], FEED["x"] * 3)


def test_an_edited_script_is_an_edited_engine(compiled):
    compiled(DOUBLING).close()
    session = compiled(DOUBLING.replace("* 2", "* 5"))
    np.testing.assert_array_equal(session.run(FEED)["y"], FEED["x"] * 5)


def test_printing_and_reading_do_not_disturb_the_conversation(compiled):
    body = """
    print('{"died": {}}'); sys.stdout.flush(); os.write(1, b'garbage\\n'); os.write(2, b'more')
    assert sys.stdin.read() == ''
    os.system('echo native')
    return {'y': feed['x']}
    """
    session = compiled("print('at import')\n" + run_body(body))
    for _ in range(2):
        np.testing.assert_array_equal(session.run(FEED)["y"], FEED["x"])


def test_a_script_may_answer_in_float64(compiled):
    answer = compiled(run_body("return {'y': feed['x'].astype('float64')}")).run(FEED)["y"]
    assert answer.dtype == np.float64
    assert np.array_equal(answer, FEED["x"])


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("result", "complaint"),
    [
        ("None", "None instead of a dict"),
        ("[1, 2]", "a list instead of a dict"),
        ("{}", "lacks 'y'"),
        ("{'y': feed['x'], 'z': feed['x']}", "unknown 'z'"),
        ("{1: feed['x']}", "named by a int"),
        ("{'y': object()}", "not an array of numbers"),
        ("{'y': 'text'}", "is string"),
        ("{'y': np.zeros(2, 'M8[s]')}", "datetime64"),
    ],
)
def test_wrong_results_say_what_is_wrong(compiled, result, complaint):
    session = compiled(run_body(f"return {result}"))
    with pytest.raises(RunFailed) as caught:
        session.run(FEED)
    assert complaint in caught.value.message


def test_a_narrower_float_stays_one(compiled):
    result = compiled(run_body("return {'y': feed['x'].astype('float16')}")).run(FEED)["y"]
    assert result.dtype == np.float16
    np.testing.assert_array_equal(result, FEED["x"])


@pytest.mark.parametrize(
    ("script", "kind", "slug", "words"),
    [
        ("import nothing_of_this_name", BuildFailed, "build-failed", "ModuleNotFoundError"),
        ("def f(:", BuildFailed, "build-failed", "SyntaxError"),
        ("x = 1", UsageError, "script-engine", "no classes with a compile method"),
        ("class A:\n def compile(self, m, o): ...\nclass B(A): ...", UsageError, "script-engine", "2 classes"),
        ("class A:\n def compile(self, m, o): return 3", BuildFailed, "script-session", "no run()"),
        (
            "class A:\n def compile(self, m, o): raise ValueError('no such op')",
            BuildFailed,
            "build-failed",
            "no such op",
        ),
        ("import sys\nsys.exit(7)", BuildFailed, "build-failed", "sys.exit(7)"),
        ("class A:\n def compile(self): ...", BuildFailed, "build-failed", "TypeError"),
    ],
)
def test_scripts_that_cannot_build(compiled, script, kind, slug, words):
    with pytest.raises(kind) as caught:
        compiled(script)
    assert caught.value.slug == slug
    assert words in caught.value.message


def test_missing_file_and_attribute(compiled, model, tmp_path):
    with pytest.raises(UsageError) as caught:
        ScriptEngine().compile(model, {"file": str(tmp_path / "none.py")})
    assert caught.value.slug == "script-missing"
    with pytest.raises(UsageError) as caught:
        compiled(DOUBLING, attribute="Motor")
    assert caught.value.slug == "script-attribute-missing"
    assert "Engine" in caught.value.cure


def test_an_exception_in_run_names_its_place_and_leaves_the_session_usable(compiled):
    session = compiled(run_body("if feed['x'][0, 0] > 0: raise KeyError('lost')\nreturn {'y': feed['x']}"))
    with pytest.raises(RunFailed, match=r"KeyError: 'lost' \(engine.py:4\)"):
        session.run({"x": FEED["x"] + 1})
    np.testing.assert_array_equal(session.run(FEED)["y"], FEED["x"])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("print('about to go', file=sys.stderr); os.abort()", ["SIGABRT", "about to go"]),
        ("os.kill(os.getpid(), 11)", ["SIGSEGV"]),
        ("os._exit(3)", ["exit code 3"]),
        ("import ctypes; ctypes.string_at(0)", ["SIGSEGV", "Segmentation fault"]),
    ],
)
def test_a_crash_is_an_answer_and_the_engine_compiles_again(compiled, body, words):
    session = compiled(run_body(f"{body}\nreturn {{}}"))
    with pytest.raises(EngineCrashed) as caught:
        session.run(FEED)
    assert all(word in caught.value.message for word in words), caught.value.message
    with pytest.raises(EngineCrashed) as caught:
        session.run(FEED)
    assert caught.value.slug == "session-dead"
    np.testing.assert_array_equal(compiled(DOUBLING).run(FEED)["y"], FEED["x"] * 2)


def test_a_forked_copy_that_comes_back_answers_nobody(compiled):
    session = compiled(run_body("os.fork()\nreturn {'y': feed['x'] * 2}"))
    for _ in range(3):
        np.testing.assert_array_equal(session.run(FEED)["y"], FEED["x"] * 2)
    session.close()


@pytest.mark.lengthy
@pytest.mark.parametrize("answers", [0, 1, 2])
def test_ctrl_c_in_the_middle_of_an_exchange_leaves_no_answer_for_the_next(compiled, monkeypatch, answers):
    """After the supervisor's hello come those of the engine, the compilation and the run."""
    receive, left = workers.Worker._answer, [answers]

    def interrupted(worker, seconds):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return receive(worker, seconds)

    workers.close_idle()
    with monkeypatch.context() as patch:
        patch.setattr(workers.Worker, "_answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compiled(DOUBLING).run(FEED)
    np.testing.assert_array_equal(compiled(DOUBLING).run(FEED)["y"], FEED["x"] * 2)


def test_a_crash_while_building(compiled):
    with pytest.raises(EngineCrashed, match="while building the model"):
        compiled("import os\nclass E:\n def compile(self, m, o): os.abort()")


def test_a_crash_ends_one_session_only(compiled):
    healthy = compiled(DOUBLING)
    doomed = compiled(run_body("os.abort()"))
    with pytest.raises(EngineCrashed):
        doomed.run(FEED)
    np.testing.assert_array_equal(healthy.run(FEED)["y"], FEED["x"] * 2)


@pytest.mark.parametrize("body", ["time.sleep(60)", "while True: pass"])
def test_a_hang_is_killed_in_time(compiled, body):
    session = compiled(run_body(f"{body}\nreturn {{}}"), SHORT)
    started = time.monotonic()
    with pytest.raises(EngineHung, match=r"still running after 0\.5 s"):
        session.run(FEED)
    assert time.monotonic() - started < 5


def test_a_build_that_hangs(compiled):
    with pytest.raises(EngineHung, match="still building the model"):
        compiled("import time\nclass E:\n def compile(self, m, o): time.sleep(60)", SHORT)


@pytest.mark.lengthy
def test_allocating_without_end_is_out_of_memory(compiled):
    limits = Limits(build_seconds=20, run_seconds=20, memory_bytes=200 << 20)
    session = compiled(run_body("kept = []\nwhile True: kept.append(np.ones(1 << 20)); time.sleep(.002)"), limits)
    with pytest.raises(EngineOutOfMemory, match="200 MB"):
        session.run(FEED)


def test_memory_of_child_processes_counts(compiled):
    limits = Limits(build_seconds=20, run_seconds=20, memory_bytes=200 << 20)
    child = "import time; kept = bytearray(300 << 20); time.sleep(20)"
    body = f"import subprocess\nsubprocess.run([sys.executable, '-c', {child!r}])\nreturn {{'y': feed['x']}}"
    with pytest.raises(EngineOutOfMemory):
        compiled(run_body(body), limits).run(FEED)


def test_a_memory_error_of_the_allocator_is_out_of_memory(compiled):
    with pytest.raises(EngineOutOfMemory):
        compiled(run_body("np.ones(1 << 55)")).run(FEED)


def test_a_memory_error_that_a_script_raises_is_its_own(compiled):
    with pytest.raises(RunFailed, match="MemoryError: the pool is full"):
        compiled(run_body("raise MemoryError('the pool is full')")).run(FEED)


@pytest.mark.parametrize("new_session", [False, True])
@pytest.mark.parametrize("end", ["os.abort()", "return {'y': feed['x']}"])
def test_children_of_a_script_die_with_it(compiled, tmp_path, new_session, end):
    body = f"""
    import subprocess
    child = subprocess.Popen(['sleep', '300'], start_new_session={new_session})
    open({str(tmp_path / "pid")!r}, 'w').write(str(child.pid))
    {end}
    """
    session = compiled(run_body(body))
    with contextlib.suppress(EngineCrashed):
        session.run(FEED)
    session.close()
    workers.close_idle()
    assert gone(int((tmp_path / "pid").read_text()))


def test_feed_is_checked_before_it_travels(compiled):
    session = compiled(DOUBLING)
    for feed in ({}, {"x": FEED["x"].astype(np.float64)}, {"x": FEED["x"][0]}, {**FEED, "z": FEED["x"]}):
        with pytest.raises(DataError):
            session.run(feed)


def test_errors_of_the_library_keep_their_words(compiled):
    script = """
    from tensortriage.errors import EngineMissing
    class E:
        def compile(self, model, options): raise EngineMissing("no device", slug="device-missing", cure="buy one")
    """
    with pytest.raises(EngineMissing) as caught:
        compiled(script)
    assert (caught.value.message, caught.value.slug, caught.value.cure) == ("no device", "device-missing", "buy one")


def test_closing_twice_and_running_closed(compiled):
    session = compiled(DOUBLING)
    session.close()
    session.close()
    with pytest.raises(TriageError) as caught:
        session.run(FEED)
    assert caught.value.slug == "session-closed"


def test_precision_is_what_the_option_says():
    assert ScriptEngine().precision({}) == "fp32"
    assert ScriptEngine().precision({"precision": "f16"}) == "fp16"
    assert ScriptEngine().availability().usable


def gone(pid: int, seconds: float = 5) -> bool:
    """Wait for a process to disappear (or be a zombie that nobody reaps)."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    return False


@pytest.mark.lengthy
def test_a_script_around_onnx_runtime_conforms(tmp_path):
    script = tmp_path / "wrapper.py"
    script.write_text("from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine as Engine\n")
    report = check_engine_conformance(ScriptEngine(limits=FAST), {"file": str(script)})
    assert set(report.refused) <= {"model bfloat16"}  # ONNX Runtime's CPU provider has no bfloat16 Add
