"""A report as plain data: the contents of a case directory, assembled once and rendered many times.

Renderers take a `Report` and return text; none of them measures, opens a model or needs an engine, so an old case can
be rendered in a new format on any machine. The few figures that every renderer shows but no file holds (the share of
the output error that an op explains, which rows come first) are computed here, once, so that all formats agree.
"""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from tensortriage.diagnose.state.layer_rows import PLAINLY, Layers, OutputRow, Outputs
from tensortriage.diagnose.state.verdict import Culprit, Step, Verdict
from tensortriage.errors import StoreError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.report.verdict_words import KIND_WORDS, LOST_WORDS, KindWords, headline
from tensortriage.runs.analyses.ranges import FormatMisfit, RangeRow, Ranges
from tensortriage.runs.case import CaseFacts
from tensortriage.values import serial
from tensortriage.values.text import count, duration, magnitude

T = TypeVar("T")

REPORT_FORMAT = "tensortriage.report/1"


@frozen_dataclass
class Report:
    """Everything a renderer may show.

    Attributes:
        verdict: The verdict of the diagnosis.
        case: The question of the case; None when it has no ``case.json``.
        layers: Layer-wise evidence; no rows when the verdict was reached without it.
        outputs: Model outputs compared; no rows when none could be.
        ranges: Tensors of the model that number formats cannot hold; no rows without a scan.
        format: Version of the JSON form of a report.
    """

    verdict: Verdict
    case: CaseFacts | None = None
    layers: Layers = dataclasses.field(default_factory=Layers)
    outputs: Outputs = dataclasses.field(default_factory=Outputs)
    ranges: Ranges = dataclasses.field(default_factory=Ranges)
    format: str = REPORT_FORMAT

    @classmethod
    def load(cls, folder: Path | str) -> "Report":
        """Assemble the report of a case directory.

        Args:
            folder: Holds ``verdict.json`` and, each optional, ``case.json``, ``layers.json``, ``outputs.json`` and
                ``ranges.json``.

        Raises:
            StoreError: When the directory or its verdict is missing (``case-missing``, ``verdict-missing``), or a file
                in it is damaged (``json-invalid``, ``format-unknown``, ``verdict-unknown``).
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise StoreError(
                f"{folder} is not a case directory",
                slug="case-missing",
                cure="give a directory that 'triage diagnose' wrote (default: ./triage-case)",
            )
        if not (folder / "verdict.json").is_file():
            raise StoreError(
                f"{folder} holds no verdict: its diagnosis was interrupted, or it is the case of another command",
                slug="verdict-missing",
                cure=f"give the same 'triage diagnose ... --case {folder}' again: it resumes from its results",
            )
        verdict = serial.load(folder / "verdict.json", Verdict)
        if verdict.verdict not in {kind.value for kind in KIND_WORDS}:
            raise StoreError(
                f"{folder / 'verdict.json'} has the unknown verdict {verdict.verdict!r}",
                slug="verdict-unknown",
                cure="use the version of TensorTriage that wrote it",
            )
        return cls(
            verdict=verdict,
            case=_optional(folder / "case.json", CaseFacts),
            layers=_optional(folder / "layers.json", Layers) or Layers(),
            outputs=_optional(folder / "outputs.json", Outputs) or Outputs(),
            ranges=_optional(folder / "ranges.json", Ranges) or Ranges(),
        )

    @property
    def words(self) -> KindWords:
        """The verdict in words."""
        return LOST_WORDS if self._is_lost else KIND_WORDS[self.verdict.kind]

    @property
    def _is_lost(self) -> bool:
        """Whether an output is lost though its kind of verdict is no problem."""
        return self.verdict.lost and not self.verdict.kind.exit_code

    @property
    def headline(self) -> str:
        """Op, module and effect of the culprit; without one, the meaning of the kind of verdict."""
        if self._is_lost:
            return LOST_WORDS.title
        return self.verdict.headline or headline(self.verdict.kind, self.verdict.culprits)

    @property
    def left_open(self) -> Sequence[Step]:
        """The questions that were not answered, or skipped."""
        return [step for step in self.verdict.steps if step.answer.lower().startswith(("unknown", "skipped"))]

    def reason_beyond_summary(self, culprit: Culprit) -> str:
        """Return why a culprit is one; empty where the summary has the reason."""
        return "" if culprit.reason in self.verdict.summary else culprit.reason

    def anatomy_beyond_headline(self, culprit: Culprit) -> Sequence[str]:
        """Return the pattern of a culprit's error, without the first finding where the headline states it."""
        return culprit.anatomy[bool(culprit.effect and culprit.effect in self.headline) :]

    @property
    def confidence(self) -> float:
        """Confidence within 0..1, clipped."""
        confidence = self.verdict.confidence
        return min(1.0, max(0.0, confidence)) if math.isfinite(confidence) else 0.0

    @property
    def output_error(self) -> float | None:
        """Largest error of an output, by its own measure; None when unknown or when an output holds NaN or Inf."""
        if not self.outputs.rows or any(row.nonfinite_target for row in self.outputs.rows):
            return None
        errors = [row.error for row in self.outputs.rows]
        return max(errors) if all(math.isfinite(error) for error in errors) else None

    def explained_share(self, culprit: Culprit) -> float | None:
        """Return how much of the output error one culprit explains, 0..1; None when it is unknown.

        It is the error at the outputs when only this op's local error is injected into the reference, over the error
        that the target shows there. Errors of several ops may cancel, so a share above one counts as all of it.
        """
        error = self.output_error
        if not error or culprit.influence is None or not math.isfinite(culprit.influence):
            return None
        return min(1.0, culprit.influence / error)

    def judgement(self, row: OutputRow) -> str:
        """Return the state of an output: ``within`` its floor, ``as predicted`` by rounding alone, or ``outside``."""
        if not row.within:
            return "outside"
        return "within" if row.allowed_by in ("", *PLAINLY) else "as predicted"

    @property
    def output_sentences(self) -> Sequence[str]:
        """Return in words the errors of outputs that are not measured by relative RMS."""
        rows = [row for row in self.worst_outputs() if row.needs_sentence]
        return [f"'{row.name}' {row.words} ({row.measure}: {magnitude(row.error)})" for row in rows]

    @property
    def repro_words(self) -> str:
        """The repro in one line; empty when there is none."""
        repro = self.verdict.repro
        if repro is None:
            return ""
        again = "it fails again" if repro.confirmed else f"not confirmed ({repro.otherwise or 'it passes'})"
        words = f"{repro.folder}/ in the case: {', '.join(repro.nodes[:5])}; {again} in a fresh process"
        if repro.module and repro.anew is not None:
            words += f"; as a PyTorch module, exported again, it {'is wrong again' if repro.anew else 'is right'}"
        return words

    def origin_words(self, culprit: Culprit) -> str:
        """Return the module, class and line that a culprit comes from, and its share of the copies; empty if unknown.

        Example:
            ``encoder.layer.1.mlp.act (GELU, bert.py:281), wrong in 12 of 12 encoder.layer.*.mlp.act``
        """
        copies = f"wrong in {len(culprit.instances)} of {culprit.alike} {culprit.repeated_module}"
        parts = (culprit.origin.beside(culprit.node), copies if culprit.repeated_module else "")
        return ", ".join(filter(None, parts))

    @property
    def cost_words(self) -> str:
        """Time, builds and runs: ``6 min 22 s, 16 builds (5 of tensorrt), 76 checks``."""
        cost = self.verdict.cost
        target = "" if self.case is None else self.case.target.partition(":")[0]
        of_target = cost.builds_by_engine.get(target, cost.builds)
        share = "" if of_target == cost.builds else f" ({of_target:,} of {target})"
        known = f", {count(cost.known, 'answer')} known before" if cost.known else ""
        return f"{duration(cost.seconds)}, {count(cost.builds, 'build')}{share}, {count(cost.checks, 'check')}{known}"

    @property
    def has_layer_errors(self) -> bool:
        """Whether any tensor inside the model was compared (early verdicts come with predictions only)."""
        return any(
            row.in_context_error is not None or row.local_error is not None or row.nonfinite_target
            for row in self.layers.rows
        )

    def worst_outputs(self) -> Sequence[OutputRow]:
        """Return the outputs, failing ones first, then by their error (NaN and Inf count as the largest)."""
        return sorted(
            self.outputs.rows,
            key=lambda row: (row.within, not row.nonfinite_target, -_rank(row.error), row.name),
        )

    def misfits(self) -> Sequence[tuple[RangeRow, FormatMisfit]]:
        """Return the values that the target's format cannot, then those it may not hold, in topological order."""
        found = [(r, m) for r in self.ranges.rows for m in r.misfits if m.format == self.ranges.precision]
        return sorted(found, key=lambda pair: not pair[1].cannot)


def step_cost(step: Step) -> str:
    """Return the time that a step took, and its checks if there were any."""
    return ", ".join([duration(step.seconds), *([count(step.checks, "check")] if step.checks else [])])


def _rank(value: float | None) -> float:
    """Order numbers so that NaN counts as infinite and a missing one as less than zero."""
    if value is None:
        return -1.0
    return math.inf if math.isnan(value) else value


def _optional(path: Path, kind: type[T]) -> T | None:
    return serial.load(path, kind) if path.exists() else None
