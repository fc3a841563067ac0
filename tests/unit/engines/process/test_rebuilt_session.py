"""One build at a time: the one before is let go first, and a time limit holds for builds to come."""

import pytest

from tensortriage.engines.process.rebuilt_session import RebuiltSession
from tensortriage.errors import RunFailed


class Build:
    """What a worker would hold."""

    def __init__(self, events, name):
        self.events, self.name, self.info = events, name, {"name": name}
        events.append(f"build {name}")

    def allow(self, run_seconds):
        self.events.append(f"{self.name} has {run_seconds:g} s")

    def close(self):
        self.events.append(f"close {self.name}")


class Session(RebuiltSession):
    def __init__(self):
        super().__init__((), (), title="engine")
        self.events = []

    def build(self, name):
        self._check_open()
        return self._rebuilt(lambda: Build(self.events, name))


def test_a_new_build_takes_the_place_of_the_one_before():
    session = Session()
    assert session.info == {}
    session.build("a")
    session.allow(5.0)
    session.build("b")
    assert session.info == {"name": "b"}
    session.close()
    session.close()
    assert session.events == ["build a", "a has 5 s", "close a", "build b", "b has 5 s", "close b"]
    with pytest.raises(RunFailed, match="closed"):
        session.build("c")


def test_a_build_that_fails_leaves_none():
    session = Session()
    session.build("a")
    with pytest.raises(ZeroDivisionError):
        session._rebuilt(lambda: 1 / 0)
    assert session.events[-1] == "close a"
    assert session.info == {}
