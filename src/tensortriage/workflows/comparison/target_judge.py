"""Judges a target's tensors: by the user's tolerance, by the rounding of its file, or by healthy engines' limits."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tensortriage.compare.judgement.judgement import Basis, Judgement
from tensortriage.compare.judgement.relative_error import difference
from tensortriage.compare.judgement.tolerance import EveryTolerance
from tensortriage.compare.judgement.within import is_lost, is_too_coarse, over_coarse
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import PLAIN
from tensortriage.envelope.limits import judged_by
from tensortriage.errors import DataError, EngineError, UsageError
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import is_quantized
from tensortriage.runs.lab import Lab
from tensortriage.values.store import MemoryStore
from tensortriage.workflows.common.judged import HealthyJudge
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage.workflows.comparison.participants import Arrays, Participant
from tensortriage.workflows.comparison.reference_judge import ReferenceJudge

if TYPE_CHECKING:
    from tensortriage.envelope.unrounded_match import FileStanding


class TargetJudge:
    """Judges the targets of one comparison.

    Args:
        request: The user's request.
        model: The model whose tensors are compared.
        reference: The engine that is assumed to be right; None where none is.
        of_reference: Judges the reference.
        lab: The lab that asks engines.
    """

    def __init__(
        self,
        request: CompareRequest,
        model: Model,
        reference: Participant | None,
        of_reference: ReferenceJudge,
        *,
        lab: Lab,
    ) -> None:
        self._request, self._model, self._reference = request, model, reference
        self._of_reference, self._lab = of_reference, lab
        self._files: dict[int, FileStanding] = {}
        self._first: dict[int, str] = {}

    def judge(
        self, target: Participant, feed: Feed, metrics: Mapping[str, Metrics], reference: Arrays, outputs: Arrays
    ) -> Mapping[str, Judgement]:
        """Judge the tensors of a target on a feed; parts of outputs without a limit are omitted.

        Args:
            target: The target.
            feed: The feed.
            metrics: Figures by name.
            reference: The reference's values.
            outputs: The target's.
        """
        if not self._request.tolerances:
            rounded = self._by_rounding(target, feed, reference, metrics)
            others = {n: figure for n, figure in metrics.items() if n not in rounded}
            spec = self._reference.precision_spec if self._reference else None
            spec, own, asked = spec or PLAIN, target.precision_spec, target.model is self._model
            judge = HealthyJudge(self._model, reference=spec, target=own, lab=self._lab, asked=asked)
            judged = judge.judge(feed, others, reference)
            failing = {n: metrics[n] for n in others if n in judged and not judged[n].within}
            rounded |= self._by_rounding(target, feed, reference, failing, golden=True) if failing else {}
            golden = {name: reference[name] for name in rounded if name in reference}
            return judged | rounded | self._on_its_file(target, feed, outputs, golden, rounded)
        tolerance = EveryTolerance(self._request.tolerances)
        return {name: tolerance.judge(name, figure, reference[name], outputs[name]) for name, figure in metrics.items()}

    def rewritten(self, file: Model) -> "FileStanding":
        """Return the judge that compares a file with the network that it may stand for."""
        from tensortriage.envelope.unrounded_match import FileStanding  # files are compared with it

        return self._files.setdefault(id(file), FileStanding(file, self._model, lab=self._lab))

    def _by_rounding(
        self,
        target: Participant,
        feed: Feed,
        reference: Arrays,
        metrics: Mapping[str, Metrics],
        *,
        golden: bool = False,
    ) -> dict[str, Judgement]:
        """Judge outputs of a target whose file rounds the network of the reference's values; none if not.

        Args:
            target: The target.
            feed: The feed.
            reference: The reference's values.
            metrics: Figures of the outputs.
            golden: Whether saved values may be the network's though they could be the file's own as well.
        """
        if self._reference is None or target.model is None:
            return {}
        if self._reference.model is None and not golden and feed.name not in self._of_reference.of_network:
            return {}
        if self._reference.model is not None and target.model is self._model:
            return {}
        from tensortriage.envelope.unrounded_match import is_rounded

        if self._reference.model is not None and is_rounded(self._model):
            return {}
        limits = self.rewritten(target.model).limits(feed, reference, could_be_own=golden)
        return {n: judged_by(limits[n], f, format_name="the file's") for n, f in metrics.items() if n in limits}

    def _on_its_file(
        self, target: Participant, feed: Feed, outputs: Arrays, golden: Arrays, rounded: Mapping[str, Judgement]
    ) -> dict[str, Judgement]:
        """Judge an engine on a file that rounds a network as on any model; return the outputs of which that decides.

        What the file's own rounding costs against the network excuses no engine that does not compute the file, and no
        file of which a few ops lose much of their own results. Nor does it blame one for what it may do to the file.

        Args:
            target: The target.
            feed: The feed.
            outputs: Its values.
            golden: The network's outputs.
            rounded: Whether the cost of the file's rounding explains those of the target.
        """
        if not golden or target.model is None:
            return {}
        from tensortriage.envelope.explanations import CORRECTLY_ROUNDED

        try:
            fed = check_feed(feed, target.model.inputs, casting=Casting.ROUND)
            right = self._lab.outputs(CORRECTLY_ROUNDED, target.model, fed, what="evaluating the file in float64")
            within = {name: array for name, array in golden.items() if rounded[name].within}
            coarse = self._too_coarse(target.model, feed, fed, right, within)
        except (EngineError, UsageError, DataError):
            return {}
        figures = {n: measure(right[n], outputs[n]) for n in golden if n in right and n in outputs}
        builder = resolve(target.precision_spec).builder if target.precision_spec else None
        judge = HealthyJudge(target.model, reference=CORRECTLY_ROUNDED, target=builder, lab=self._lab, asked=True)
        own = judge.judge(fed, figures, right)
        words = "against the file itself, evaluated in float64: "
        costs = (
            self.rewritten(target.model).limits(feed, golden, could_be_own=True) if len(within) < len(golden) else {}
        )
        fine = {n for n in costs.keys() & own if judged_by(costs[n], measure(golden[n], right[n])).within}
        return coarse | {
            n: dataclasses.replace(each, limit=words + each.limit)
            for n, each in own.items()
            if each.within != rounded[n].within and (n in within or n in fine)
        }

    def _too_coarse(self, file: Model, feed: Feed, fed: Feed, right: Arrays, golden: Arrays) -> dict[str, Judgement]:
        """Return the judgement of the output that a few ops of a file lose most of, as `diagnose` asks on real data.

        Raises:
            EngineError: When a form of the file cannot be evaluated.
        """
        first = self._first.setdefault(id(file), feed.name) == feed.name
        errors = {name: difference(golden[name], right[name]) for name in golden if name in right}
        output = max(errors, key=lambda name: errors[name], default="")
        if not first or feed.origin is not Origin.REAL or not output or not is_too_coarse(errors[output]):
            return {}
        standing = self.rewritten(file)
        if is_lost(errors[output]) or not is_quantized(file.graph) or (match := standing.match()) is None:
            return {}
        from tensortriage.diagnose.rungs.quantization.coarse_ops import coarse_ops

        found = coarse_ops(
            self._lab.remembering, standing.beside, fed, MemoryStore(golden), output, spec=match.unrounded
        )
        if found is None:
            return {}
        return {output: Judgement(False, found.words, over_coarse(errors[output]), Basis.FORMAT)}
