"""GPUs of one machine: each job has one, and what it starts, an engine or a command, sees no other."""

import contextlib
import os
import sys
import threading

import numpy as np
import pytest

from models import mlp
from tensortriage.engines.process.gpus import Gpus, own_gpus, visible_gpus
from tensortriage.engines.script import ScriptEngine
from tensortriage.runs.commands.process import CommandLine, Processes
from tensortriage.runs.commands.threads import Threads
from tensortriage.search.execution.executors import OracleQuestion

SEES = """
import os
import numpy as np

class Sees:
    def compile(self, model, options):
        return self
    def run(self, feed):
        return {"y": np.full((1, 2), float(os.environ["CUDA_VISIBLE_DEVICES"]), np.float32)}
"""
"""An engine whose result is the number of the GPU that its process sees."""


@pytest.mark.parametrize(
    ("named", "found"),
    [("0,1", ("0", "1")), ("GPU-5ebe, 3", ("GPU-5ebe", "3")), ("2,-1,3", ("2",)), ("", ()), ("0;rm -rf", ())],
)
def test_what_the_variable_names_is_visible(monkeypatch, named, found):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert visible_gpus() == found


def test_a_job_has_what_the_fewest_use_and_one_gpu_is_left_to_cuda():
    gpus = Gpus(("0", "1", "2"))
    with gpus.taken() as one, gpus.taken() as other:
        assert {one, other} == {"0", "1"}
        with gpus.taken(2) as both:
            assert both.split(",")[0] == "2"
        with gpus.taken(5) as every, gpus.taken(0):
            assert set(every.split(",")) == {"0", "1", "2"}
    assert own_gpus() == ""
    with Gpus(("0",)).taken() as none:
        assert none == ""


def test_engines_and_commands_of_checks_side_by_side_see_one_gpu_each(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    (tmp_path / "sees.py").write_text(SEES)
    mlp().save(tmp_path / "net.onnx")
    together = threading.Barrier(2)
    code = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])"

    def seen(_candidate, _attempt):
        together.wait()
        with (
            contextlib.closing(
                ScriptEngine().compile(tmp_path / "net.onnx", {"file": str(tmp_path / "sees.py"), "attribute": "Sees"})
            ) as session,
            Processes() as processes,
        ):
            by_engine = session.run({"x": np.ones((1, 4), np.float32)})["y"][0, 0]
            by_command = processes.run(CommandLine([sys.executable, "-S", "-c", code])).printed.text
        together.wait()
        return by_engine, int(by_command), own_gpus()

    threads = Threads(seen, jobs=2)
    for number in range(2):
        threads.submit(OracleQuestion((str(number),), 0))
    answers = []
    while len(answers) < 2:
        answers += [answer.verdict for _, answer in threads.wait()]
    threads.close()
    assert sorted(answers) == [(4, 4, "4"), (7, 7, "7")]
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "4,7"
