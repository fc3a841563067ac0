"""Commands side by side on this machine: GPUs are shared out, and leaving ends what runs."""

import sys
import threading

from tensortriage.runs.commands.process import CommandLine
from tensortriage_fleet.cluster.command_pool import CommandNeeds, CommandPool

GPU, NONE = CommandNeeds(on_gpu=True), CommandNeeds()
TELLS = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])"


def test_commands_on_gpus_have_one_each_and_others_see_all(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "a,b")
    both = threading.Barrier(2)

    def work(run):
        both.wait(60)
        printed = run(CommandLine([sys.executable, "-c", TELLS])).printed.last_words()
        both.wait(60)
        return printed

    with CommandPool.open(None, 2, {GPU, NONE}) as pool:
        assert {future.result() for future in [pool.submit(GPU, work), pool.submit(GPU, work)]} == {"a", "b"}
        assert {future.result() for future in [pool.submit(NONE, work), pool.submit(NONE, work)]} == {"a,b"}


def test_what_runs_is_killed_and_what_waits_is_not_begun():
    begun = threading.Event()

    def work(run):
        begun.set()
        return run(CommandLine([sys.executable, "-c", "import time; time.sleep(600)"])).code

    with CommandPool.open(None, 1, {NONE}) as pool:
        running, waiting = pool.submit(NONE, work), pool.submit(NONE, work)
        begun.wait(60)
    assert waiting.cancelled()
    assert running.exception() is not None or running.result() < 0  # it may not have been started yet
