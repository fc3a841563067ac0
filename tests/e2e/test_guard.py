"""The process that the user starts answers for the command, whatever becomes of the one that does the work."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tensortriage.cli import guard

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MODEL, FEED = EXAMPLES / "digits_cnn.onnx", EXAMPLES / "digits.npz"
RUN = ["run", MODEL, "--target", "onnxruntime", "--inputs", FEED]
# Stands for a library that behaves so in native code, which no handler of Python interrupts.
STUBBORN = "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}); time.sleep(600)"
COMMANDS = {
    "run": RUN,
    "diagnose": ["diagnose", MODEL, "--target", "emulate:precision=fp16", "--inputs", FEED],
    "reduce": ["debug", "reduce", MODEL, "-o", "r.onnx", "--target", "emulate:precision=fp16", "--inputs", FEED],
    "precision": ["debug", "precision", MODEL, "-o", "p.onnx", "--target", "emulate:precision=fp16", "--inputs", FEED],
    "convert": ["convert", MODEL, "--precision", "fp16", "-o", "c.onnx"],
    "extract": ["surgeon", "extract", MODEL, "--op-types", "Conv", "--with-inputs", FEED, "-o", "e.onnx"],
}
HANGS = """
import os, pathlib, signal, time
class Engine:
    def compile(self, model, options):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        pathlib.Path("part").write_text(str(os.getpid()))
        os.rename("part", "pid")
        time.sleep(600)
"""
PROGRAM = """
import os, signal, sys, time
from tensortriage import cli
from tensortriage.engines.onnxruntime import engine
plain = engine.OnnxRuntimeEngine.compile
def compile(self, model, options):
    os.write(2, b"building %d\\n" % os.getpid())  # at once: two threads may build
    {then}
    return plain(self, model, options)
engine.OnnxRuntimeEngine.compile = compile
cli.main()
"""

LEAVES_A_CLUSTER = """
import signal, sys, time
from tensortriage.cli import guard
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits that it is ignored
ending = guard.start(None)
if ending is not None:
    sys.exit(ending.code)
guard.about_to(guard.CLUSTER)
try:
    print("there", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    time.sleep({longer})
    guard.settle(7)
"""

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the guard is for Linux")


def start(folder, then, *words):
    (folder / "tmp").mkdir(exist_ok=True)
    env = os.environ | {"TMPDIR": str(folder / "tmp")}
    command = [sys.executable, "-c", PROGRAM.format(then=then), *map(str, words)]
    return subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def wait_for_build(process):
    for line in process.stderr:
        if line.startswith("building"):
            return int(line.split()[1])
    raise AssertionError("it ended before it built anything")


def left(folder):
    return [path.name for path in (folder / "tmp").iterdir()]


@pytest.mark.lengthy
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("to_all", [False, True])
def test_what_no_handler_interrupts_ends_all_the_same(how, to_all, tmp_path):
    process = start(tmp_path, STUBBORN, *RUN, "--json")
    child = wait_for_build(process)
    os.killpg(process.pid, how) if to_all else process.send_signal(how)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out)["slug"] == "interrupted"
    assert "Traceback" not in err
    assert not psutil.pid_exists(child)
    assert left(tmp_path) == []


@pytest.mark.lengthy
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_was_passed_on_and_ended_the_child_is_an_interruption(how, tmp_path):
    """The handlers are the system's own again while an interpreter ends; libc sets them from any thread."""
    process = start(tmp_path, f"__import__('ctypes').CDLL(None).signal({how:d}, 0); time.sleep(600)", *RUN, "--json")
    wait_for_build(process)
    process.send_signal(how)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, json.loads(out)["slug"]) == (130, "interrupted")


@pytest.mark.lengthy
def test_a_command_with_a_cluster_has_the_time_to_leave_it(tmp_path):
    program = LEAVES_A_CLUSTER.format(longer=guard.GRACE_SECONDS + 0.5)
    process = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "there\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 7


@pytest.mark.lengthy
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_when_all_is_told_changes_nothing(how, tmp_path):
    then = f"__import__('atexit').register(lambda: os.kill(os.getpid(), {how:d}))"
    process = start(tmp_path, then, *RUN)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "passed" in out
    assert "Exception ignored" not in err


@pytest.mark.lengthy
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_every_phase_ends_in_native_code(words, tmp_path):
    process = start(tmp_path, STUBBORN, *words, "--json")
    child = wait_for_build(process)
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, json.loads(out)["slug"]) == (130, "interrupted"), err
    assert "Traceback" not in err
    assert not psutil.pid_exists(child)
    assert left(tmp_path) == []


def wait_for_engine(folder):
    deadline = time.monotonic() + 60
    while not (folder / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return int((folder / "pid").read_text())


@pytest.mark.lengthy
@pytest.mark.parametrize("name", ["run", "diagnose", "reduce"])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_every_phase_ends_while_a_worker_hangs(name, how, tmp_path):
    (tmp_path / "hangs.py").write_text(HANGS)
    words = ["script:hangs.py" if str(w).startswith(("emulate", "onnxruntime")) else w for w in COMMANDS[name]]
    process = start(tmp_path, "", *words, "--json", "--timeout", "600")
    engine = wait_for_engine(tmp_path)
    process.send_signal(how)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, json.loads(out)["slug"]) == (130, "interrupted"), err
    assert "Traceback" not in err
    assert "Error" not in err
    deadline = time.monotonic() + 30
    while psutil.pid_exists(engine) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(engine)
    assert left(tmp_path) == []


@pytest.mark.lengthy
@pytest.mark.parametrize("whom", ["engine", "supervisor"])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_worker_that_is_ended_from_outside_is_an_outcome(whom, how, tmp_path):
    (tmp_path / "hangs.py").write_text(HANGS)
    words = ["run", MODEL, "--target", "script:hangs.py", "--inputs", FEED, "--json", "--timeout", "600"]
    process = start(tmp_path, "", *words)
    engine = wait_for_engine(tmp_path)
    os.kill(engine if whom == "engine" else psutil.Process(engine).ppid(), how)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    assert json.loads(out)["outcomes"]["script:hangs.py"]["kind"] == "engine-crash"
    assert "Traceback" not in err
    assert left(tmp_path) == []


@pytest.mark.lengthy
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGFPE", "SIGABRT"])
def test_a_crash_is_tried_again_with_engines_in_workers(name, tmp_path):
    then = f"os.kill(os.getpid(), signal.{name})"
    process = start(tmp_path, then, *RUN, "--json")
    out, err = process.communicate(timeout=120)
    assert f"native code crashed ({name})" in err
    assert process.returncode == 0, err
    assert {outcome["kind"] for outcome in json.loads(out)["outcomes"].values()} == {"ok"}
    assert left(tmp_path) == []


@pytest.mark.lengthy
def test_a_crash_that_comes_again_is_an_error_with_a_slug(tmp_path):
    program = "import os, signal\nfrom tensortriage import cli\n"
    program += "cli.exit_code_of = lambda words: os.kill(os.getpid(), signal.SIGSEGV)\ncli.main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "run", "x", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert json.loads(done.stdout)["slug"] == "crashed"
    assert "error[crashed]" in done.stderr


@pytest.mark.lengthy
def test_the_memory_of_the_command_itself_is_limited(tmp_path):
    process = start(tmp_path, "held = bytearray(2 << 30); time.sleep(600)", *RUN, "--memory-limit", "1G", "--json")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 2, err
    told = json.loads(out)
    assert told["slug"] == "out-of-memory"
    assert "1024 MB" in told["message"]
    assert left(tmp_path) == []


def test_killing_it_leaves_no_process_and_the_next_start_no_file(tmp_path):
    process = start(tmp_path, "time.sleep(600)", *RUN)
    child = wait_for_build(process)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 30
    while psutil.pid_exists(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(child)
    (scratch,) = (tmp_path / "tmp").iterdir()
    old = time.time() - 3600
    os.utime(scratch, (old, old))
    foreign = tmp_path / "tmp" / "triage-of-mine"
    foreign.mkdir()
    os.utime(foreign, (old, old))
    start(tmp_path, "", *RUN).communicate(timeout=120)
    assert left(tmp_path) == ["triage-of-mine"]


def test_a_living_commands_folder_is_left_alone(tmp_path):
    process = start(tmp_path, "time.sleep(600)", *RUN)
    wait_for_build(process)
    (scratch,) = (tmp_path / "tmp").iterdir()
    old = time.time() - 3600
    os.utime(scratch, (old, old))
    start(tmp_path, "", *RUN).communicate(timeout=120)
    assert scratch.is_dir()
    process.terminate()
    process.communicate(timeout=60)
    assert left(tmp_path) == []


@pytest.mark.lengthy
def test_ctrl_c_while_modules_are_loaded_ends_it_without_a_word(tmp_path):
    (tmp_path / "click.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n")
    done = subprocess.run(
        [sys.executable, "-m", "tensortriage", "inspect", "model", "m.onnx"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
