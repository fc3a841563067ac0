import os
import subprocess
import sys

import psutil

from tensortriage.runs.commands.watchdog import Watchdog


def children():
    return {each.pid for each in psutil.Process().children()}


def test_it_kills_what_it_guards_when_it_ends():
    guarded = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)
    watchdog = Watchdog()
    watchdog.guard(guarded.pid)
    watchdog.close()
    assert guarded.wait(60) < 0


def test_it_leaves_alone_what_it_was_told_to_forget():
    watchdog = Watchdog()
    watchdog.guard(os.getpgid(0))
    watchdog.release(os.getpgid(0))
    watchdog.close()


def test_a_thread_that_tells_it_of_a_process_after_its_end_starts_nothing():
    """Nobody would end that process: it was seen where a command began while its runner was closed."""
    watchdog, before = Watchdog(), children()
    watchdog.close()
    watchdog.guard(1)
    watchdog.release(1)
    assert children() == before
