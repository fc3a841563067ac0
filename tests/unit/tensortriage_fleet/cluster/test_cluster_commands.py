"""Commands run in a worker of a cluster: here the functions that it calls, in this process."""

import psutil
import pytest

from tensortriage.errors import UsageError
from tensortriage.runs.commands.process import CommandLine
from tensortriage_fleet.cluster.cluster_commands import run_there


def test_one_watchdog_guards_all_commands_of_a_worker(tmp_path):
    def guarded():
        before = {child.pid for child in psutil.Process().children()}
        assert run_there(CommandLine(["true"], folder=tmp_path)).code == 0
        return before, {child.pid for child in psutil.Process().children()}

    guarded()
    before, after = guarded()
    assert before == after  # none was started, and none ended


def test_a_folder_that_a_node_does_not_have_is_told(tmp_path):
    with pytest.raises(UsageError) as found:
        run_there(CommandLine(["true"], folder=tmp_path / "elsewhere"))
    assert found.value.slug == "cluster-folder-missing"
