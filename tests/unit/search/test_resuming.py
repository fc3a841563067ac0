"""A search that is killed, really: the process gets SIGKILL in the middle of a check, and another one goes on."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from search_oracles import fault, problem_of
from tensortriage.search.driver import minimize

TESTS = Path(__file__).resolve().parents[2]
ITEMS, CORE = 80, {7, 8, 60}
SCRIPT = f"""
import sys
from pathlib import Path
from search_oracles import fault, problem_of
from tensortriage.runs.check_cache import CheckCache
from tensortriage.runs.commands.threads import Threads
from tensortriage.search.answers.answer_cache import AnswerCache
from tensortriage.search.driver import minimize

class Logged:
    oracle = fault({CORE}, items={ITEMS}, hiding=0.2, other=0.1, seconds=0.03)

    def __call__(self, candidate, attempt):
        with open("asked", "a") as file:
            file.write(f"{{candidate}}#{{attempt}}\\n")
        return self.oracle(candidate, attempt)

if __name__ == "__main__":
    cache = CheckCache(Path("checks.sqlite"))
    executor = Threads(Logged(), jobs=2) if sys.argv[1] == "parallel" else None
    problem = problem_of(Logged(), {ITEMS})
    print(minimize(problem, answers=AnswerCache.of(problem, cache, executor)).kept, flush=True)
    if executor:
        executor.close()
"""


def stored(folder):
    if not (folder / "checks.sqlite").exists():
        return set()
    with contextlib.closing(sqlite3.connect(folder / "checks.sqlite")) as file:
        return {key for (key,) in file.execute("SELECT key FROM checks")}


@pytest.mark.parametrize("how", ["serial", "parallel"])
def test_killed_again_and_again(tmp_path, how):
    script, asked = tmp_path / "search.py", tmp_path / "asked"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    total = 0
    for kill_after in (2, 9, None):
        known = stored(tmp_path)
        asked.write_text("")
        search = subprocess.Popen([sys.executable, script, how], cwd=tmp_path, env=environment, stdout=subprocess.PIPE)
        while kill_after and len(asked.read_text().splitlines()) < kill_after and search.poll() is None:
            time.sleep(0.005)
        if kill_after:
            os.kill(search.pid, signal.SIGKILL)
        output = search.communicate()[0].decode()
        now = asked.read_text().split("\n")[:-1]
        assert not known.intersection(now)
        assert len(set(now)) == len(now)
        total += len(now)
    plain = minimize(problem_of(fault(CORE, items=ITEMS, hiding=0.2, other=0.1), ITEMS))
    assert output.strip() == str(plain.kept)
    assert total >= plain.checks
    if how == "serial":
        assert total <= plain.checks + plain.repeats + 2  # the two that were under way
