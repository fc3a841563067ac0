"""Commands run in a worker of a cluster: here the functions that it calls, in this process."""

import sys
import tempfile

import pytest

from tensortriage.errors import UsageError
from tensortriage.runs.commands.cluster_commands import run_there, run_whole_there
from tensortriage.runs.commands.process import CommandLine

TWO_STREAMS = "import os, sys; print(sorted(os.listdir(sys.argv[1]))); print('told', file=sys.stderr); sys.exit(3)"


def test_a_whole_command_keeps_its_streams_apart(tmp_path):
    (tmp_path / "x").touch()
    done = run_whole_there([sys.executable, "-c", TWO_STREAMS, "."], str(tmp_path))
    assert (done.code, done.stdout, done.stderr) == (3, b"['x']\n", "told\n")


def test_a_whole_command_has_no_file_that_stays_when_its_task_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    done = run_whole_there([sys.executable, "-c", TWO_STREAMS, str(tmp_path)], str(tmp_path))
    assert done.stdout == b"[]\n"


@pytest.mark.parametrize("run", [lambda folder: run_whole_there(["true"], str(folder)),
                                 lambda folder: run_there(CommandLine(["true"], folder=folder))])  # fmt: skip
def test_a_folder_that_a_node_does_not_have_is_told(tmp_path, run):
    with pytest.raises(UsageError) as found:
        run(tmp_path / "elsewhere")
    assert found.value.slug == "cluster-folder-missing"
