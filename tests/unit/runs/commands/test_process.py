import os
import re
import sys
import threading
import time

import psutil
import pytest

from tensortriage.errors import UsageError
from tensortriage.runs.commands.process import CommandLine, Processes


def python(text):
    return [sys.executable, "-S", "-c", text]


def gone(pid, *, within=5.0):
    end = time.monotonic() + within
    while time.monotonic() < end:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def processes():
    with Processes() as made:
        yield made


def test_exit_code_and_both_streams(processes):
    found = processes.run(
        CommandLine(python("import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"))
    )
    assert (found.code, found.printed.text) == (3, "out\nerr\n")


def test_a_signal_is_a_negative_code(processes):
    assert processes.run(CommandLine(["sh", "-c", "kill -SEGV $$"])).code == -11


def test_it_runs_in_its_folder_without_input(processes, tmp_path):
    found = processes.run(
        CommandLine(python("import os, sys; print(os.getcwd()); print(sys.stdin.read() == '')"), folder=tmp_path)
    )
    assert found.printed.text.split() == [str(tmp_path), "True"]


@pytest.mark.parametrize("words", [["no-such-program-here"], ["./missing.sh"], ["/"], ["nul\0byte"]])
def test_what_cannot_be_started_is_an_error(processes, words):
    with pytest.raises(UsageError) as caught:
        processes.run(CommandLine(words))
    assert caught.value.slug == "check-program-missing"


def test_a_hanging_command_is_killed_with_its_children(processes):
    text = (
        "import os, subprocess, time; c = subprocess.Popen(['sleep', '60']); print(c.pid, flush=True); time.sleep(60)"
    )
    found = processes.run(CommandLine(python(text), timeout_seconds=0.6))
    assert found.code is None
    assert found.seconds < 5
    assert gone(int(found.printed.text))


def test_a_command_that_closes_its_output_and_hangs_is_killed(processes):
    found = processes.run(
        CommandLine(python("import os, time; os.close(1); os.close(2); time.sleep(60)"), timeout_seconds=0.3)
    )
    assert found.code is None


def test_a_child_that_holds_the_output_open_does_not_hold_up(processes):
    found = processes.run(CommandLine(["sh", "-c", "echo done; sleep 60 & echo $!; exit 4"]))
    done, pid = found.printed.text.split()
    assert (found.code, done) == (4, "done")
    assert found.seconds < 5
    assert gone(int(pid))


def test_endless_output_is_searched_and_not_kept(processes):
    text = "import sys\nfor i in range(40): sys.stdout.write('x' * 999_999 + '\\n')\nprint('VERDICT: bad')"
    found = processes.run(CommandLine(python(text), patterns=[re.compile("VERDICT: bad")]))
    assert found.printed.nbytes == 40_000_013
    assert found.printed.matched == ("VERDICT: bad",)
    assert len(found.printed.text) < 200_000


def test_closing_kills_what_another_thread_runs():
    processes, found = Processes(), []
    thread = threading.Thread(target=lambda: found.append(processes.run(CommandLine(["sleep", "60"]))))
    thread.start()
    while not processes._running:
        time.sleep(0.01)
    processes.close()
    thread.join(10)
    assert found[0].code == -9
    with pytest.raises(UsageError):
        processes.run(CommandLine(["true"]))


def test_kill_9_leaves_no_command_behind(tmp_path):
    text = (
        "from tensortriage.runs.commands.process import CommandLine, Processes\n"
        f"Processes().run(CommandLine(['sh', '-c', 'echo $$ > {tmp_path}/pid; sleep 60']))"
    )
    pid = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", text])
    written = tmp_path / "pid"
    while not written.exists() or not written.read_text().strip():
        time.sleep(0.02)
    time.sleep(0.1)  # let the watchdog hear of it
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    assert gone(int(written.read_text()))
