"""A cluster as commands know it, on a stand-in for the connection."""

from tensortriage.sdk import CandidateOutcome, EngineSpec, OracleQuestion, OracleVerdict
from tensortriage_fleet.cluster.cluster_spec import TaskNeeds
from tensortriage_fleet.cluster.place import ClusterPlace, named


class Connection:
    """A cluster that answers each task at once."""

    def __init__(self):
        self.sent, self.needs, self.cancelled = [], [], []

    def offered(self):
        return {"CPU": 4.0, "emulate": 2.0}

    def slots(self, needs):
        return 4

    def share(self, make, parts):
        self.sent.append(parts)
        return make(parts)

    def submit(self, function, *arguments, needs, shared):
        self.needs.append(needs)
        return function, shared, arguments

    def ready(self, references):
        return list(references)

    def result(self, reference):
        function, shared, arguments = reference
        return function(shared, *arguments)

    def cancel(self, reference):
        self.cancelled.append(reference)


def answering(word):
    return lambda candidate, attempt: OracleVerdict(CandidateOutcome.UNRESOLVED, detail=word)


def test_what_is_named_keeps_what_checks_need():
    assert named("local:2,tag=tensorrt").spec.needs == TaskNeeds(tags=("tensorrt",))


def test_checks_are_answered_here_until_it_is_known_what_they_are_made_of():
    connection, known = Connection(), []
    place = ClusterPlace(connection, TaskNeeds(gpus=1))
    with place.checks(
        answering("here"), EngineSpec("emulate"), lambda: (answering, known[0]) if known else None
    ) as run:
        run.submit(OracleQuestion(("a",), 0))
        ((_, first),) = run.wait()
        known.append("there")
        run.submit(OracleQuestion(("b",), 0))
        ((_, second),) = run.wait()
        run.submit(OracleQuestion(("c",), 0))
    assert (first.verdict.detail, second.verdict.detail) == ("here", "there")
    assert connection.sent == ["there"]
    assert connection.needs == [TaskNeeds(1, ("emulate",))] * 2
    assert [arguments for _, _, arguments in connection.cancelled] == [(("c",), 0)]
