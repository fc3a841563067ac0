from search_oracles import fault, problem_of
from tensortriage.search.answers.answer_cache import AnswerCache
from tensortriage.search.answers.speculation import Speculation
from tensortriage.search.dialogue import Ask, SearchState
from tensortriage.search.driver import minimize
from tensortriage.search.execution.executors import InProcess
from tensortriage.search.passes.deletion import one_minimal
from tensortriage.search.passes.prefix_search import narrow
from tensortriage.search.problem import CandidateOutcome, OracleVerdict

ITEMS = 40
SAME, PASS = (OracleVerdict(CandidateOutcome.SAME),), (OracleVerdict(CandidateOutcome.PASS),)


def begin():
    state = SearchState(problem_of(fault(items=ITEMS), ITEMS), frozenset(range(ITEMS)))
    yield from narrow(state)
    yield from one_minimal(state)


def next_ask(*answers):
    dialogue = begin()
    ask = next(dialogue)
    for one in answers:
        ask = dialogue.send(one)
    return ask


def test_both_continuations_of_a_question_are_foreseen():
    ahead = Speculation(begin, lambda candidate: None).after([PASS], next_ask(PASS))
    first = [next(ahead) for _ in range(2)]
    assert set(first) == {*next_ask(PASS, PASS).candidates, *next_ask(PASS, SAME).candidates}


def test_known_answers_are_followed():
    second = next_ask(PASS)
    (known,) = next_ask(PASS, SAME).candidates
    speculation = Speculation(begin, lambda candidate: SAME[0] if candidate in (*second.candidates, known) else None)
    ahead = speculation.after([PASS], second)
    assert [next(ahead) for _ in range(2)] == [known, *next_ask(PASS, SAME, SAME).candidates]


def test_many_candidates_at_once_mostly_pass():
    state = SearchState(problem_of(fault(items=3), 3), frozenset(range(3)))
    speculation = Speculation(lambda: one_minimal(SearchState(state.problem, state.current)), lambda candidate: None)
    ahead = list(speculation.after([], next(one_minimal(state))))
    assert ahead[0] == state.current


def test_at_the_end_nothing_is_foreseen():
    def short():
        yield Ask((frozenset({1}),))

    assert list(Speculation(short, lambda candidate: None).after([], next(short()))) == []


class Eager(InProcess):
    """Pretends that so many checks fit at once, and answers the last one first."""

    def __init__(self, oracle, slots):
        super().__init__(oracle)
        self.slots = slots
        self.most = 0

    def idle(self):
        return self.slots - len(self._queue)

    def wait(self):
        self.most = max(self.most, len(self._queue))
        self._queue.reverse()
        return super().wait()


def test_what_is_fetched_ahead_never_changes_the_result():
    for core, slots in (({3}, 5), ({3, 4, 5}, 2), ({0, 20, 39}, 3)):
        oracle = fault(core, items=ITEMS, hiding=0.2, unresolved=0.1, rate=0.9)
        problem = problem_of(oracle, ITEMS)
        serial = minimize(problem)
        eager = Eager(oracle, slots)
        ahead = minimize(problem, answers=AnswerCache.of(problem, executor=eager))
        assert eager.most == slots
        assert (ahead.kept, ahead.verdict, ahead.removals) == (serial.kept, serial.verdict, serial.removals)
        steps = [[(s.items, s.attempt, s.outcome) for s in result.history] for result in (serial, ahead)]
        assert steps[0] == steps[1]


def test_a_question_is_submitted_once():
    class Recording(Eager):
        def submit(self, question):
            submitted.append(question)
            super().submit(question)

    submitted = []
    problem = problem_of(fault({3, 30}, items=ITEMS), ITEMS)
    minimize(problem, answers=AnswerCache.of(problem, executor=Recording(problem.oracle, 4)))
    assert len(set(submitted)) == len(submitted)
    assert AnswerCache(InProcess(fault({1}, items=2)), None, repr).known(submitted[0]) is None
