"""What the debug commands share: the options of a check, whose own words follow ``--check``.

Polygraphy gives every word after ``--check`` to the check. So do we, up to a lone ``--``; and a check that is quoted as
one text ends where its quotes end. A quoted check is run by a shell.
"""

from collections.abc import Sequence
from pathlib import Path

import click

from tensortriage.cli.options import READ, WRITTEN_FILE, WRITTEN_FOLDER, Adds, GuideCommand, Written, option, together

CHECK, ARTIFACTS = "Check", "Artifacts"
CHECK_FLAGS = ("--check", "--check-inference")
CHECK_LISTS = (
    "--fail-code",
    "--fail-returncode",
    "--ignore-fail-code",
    "--ignore-fail-returncode",
    "--fail-regex",
    "--ignore-fail-regex",
    "--artifacts",
)


class CheckingCommand(GuideCommand):
    """A command of the guide whose ``--check`` takes all words up to a lone ``--``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the words of the check aside, then parse the others."""
        ours, check = split_check(args)
        ctx.meta["check"] = check
        return super().parse_args(ctx, ours)


def split_check(words: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """Return the words without the check, and the words of the check (None when there is none)."""
    for position, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if word == "--":
            break
        if flag not in CHECK_FLAGS:
            continue
        rest = list(words[position + 1 :])
        if equals:
            return [*words[:position], *rest], [value]
        if rest and any(character.isspace() for character in rest[0]) and not Path(rest[0]).exists():
            return [*words[:position], *rest[1:]], rest[:1]
        end = rest.index("--") if "--" in rest else len(rest)
        return [*words[:position], *rest[end + 1 :]], rest[:end]
    return list(words), None


check_options = together(
    option(
        "--check",
        "--check-inference",
        "check",
        metavar="CMD...",
        expose_value=False,
        heading=CHECK,
        help="Command that judges; exit code 0 is a pass. All words up to a lone -- belong to it; in one pair of "
        "quotes it is run by a shell. Without --check, engines judge, or you do.",
    ),
    option(
        "--fail-code",
        "--fail-returncode",
        "fail_code",
        multiple=True,
        metavar="N...",
        heading=CHECK,
        help="Only these exit codes of the check are failures.",
    ),
    option(
        "--ignore-fail-code",
        "--ignore-fail-returncode",
        "ignore_fail_code",
        multiple=True,
        metavar="N...",
        heading=CHECK,
        help="These exit codes of the check are passes.",
    ),
    option(
        "--fail-regex",
        multiple=True,
        metavar="RE...",
        heading=CHECK,
        help="The check fails only if its output contains one of these; without --fail-code its exit code is then "
        "ignored.",
    ),
    option(
        "--ignore-fail-regex",
        multiple=True,
        metavar="RE...",
        heading=CHECK,
        help="The check passes if its output contains one of these.",
    ),
    option(
        "--check-timeout",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        heading=CHECK,
        help="Time limit of a check; one that takes longer is killed and counts as neither pass nor failure.",
    ),
    option("--show-output", is_flag=True, heading=CHECK, rare=True, help="Show the output of passing checks as well."),
    option(
        "--hide-fail-output", is_flag=True, heading=CHECK, rare=True, help="Do not show the output of failing checks."
    ),
    option(
        "--artifacts",
        multiple=True,
        metavar="PATH...",
        heading=ARTIFACTS,
        help="Files to move to good/, bad/ or other/ after each check.",
    ),
    option(
        "--artifacts-dir",
        "--art-dir",
        "artifacts_dir",
        type=WRITTEN_FOLDER,
        default="polygraphy_artifacts",
        show_default=True,
        metavar="DIR",
        heading=ARTIFACTS,
        rare=True,
        help="Where these directories are made.",
    ),
    option(
        "--iteration-info",
        "--iter-info",
        "iteration_info",
        type=WRITTEN_FILE,
        metavar="FILE",
        heading=ARTIFACTS,
        rare=True,
        help="JSON file in which the check finds the number of its iteration.",
    ),
    option(
        "--save-debug-replay",
        type=Written(read_too=True),
        metavar="FILE",
        heading=ARTIFACTS,
        rare=True,
        help="Write every verdict to a replay.",
    ),
    option(
        "--load-debug-replay",
        type=READ,
        metavar="FILE",
        heading=ARTIFACTS,
        rare=True,
        help="Take verdicts from a replay of the same model and check.",
    ),
)
"""How the check is run and judged."""


def artifact_options(heading: str, default: str, text: str) -> Adds:
    """Declare where the check finds what it is to judge.

    Args:
        heading: Heading in the help.
        default: Name of the file.
        text: What it is.
    """
    return together(
        option("--iter-artifact", "--intermediate-artifact", "iter_artifact", type=WRITTEN_FILE, default=default,
               show_default=True, metavar="FILE", heading=heading, help=text),
        option("--no-remove-intermediate", is_flag=True, heading=heading, rare=True, help="Do not remove that file."),
    )  # fmt: skip


def check_words() -> list[str] | None:
    """Return the words of the check of the command that is running; None when there is none.

    Raises:
        UsageError: For ``--check`` without a command.
    """
    words: list[str] | None = click.get_current_context().meta.get("check")
    if words is not None and not words:
        raise click.UsageError("--check needs a command")
    return words
