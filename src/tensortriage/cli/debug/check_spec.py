"""From the options of a check to what is run and how it is judged."""

from collections.abc import Sequence

import click

from tensortriage.cli.option_values import CheckValues
from tensortriage.runs.commands.artifacts import Artifacts, paths_of
from tensortriage.runs.commands.check import CheckSpec, ShownOutput, shell_words
from tensortriage.runs.commands.failure_rules import Rules, codes


def spec_of(words: Sequence[str], given: CheckValues) -> CheckSpec:
    """Return the check that a command line describes."""
    return CheckSpec(
        words=shell_words(words),
        rules=rules_of(given),
        timeout_seconds=given["check_timeout"],
        artifacts=Artifacts(paths_of(given["artifacts"]), given["artifacts_dir"]),
        iteration_info=given["iteration_info"],
        shown=shown_of(given),
    )


def rules_of(given: CheckValues) -> Rules:
    """Return the rules of a command line."""
    return Rules(
        fail_codes=codes(given["fail_code"]),
        ignore_codes=codes(given["ignore_fail_code"]),
        fail_patterns=tuple(given["fail_regex"]),
        ignore_patterns=tuple(given["ignore_fail_regex"]),
    )


def shown_of(given: CheckValues) -> ShownOutput:
    """Return whose output is shown.

    Raises:
        UsageError: When both options are given.
    """
    if given["show_output"] and given["hide_fail_output"]:
        raise click.UsageError("--show-output and --hide-fail-output exclude each other")
    if given["show_output"]:
        return ShownOutput.EVERYTHING
    return ShownOutput.NOTHING if given["hide_fail_output"] else ShownOutput.FAILURES
