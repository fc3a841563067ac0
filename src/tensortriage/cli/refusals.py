"""Why a word is refused: it is an option of an engine or of another program, as other packages recognize.

A package registers a function in the entry-point group `GROUP`. It takes the words of a command and the unknown word,
and returns the error with its cure, or None.
"""

import contextlib
from collections.abc import Sequence

from tensortriage.errors import TriageError, UsageError
from tensortriage.values.registered import registered

GROUP = "tensortriage.refusals"


def refused(command: str, word: str) -> UsageError | None:
    """Return the error for an option or command of another program; None for unknown ones.

    Args:
        command: The words of the command, e.g. ``debug reduce``.
        word: The option, without a value, or the word that names no command.
    """
    for point in registered(GROUP).values():
        found = point.load()(command, word)
        if isinstance(found, UsageError):
            return found
    return None


def of_an_engine(words: Sequence[str], option: str) -> UsageError | None:
    """Return the error for an option of an engine, which belongs into its spec; None where none has it.

    Args:
        words: The command line, which may name the engine.
        option: The option, without a value, e.g. ``--precision``.
    """
    from tensortriage.engines.registry import create, known
    from tensortriage.engines.spec import EngineSpec

    flat = [part for word in words for part in (word.split("=", 1) if word.startswith("-") else [word])]
    target = next((flat[place + 1] for place, word in enumerate(flat[:-1]) if word in ("--target", "-t")), "")
    key = option.lstrip("-").replace("-", "_")
    for name in [target.split(":", 1)[0]] if target else known():
        with contextlib.suppress(TriageError):
            if key in getattr(create(EngineSpec(name)), "options", {}):
                spec = f"{target}{',' if ':' in target else ':'}" if target else f"{name}:"
                cure = f"put it in the engine's spec: --target {spec}{key}=..."
                return UsageError(f"{option} is an option of the engine", slug="option-of-engine", cure=cure)
    return None
