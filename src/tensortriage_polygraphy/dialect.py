"""The commands of the core with Polygraphy's answers: its lines, names, order and exit codes.

Its faults are not copied: nothing passes that was not compared.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tensortriage.sdk import FINISHED, Dialect, TriageError, UsageError, printable

if TYPE_CHECKING:
    from tensortriage.api import CompareResult, EngineSpec, Tolerance
    from tensortriage.sdk import Rejudged, Reply, Saved

_logger = logging.getLogger("tensortriage.polygraphy")
_FAILED, _USAGE = 1, 2
_TOLD = ("run", "convert", "check", "surgeon", "debug")
"""Commands that begin and end with a line."""
_PREFIXES = {"onnxruntime": "onnxrt", "tensorrt": "trt", "float64": "pluginref"}


class PolygraphyDialect(Dialect):
    """Polygraphy's words, for one command."""

    strict = False
    lines_on_stdout = True
    mark = "[!] "
    inserted = "{value}_polygraphy_surgeon_insert_output"

    def __init__(self) -> None:
        self._line = ""

    def opening(self, path: str, line: str) -> str:
        """Return the line that a command begins with, if it has one."""
        if path.split()[2] not in _TOLD:
            return ""
        self._line = line.removeprefix("triage ")
        return f"RUNNING | Command: {self._line}"

    def closing(self, code: int, seconds: float) -> tuple[int, str]:
        """Return the line that it ends with."""
        level, word = (logging.ERROR, "FAILED") if code else (FINISHED, "PASSED")
        return level, f"{word} | Runtime: {seconds:.3f}s | Command: {self._line}" if self._line else ""

    def exit_code(self, words: Sequence[str], code: int, error: BaseException | None) -> int:
        """Return 1 for failures and for unknown options, 2 for missing or malformed ones, 0 where a tool ran."""
        if isinstance(error, click.UsageError) and not isinstance(error, click.NoSuchOption):
            return _USAGE
        if isinstance(error, TriageError | click.NoSuchOption | OSError):
            return _FAILED
        if error is None and {"debug", "inspect"} & set(words[:3]) and code in (1, 4):
            return 0  # findings are in lines and files
        return code

    def asks_for_run(self, words: Sequence[str], *, named: bool) -> bool:
        """Log that nothing is run where nothing is named.

        Raises:
            UsageError: For options that it takes with another one only (``option-needs-another``).
        """
        for name in ("--use-subprocess", "--warm-up"):
            if any(word.partition("=")[0] == name for word in words) and "--sequential-runners" not in words:
                raise UsageError(
                    f"{name} requires --sequential-runners", slug="option-needs-another",
                    cure="add it; 'triage run' does not require it, only 'triage polygraphy run' does",
                )  # fmt: skip
        if not named:
            _logger.warning("No runners have been selected. Inference will not be run!")
        return named

    def ordered(
        self, runners: "Sequence[EngineSpec]", saved: "Sequence[Saved]"
    ) -> "tuple[EngineSpec | None, list[EngineSpec], list[Saved]]":
        """Return the reference engine, the targets, and saved results in the order of a comparison.

        There every runner is compared with the one behind it, which counts as right; loaded outputs come last. So the
        last of all is the reference here; with more than two, each is compared with that one instead of its neighbour.
        """
        if saved:
            return None, [*runners], [saved[-1], *saved[:-1]]
        if len(runners) < 2:
            return None, [*runners], []
        return runners[-1], [*runners[:-1]], []

    def tolerances(self) -> "list[Tolerance]":
        """Return 1e-5, absolute or relative."""
        from tensortriage.sdk import PolygraphyTolerance

        return [PolygraphyTolerance()]

    def runner_names(self, participants: Sequence[str]) -> Mapping[str, str]:
        """Return its names of runners, by ours, in the order given: ``onnxrt-runner-N0-11/22/26-10:20:30``."""
        counts: dict[str, int] = {}
        now, names = time.strftime("%x-%X"), {}
        for name in participants:
            engine = name.partition(":")[0].partition(" ")[0]
            if " in " in name:
                names[name] = name.rpartition(" in ")[0]
                continue
            prefix = _PREFIXES.get(engine, engine)
            number = counts.get(prefix, 0)
            counts[prefix] = number + 1
            names[name] = f"{prefix}-runner-N{number}-{now}"
        return names

    def tell_comparison(self, result: "CompareResult", names: Mapping[str, str], *, validated: bool) -> bool:
        """Log a comparison, and whether outputs are finite."""
        from tensortriage_polygraphy.comparison_lines import tell, tell_validation

        tell(result, names)
        if validated:
            tell_validation(result, names)
        return True

    def tell_rejudged(self, judged: "Rejudged") -> bool:
        """Log the results of judging saved numbers again."""
        from tensortriage_polygraphy.comparison_lines import tell_rejudged

        tell_rejudged(judged)
        return True

    def ask_about(self, model: Path, nodes: int) -> "Reply":
        """Ask whether a model fails; yes and no are the only answers."""
        from tensortriage.sdk import Reply, ask

        return ask(f"Did '{printable(str(model))}'", {Reply.PASS: "pass", Reply.FAIL: "fail"}, err=False)

    def tell_iterations(self, made: int, *, passed: int, told: int) -> None:
        """Log how many iterations passed."""
        rate = 100.0 * passed / max(told, 1)
        _logger.info("Finished %d iteration(s) | Passed: %d/%d | Pass Rate: %s%%", made, passed, told, rate)

    def check_output(self, output: Path) -> None:
        """Refuse a name without a known suffix.

        Raises:
            UsageError: Always, but for ONNX files (``convert-target-unknown``).
        """
        if output.suffix != ".onnx":
            raise UsageError(
                f"{output} does not show which kind of file to write",
                slug="convert-target-unknown",
                cure="add --convert-to onnx",
            )

    def shapes_inferred(self) -> None:
        """Log it where details are."""
        _logger.debug("Inferred shapes in the model with `onnxruntime.tools.symbolic_shape_infer`'s counterpart here")

    def list_model(
        self,
        path: Path,
        show: Sequence[str],
        external_data_dir: Path | None,
        *,
        unbounded: bool,
        infer_shapes: bool,
        unseen: bool,
    ) -> bool:
        """Print a model in its layout."""
        from tensortriage_polygraphy.model_listing import print_listing

        print_listing(path, show, external_data_dir, unbounded=unbounded, infer_shapes=infer_shapes, unseen=unseen)
        return True
