import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from search_oracles import DiesOnArrival, Fault, Memory, Raises, StartsOthers, Trap, Unreadable, fault, problem_of
from tensortriage.errors import EngineCrashed, UsageError
from tensortriage.search.driver import minimize
from tensortriage.search.execution.executors import OracleQuestion
from tensortriage.search.execution.process_pool import ProcessPool
from tensortriage.search.problem import CandidateOutcome
from tensortriage.search.statistics.repeats import Repeats

TESTS = Path(__file__).resolve().parents[3]


def gone(pid):
    """Wait until a process is no more (or only a zombie)."""
    for _ in range(100):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def test_several_processes_give_the_result_of_one_thread():
    oracle = fault({3, 4, 30}, items=40, hiding=0.1, unresolved=0.1, other=0.1)
    problem = problem_of(oracle, 40)
    serial, cache = minimize(problem), Memory()
    with ProcessPool(oracle, workers=2) as pool:
        parallel = minimize(problem, executor=pool, cache=cache)
    assert (parallel.kept, parallel.verdict, parallel.removals) == (serial.kept, serial.verdict, serial.removals)
    assert [(step.items, step.outcome) for step in parallel.history] == [
        (step.items, step.outcome) for step in serial.history
    ]
    assert not cache.twice
    assert len(cache.answers) >= parallel.checks  # what was fetched ahead is kept as well


def test_a_check_that_dies_or_hangs_is_unresolved():
    with ProcessPool(Trap(), workers=2, timeout_seconds=1.0) as pool:
        result = minimize(problem_of(Trap(), 9), executor=pool, repeats=Repeats(premise=1))
    assert result.kept == (0, 1, 3, 7)
    assert [result.removals[item].outcome for item in (3, 7)] == [CandidateOutcome.PASS, CandidateOutcome.PASS]
    assert result.removals[0].detail == "the process of the check died (signal 9)"
    assert result.removals[1].detail == "the process of the check took longer than its time limit"


def test_what_the_oracle_raises_comes_through():
    with ProcessPool(Raises(5), workers=1) as pool, pytest.raises(LookupError, match="no answer to"):
        minimize(problem_of(Raises(5), 5), executor=pool)


def test_an_oracle_that_cannot_be_sent_is_refused():
    with pytest.raises(UsageError) as error:
        ProcessPool(lambda candidate, attempt: None, workers=1)
    assert error.value.slug == "check-not-portable"
    with pytest.raises(UsageError) as error:
        ProcessPool(fault({1}, items=2), workers=0)
    assert error.value.slug == "search-workers-invalid"


def test_an_oracle_that_cannot_be_read_says_so():
    with ProcessPool(Unreadable(), workers=1) as pool, pytest.raises(ValueError, match="no number"):
        minimize(problem_of(Unreadable(), 3), executor=pool)


def test_a_process_that_ends_at_once_is_an_error_and_no_endless_loop():
    with ProcessPool(DiesOnArrival(), workers=1) as pool, pytest.raises(EngineCrashed, match="exit code 3") as error:
        minimize(problem_of(DiesOnArrival(), 3), executor=pool)
    assert error.value.slug == "check-worker-died"


def test_a_hanging_check_is_killed_with_what_it_started(tmp_path):
    file = tmp_path / "started"
    with ProcessPool(StartsOthers(str(file)), workers=1, timeout_seconds=0.5) as pool:
        pool.submit(OracleQuestion((1,), 0))
        ((_, answer),) = pool.wait()
    assert answer.verdict.outcome is CandidateOutcome.UNRESOLVED
    assert all(gone(int(pid)) for pid in file.read_text().split())


def test_processes_do_not_outlive_a_killed_search(tmp_path):
    file = tmp_path / "started"
    script = tmp_path / "search.py"
    script.write_text(
        "from search_oracles import StartsOthers, problem_of\n"
        "from tensortriage.search.driver import minimize\n"
        "from tensortriage.search.execution.process_pool import ProcessPool\n"
        "if __name__ == '__main__':\n"
        f"    oracle = StartsOthers({str(file)!r})\n"
        "    minimize(problem_of(oracle, 3), executor=ProcessPool(oracle, workers=1))\n"
    )
    search = subprocess.Popen([sys.executable, script], env={**os.environ, "PYTHONPATH": str(TESTS)})
    while not file.exists() or not file.read_text():
        assert search.poll() is None
        time.sleep(0.05)
    os.kill(search.pid, signal.SIGKILL)
    search.wait()
    assert all(gone(int(pid)) for pid in file.read_text().split())


def test_room_for_more_is_told():
    oracle = Fault((frozenset({1}),), 3, seconds=0.2)
    with ProcessPool(oracle, workers=2) as pool:
        assert pool.idle() == 2
        for attempt in range(3):
            pool.submit(OracleQuestion((0, 1, 2), attempt))
        assert pool.idle() == -1
        answered = []
        while len(answered) < 3:
            answered += pool.wait()
        assert pool.idle() == 2
    assert {question.attempt for question, _ in answered} == {0, 1, 2}
    assert all(answer.seconds >= 0.2 and answer.verdict.same for _, answer in answered)
