"""Commands run in a worker of a cluster: here the functions that it calls, in this process."""

import concurrent.futures
import signal
import sys

import psutil
import pytest

from tensortriage.errors import StoreError, UsageError
from tensortriage.runs.commands.process import CommandLine
from tensortriage_fleet.cluster.cluster_commands import run_there, run_whole_there
from tensortriage_fleet.cluster.relay import STDERR, STDOUT, Relay

TWO_STREAMS = "import os, sys; print(sorted(os.listdir(sys.argv[1]))); print('told', file=sys.stderr); sys.exit(3)"
WAITS = """
import sys, time
print("waiting", file=sys.stderr, flush=True)
try:
    time.sleep(1000)
except KeyboardInterrupt:
    print("found")
    sys.exit(130)
"""


def test_a_whole_command_keeps_its_streams_apart(tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside/x").touch()
    with Relay(tmp_path) as relay:
        done = run_whole_there([sys.executable, "-c", TWO_STREAMS, "."], str(tmp_path / "inside"), str(relay.place))
        assert (done.code, done.stdout, relay.heard(STDERR)) == (3, b"['x']\n", b"told\n")
        assert (relay.heard(STDOUT), relay.heard(STDOUT)) == (b"['x']\n", b"")
        (relay.place / STDOUT).write_bytes(b"anew")  # begun again on another node
        assert relay.heard(STDOUT) == b"anew"
    assert [entry.name for entry in tmp_path.iterdir()] == ["inside"]


def test_ctrl_c_reaches_a_whole_command_which_is_heard_before_it_ends(tmp_path):
    with Relay(tmp_path) as relay, concurrent.futures.ThreadPoolExecutor(1) as beside:
        beside.submit(signal.pthread_sigmask, signal.SIG_BLOCK, {signal.SIGINT})  # as in a worker of Ray
        begun = beside.submit(run_whole_there, [sys.executable, "-c", WAITS], str(tmp_path), str(relay.place))
        heard = b""
        while not heard.endswith(b"\n") and not begun.done():
            heard += relay.heard(STDERR)  # a line may come in parts
        relay.interrupt()
        done = begun.result()
        assert heard == b"waiting\n"
        assert (done.code, done.stdout) == (130, b"found\n")


def test_one_watchdog_guards_all_commands_of_a_worker(tmp_path):
    def guarded():
        before = {child.pid for child in psutil.Process().children()}
        assert run_there(CommandLine(["true"], folder=tmp_path)).code == 0
        return before, {child.pid for child in psutil.Process().children()}

    guarded()
    before, after = guarded()
    assert before == after  # none was started, and none ended


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(StoreError) as found:
        Relay(tmp_path / "absent")
    assert found.value.slug == "cluster-folder-unwritable"


@pytest.mark.parametrize("run", [lambda folder: run_whole_there(["true"], str(folder), str(folder)),
                                 lambda folder: run_there(CommandLine(["true"], folder=folder))])  # fmt: skip
def test_a_folder_that_a_node_does_not_have_is_told(tmp_path, run):
    with pytest.raises(UsageError) as found:
        run(tmp_path / "elsewhere")
    assert found.value.slug == "cluster-folder-missing"
