"""The options of a check: the command that judges, when its end is a failure, and the files it leaves behind."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensortriage.values.options import flag, flags, option, request
from tensortriage.values.output_files import Place

if TYPE_CHECKING:
    from tensortriage.runs.commands.check import CheckSpec

CHECK, ARTIFACTS = "Check", "Artifacts"


@request
class CheckOptions:
    """A command as the judge."""

    # fmt: off
    words: tuple[str, ...] = option(
        "--check --check-inference", "CMD...",
        "Command that judges; exit code 0 is a pass. All words up to a lone -- belong to it; in one pair of quotes it "
        "is run by a shell. Without --check, engines judge, or you do.", default=(), group=CHECK)
    fail_codes: tuple[str, ...] = option(
        "--fail-code --fail-returncode", "N...", "Only these exit codes of the check are failures.", default=())
    ignore_codes: tuple[str, ...] = option(
        "--ignore-fail-code --ignore-fail-returncode", "N...", "These exit codes of the check are passes.", default=())
    fail_patterns: tuple[str, ...] = option(
        "--fail-regex", "RE...", "The check fails only if its output contains one of these; without --fail-code its "
        "exit code is then ignored.", default=())
    ignore_patterns: tuple[str, ...] = option(
        "--ignore-fail-regex", "RE...", "The check passes if its output contains one of these.", default=())
    timeout_seconds: float | None = option(
        "--check-timeout", "SECONDS", "Time limit of a check; one that takes longer is killed and counts as neither "
        "pass nor failure.", default=None, above=0)
    shown: str = flags(
        ("--show-output", "everything", "Show the output of passing checks as well."),
        ("--hide-fail-output", "nothing", "Do not show the output of failing checks."), default="failures", rare=True)
    artifacts: tuple[str, ...] = option(
        "--artifacts", "PATH...", "Files to move to good/, bad/ or other/ after each check.",
        default=(), group=ARTIFACTS)
    artifacts_dir: Path = option(
        "--artifacts-dir --art-dir", "DIR", "Where these directories are made.",
        default=Path("polygraphy_artifacts"), writes=Place.FOLDER, rare=True)
    iteration_info: Path | None = option(
        "--iteration-info --iter-info", "FILE", "JSON file in which the check finds the number of its iteration.",
        default=None, writes=Place.FILE, rare=True)
    # fmt: on

    def value(self) -> "CheckSpec | None":
        """Return the check; None without a command."""
        return self.spec() if self.words else None

    def spec(self) -> "CheckSpec":
        """Return the check; it has no words if a person judges instead."""
        from tensortriage.runs.commands.artifacts import Artifacts, paths_of
        from tensortriage.runs.commands.check import CheckSpec, ShownOutput, shell_words
        from tensortriage.runs.commands.failure_rules import Rules, codes

        return CheckSpec(
            words=shell_words(self.words),
            rules=Rules(
                fail_codes=codes(self.fail_codes),
                ignore_codes=codes(self.ignore_codes),
                fail_patterns=self.fail_patterns,
                ignore_patterns=self.ignore_patterns,
            ),
            timeout_seconds=self.timeout_seconds,
            artifacts=Artifacts(paths_of(self.artifacts), self.artifacts_dir),
            iteration_info=self.iteration_info,
            shown=ShownOutput(self.shown),
        )


def save_replay_field() -> Path | None:
    """Declare where the verdicts of a check are written."""
    return option("--save-debug-replay", "FILE", "Write every verdict to a replay.", default=None, writes=Place.FILE,
                  rewrites=True, rare=True, group=ARTIFACTS)  # fmt: skip


def load_replay_field() -> Path | None:
    """Declare the replay to read verdicts from."""
    return option("--load-debug-replay", "FILE", "Read verdicts from a replay of the same model and check.",
                  default=None, rare=True, group=ARTIFACTS)  # fmt: skip


def artifact_field(default: str, text: str, **more: Any) -> Any:
    """Declare the file in which the check finds its model."""
    return option("--iter-artifact --intermediate-artifact", "FILE", text, default=Path(default), writes=Place.FILE,
                  **more)  # fmt: skip


def keep_artifact_field() -> bool:
    """Declare whether the last thing that was judged is left there."""
    return flag("--no-remove-intermediate", "Do not remove that file.", rare=True)
