"""The definition of a failure: Polygraphy's rules for exit codes and output, plus patterns that mean pass.

1. An ignored exit code, or output with an ignored pattern, passes.
2. With codes given, only these fail; with patterns given as well, the output must also contain one.
3. With patterns alone, output that contains one fails, whatever the exit code.
4. With neither, every exit code but 0 fails.
"""

import re
from collections.abc import Sequence

from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.runs.commands.process import Finished


@frozen_dataclass
class Ruling:
    """The judgement of a finished command.

    Attributes:
        failed: True for fail, False for pass, None when unresolved (it ran out of time).
        signature: How it failed, for telling failures apart; also given for an abnormal end that passes by the rules.
        reason: One line for a person.
    """

    failed: bool | None
    signature: str
    reason: str


@frozen_dataclass
class Rules:
    """When a command's end means failure.

    Attributes:
        fail_codes: Exit codes that count as failure; empty for every code but 0.
        ignore_codes: Exit codes that count as pass.
        fail_patterns: Regular expressions; a failure's output contains a match of one.
        ignore_patterns: Regular expressions that make a run pass.

    Raises:
        UsageError: For codes to fail and to ignore at once (``check-rules-conflict``), or a pattern that is no regular
            expression (``check-pattern-invalid``).
    """

    fail_codes: tuple[int, ...] = ()
    ignore_codes: tuple[int, ...] = ()
    fail_patterns: tuple[str, ...] = ()
    ignore_patterns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.fail_codes and self.ignore_codes:
            raise UsageError(
                "--fail-code and --ignore-fail-code exclude each other",
                slug="check-rules-conflict",
                cure="name either the codes that fail or those that pass",
            )
        self.patterns()

    def patterns(self) -> tuple[re.Pattern[str], ...]:
        """Return every pattern, compiled."""
        return tuple(map(_compiled, (*self.fail_patterns, *self.ignore_patterns)))

    def judge(self, finished: Finished) -> Ruling:
        """Return whether a finished command failed."""
        code = finished.code
        if code is None:
            return Ruling(None, "timeout", f"took longer than {finished.seconds:.0f} s and was killed")
        ended = f"exit code {code}" if code >= 0 else f"signal {-code}"
        found = finished.printed.matched
        pattern = next((p for p in self.fail_patterns if p in found), None)
        if code in self.ignore_codes:
            return Ruling(False, "", f"{ended}, which is ignored")
        if ignored := next((p for p in self.ignore_patterns if p in found), None):
            return Ruling(False, "", f"{ended}; its output contains '{ignored}', which is ignored")
        named = code in self.fail_codes
        if self.fail_codes and not named:
            return Ruling(False, ended if code else "", f"{ended}, which is not one that fails")
        if self.fail_patterns and pattern is None:
            return Ruling(False, ended if code else "", f"{ended}; no pattern occurs in its output")
        if pattern is not None:
            return Ruling(True, "failed", f"{ended}; its output contains '{pattern}'")
        return Ruling(named or code != 0, "failed" if named else ended if code else "", ended)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"'{pattern}' is not a regular expression: {error}",
            slug="check-pattern-invalid",
            cure="write it in Python's syntax; escape special characters with a backslash",
        ) from error


def codes(words: Sequence[str]) -> tuple[int, ...]:
    """Return exit codes from words.

    Raises:
        UsageError: When one is not an integer (``check-code-invalid``).
    """
    try:
        return tuple(int(word) for word in words)
    except ValueError:
        raise UsageError(
            f"{' '.join(words)}: not exit codes",
            slug="check-code-invalid",
            cure="give integers, e.g. --fail-code 1 139",
        ) from None
