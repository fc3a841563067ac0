"""Results derived from answers of engines and stored in a case, keyed by the content of all that they depend on."""

import time
from collections.abc import Callable
from typing import Generic, TypeVar

from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.case import Case
from tensortriage.runs.check_cache import CheckCache, digest

T = TypeVar("T")


class ContentKeys:
    """Makes keys from the dependencies of an answer; each engine is inspected once.

    Args:
        case: The store of answers; it knows which code engines load. None to store nothing.
    """

    def __init__(self, case: Case | None) -> None:
        self._case = case
        self._identities: dict[str, str] = {}

    def digest(self, *parts: object) -> str:
        """Return the key of engines, models and feeds, each known by its content, and of types of JSON."""
        return digest(*map(self._content, parts))

    def _content(self, part: object) -> object:
        match part:
            case EngineSpec():
                return self._identity(part)
            case Model():
                return part.fingerprint
            case Feed():
                return part.digest
        return part

    def _identity(self, engine: EngineSpec) -> str:
        if str(engine) not in self._identities:
            resolved = resolve(engine)
            self._identities[str(engine)] = self._case.code.identity(resolved) if self._case else resolved.identity
        return self._identities[str(engine)]


@frozen_dataclass
class Derived(Generic[T]):
    """One such thing; made by `tensortriage.runs.lab.Lab.derived`.

    Attributes:
        kind: Type of the result; a stored one of another type counts as none.
        key: Digest of its sources.
        question: The question that it answers, for people who look into the case.
        checks: The store; None to store nothing.
    """

    kind: type[T]
    key: str
    question: str
    checks: CheckCache | None

    def known(self) -> T | None:
        """Return it if the case has it."""
        return None if self.checks is None else self.checks.get(self.key, self.kind)

    def keep(self, found: T, *, seconds: float = 0.0) -> T:
        """Store and return it; ``seconds`` is the time it took."""
        if self.checks is not None:
            self.checks.put(self.key, self.question, found, seconds=seconds)
        return found

    def of(self, compute: Callable[[], T]) -> T:
        """Return it, computed if the case lacks it; an error of ``compute`` is raised, and nothing is stored."""
        if (found := self.known()) is not None:
            return found
        started = time.perf_counter()
        found = compute()
        return self.keep(found, seconds=time.perf_counter() - started)
