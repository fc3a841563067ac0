"""Every error the user can meet, in one tree; each has a slug, a place and a cure.

TriageError
    UsageError          the command line or an API argument is wrong                     exit 2
    ModelError          the ONNX file is corrupt, hostile, or asks for what it lacks      exit 2
    DataError           feeds, saved outputs and other data files                         exit 2
    StoreError          a tensor store or case directory cannot be read or written        exit 2
    EngineMissing       an engine that was asked for cannot be used here                  exit 3
    EngineError         an engine was asked to do its work and did not                    exit 1
        BuildFailed     it refused the model
        RunFailed       it built the model, then failed to run it
        EngineCrashed   its process died
        EngineHung      it exceeded its time limit
        EngineOutOfMemory   it exceeded its memory limit

Errors of other libraries are translated at one border: the module that calls the library.
"""

from collections.abc import Iterable
from typing import ClassVar


class TriageError(Exception):
    """Base of all errors shown to the user.

    Args:
        message: The mistake and its place, one sentence without a final full stop.
        slug: Stable kebab-case identifier, unique to this kind of problem.
        cure: Advice to the user, one sentence in the imperative; empty when nothing is known to help.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, slug: str, cure: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.slug = slug
        self.cure = cure

    def __str__(self) -> str:
        return f"{self.message}; {self.cure}" if self.cure else self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the keyword-only arguments through pickling (process pools)."""
        return (_rebuild, (type(self), self.message, self.slug, self.cure))


def _rebuild(kind: type[TriageError], message: str, slug: str, cure: str) -> TriageError:
    return kind(message, slug=slug, cure=cure)


class UsageError(TriageError):
    """The command line or an API argument is wrong."""


class ModelError(TriageError):
    """The ONNX model is corrupt, hostile, or refers to missing parts."""


class DataError(TriageError):
    """A feed, saved outputs or another data file is unusable."""


class StoreError(TriageError):
    """A tensor store or case directory cannot be read or written."""


class EngineMissing(TriageError):
    """A requested engine cannot be used here (not installed, no device)."""

    exit_code = 3


class WorkerLost(EngineMissing):
    """A worker of a cluster was lost again and again in the same task, or the task was cancelled."""


class EngineError(TriageError):
    """An engine did not do its work; in a check this is an outcome, not the end of the search."""

    exit_code = 1


class BuildFailed(EngineError):
    """The engine refused the model."""


class RunFailed(EngineError):
    """The engine built the model and then failed to run it."""


class EngineCrashed(EngineError):
    """The process of the engine died."""


class EngineHung(EngineError):
    """The engine exceeded its time limit."""


class EngineOutOfMemory(EngineError):
    """The engine exceeded its memory limit."""


def nearest(word: str, known: Iterable[str], most: int = 1, *, cutoff: float = 0.6) -> list[str]:
    """Return the known words most like an unknown one, whatever their case; the most alike first.

    Args:
        word: The unknown word.
        known: The words that would be understood.
        most: How many are returned.
        cutoff: Least likeness, from 0 to 1, as `difflib.SequenceMatcher.ratio` measures it.
    """
    import difflib  # only when something is wrong

    by_case = {name.lower(): name for name in known}
    return [by_case[found] for found in difflib.get_close_matches(word.lower(), by_case, n=most, cutoff=cutoff)]


def did_you_mean(word: str, known: Iterable[str], *, most: int = 1, cutoff: float = 0.6, otherwise: str = "") -> str:
    """Return a cure that offers the known words most like an unknown one.

    Args:
        word: The unknown word.
        known: The words that would be understood.
        most: How many are offered.
        cutoff: Least likeness of an offered name.
        otherwise: The cure when none is like it.
    """
    near = nearest(word, known, most, cutoff=cutoff)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else otherwise
