"""Convert: a model in fp16 or bf16, of a later opset, or with its weights elsewhere."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from tensortriage.compare.judgement.judgement import Judgement
from tensortriage.compare.judgement.relative_error import error_of, ratio_of
from tensortriage.compare.judgement.within import is_lost, within_limit
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure
from tensortriage.engines.onnxruntime.told_types import known_specs
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.envelope.limits import of_conversion, of_one_rounding
from tensortriage.errors import ModelError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.cutting.node_selection import NodeChoice, choose_nodes
from tensortriage.model.mixed_precision.convert_precision import convert as convert_model
from tensortriage.model.mixed_precision.convert_precision import convertible
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.mixed_precision.equivalent_rewrites import clamp_constants, constants_beyond
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.annotate import with_inferred_shapes
from tensortriage.model.transforms.mark_outputs import select_outputs
from tensortriage.model.transforms.opset_upgrade import require_opset
from tensortriage.runs.lab import Lab
from tensortriage.runs.observation.experiment import Experiment, ObservedBuild
from tensortriage.values.dtype import DType, Precision
from tensortriage.values.spec import ValueSpec
from tensortriage.values.text import error_size, magnitude
from tensortriage.workflows.common.output_selection import OutputChoice, chosen_values
from tensortriage.workflows.edits.convert_request import ConvertRequest
from tensortriage.workflows.edits.edit_pipeline import Pass, SurgeryResult, operate
from tensortriage.workflows.edits.requests import ProofRequest
from tensortriage.workflows.edits.verify_edit import Arrays

FLOAT64 = EngineSpec("float64")
MOST_NAMED = 3


def convert(request: ConvertRequest) -> SurgeryResult:
    """Convert a model, prove it, write it.

    Raises:
        UsageError: When nodes are to be kept but no format is given (``kept-without-precision``), or the opset is
            lower than the model's (``opset-lower``).
        TriageError: For whatever else is wrong; nothing is written then.
    """
    if request.kept and request.precision is None:
        raise UsageError(
            "nodes are kept in float32, but no format is named for the others",
            slug="kept-without-precision",
            cure="add --precision fp16 or bf16",
        )
    proof = request.proof
    if request.precision is not None:
        proof = format_proof(proof, request.precision, request.kept, clamps=True)
    notices: list[str] = []

    def passes(model: Model) -> Sequence[Pass]:
        found = _passes(model, request)
        if request.precision is not None and (beyond := _beyond(model, request.precision, request.kept)):
            notices.append(_clamped_words(beyond, request.precision))
            clamp = _Clamping(request.precision, request.kept)
            found = [*found[:-1], ("clamp-constants", clamp), *found[-1:]]
        return found

    done = operate("convert", request.source, request.target, passes, proof)
    return dataclasses.replace(done, notices=(*done.notices, *notices))


@dataclasses.dataclass(frozen=True)
class _Clamping:
    """Brings the constants that are lowered to a format into its range."""

    precision: Precision
    kept: NodeChoice

    def __call__(self, model: Model) -> Model:
        return clamp_constants(model, self.precision, _lowered_nodes(model, self.precision, self.kept)) or model


def _lowered_nodes(model: Model, precision: Precision, kept: NodeChoice) -> frozenset[str]:
    return convertible(model, precision, specs=_specs(model)).difference(choose_nodes(model.graph, kept))


def _beyond(model: Model, precision: Precision, kept: NodeChoice) -> dict[str, float]:
    """Return the constants beyond a format's range that are lowered to it."""
    if not constants_beyond(model, precision):
        return {}
    return constants_beyond(model, precision, _lowered_nodes(model, precision, kept))


def _clamped_words(beyond: Mapping[str, float], precision: Precision) -> str:
    names = ", ".join(f"'{name}' ({magnitude(reach)})" for name, reach in [*beyond.items()][:MOST_NAMED])
    more = f" and {len(beyond) - MOST_NAMED} more" if len(beyond) > MOST_NAMED else ""
    top = float(precision.dtype.finfo.max)
    return (
        f"beyond the range of {precision.value} ({magnitude(top, 6)}), and replaced by {magnitude(top / 2, 6)}: "
        f"{names}{more}; --keep-nodes leaves a constant as it is with the nodes that read it"
    )


def _passes(model: Model, request: ConvertRequest) -> Sequence[Pass]:
    passes = output_passes(model, request.outputs)
    if request.opset is not None:
        version = request.opset
        if version < model.opset:
            raise UsageError(
                f"the model has opset {model.opset}, which cannot be lowered to {version}",
                slug="opset-lower",
                cure="export the model with that opset",
            )
        passes.append((f"opset {version}", lambda m: require_opset(m, version)))
    if request.infer_shapes:
        passes.append(("shape-inference", with_inferred_shapes))
    if request.precision is not None:
        precision = request.precision
        passes.append((precision.value, lambda m: _lowered(m, precision, request)))
    return passes or [("copy", lambda m: Model.from_ir(m.clone().ir))]


def output_passes(model: Model, choice: OutputChoice) -> list[Pass]:
    """Return the pass that makes the chosen values the outputs; none where they are the outputs already."""
    outputs = chosen_values(model, choice)
    if list(outputs) == [spec.name for spec in model.outputs]:
        return []
    return [("outputs", lambda m: select_outputs(m, outputs))]


def _lowered(model: Model, precision: Precision, request: ConvertRequest) -> Model:
    return convert_model(
        model,
        precision,
        specs=_specs(model),
        kept_nodes=choose_nodes(model.graph, request.kept),
        keep_io_types=request.keep_io_types,
    )


def _specs(model: Model) -> Mapping[str, ValueSpec]:
    def outputs_of(path: Path) -> Sequence[ValueSpec]:
        experiment = Experiment(engine=PLAIN, model=Model.load(path), feed=None, observed=ObservedBuild())
        return lab.answer(experiment).built.outputs

    with Lab() as lab:
        return known_specs(model, outputs_of)


def format_proof(
    request: ProofRequest, precision: Precision, kept: NodeChoice | None = None, *, clamps: bool = False
) -> ProofRequest:
    """Return a request for the proof of a model in a number format: its outputs may move by the cost of the format.

    ONNX Runtime's CPU provider lacks most kernels for bf16; then the float64 engine runs the model, whose weights are
    those of the format.

    Args:
        request: How to prove it otherwise.
        precision: The format.
        kept: Nodes that stay float32.
        clamps: Whether constants beyond the format's range were brought into it.
    """
    return dataclasses.replace(
        request,
        engines=(PLAIN, FLOAT64),
        judge=lambda before: FormatJudge(before, precision, kept or NodeChoice(), clamps=clamps),
    )


class FormatJudge:
    """Judges by the cost of rounding every result of the original model to a number format, on the same data.

    ONNX Runtime's CPU provider computes an fp16 model in fp32 here and there, so an overflow need not show when the
    converted model runs; the emulation shows it. A format that cannot hold the model's values is refused.

    Args:
        model: The model before it was converted.
        precision: The format.
        kept: Nodes that stay float32.
        clamps: Whether constants beyond the format's range were brought into it. That alone, in float32, must not
            move an output by more than one rounding to the format.
    """

    def __init__(self, model: Model, precision: Precision, kept: NodeChoice, *, clamps: bool = False) -> None:
        beyond = _beyond(model, precision, kept) if clamps else {}
        self._clamped = tuple(beyond)
        self._model = _Clamping(precision, kept)(model) if beyond else model
        self._precision = precision
        self._kept = kept

    @cached_property
    def _rounded(self) -> Model:
        names = choose_nodes(self._model.graph, self._kept)
        return round_results(self._model, self._precision, specs=_specs(self._model), kept=names)

    def judge(self, feed: Feed, metrics: Mapping[str, Metrics], references: Arrays) -> Mapping[str, Judgement]:
        """See `tensortriage.workflows.edits.verify_edit.EditJudge`.

        Raises:
            ModelError: When the format cannot hold a value on the way to an output (``verify-failed``).
        """
        with Lab() as lab:
            emulated = lab.outputs(PLAIN, self._rounded, feed)
            clamped = lab.outputs(PLAIN, self._model, feed) if self._clamped else {}
        for name, array in clamped.items():
            if name in references:
                self._check_clamped(name, feed, error_of(measure(references[name], array)))
        judged: dict[str, Judgement] = {}
        scale = _scale(feed)
        for name, figure in metrics.items():
            cost = _error(measure(references[name], emulated[name]), scale)
            if not figure.exact and is_lost(cost):
                raise self._lost(name, feed, cost)
            judged[name] = self._judge(figure, cost, scale)
        return judged

    def _judge(self, figure: Metrics, cost: float, scale: float) -> Judgement:
        """Judge one output by its error in the emulated format."""
        error, limit = _error(figure, scale), of_conversion(figure, cost, self._precision)
        what = "of the elements" if figure.exact else f", what {self._precision.value} costs"
        words = f"{error_size(limit.error)}{' ' * figure.exact}{what}"
        return Judgement(within_limit(error, limit.error), words, ratio_of(error, limit.error) or 0.0, limit.basis)

    def _check_clamped(self, name: str, feed: Feed, moved: float) -> None:
        if within_limit(moved, of_one_rounding(self._precision)):
            return
        names = ", ".join(f"'{constant}'" for constant in self._clamped[:MOST_NAMED])
        raise ModelError(
            f"in {self._precision.value}, constants beyond its range ({names}) would have to be replaced by values "
            f"within it, which "
            f"moves output '{name}' by {error_size(moved)} (relative RMS) on {feed.name}",
            slug="verify-failed",
            cure="keep the nodes that read them in fp32, with --keep-nodes; or use bf16",
        )

    def _lost(self, name: str, feed: Feed, cost: float) -> ModelError:
        word = self._precision.value
        what = "becomes NaN or Inf" if math.isinf(cost) else f"is off by {error_size(cost)} (relative RMS)"
        return ModelError(
            f"in {word}, output '{name}' {what} on {feed.name}: the format cannot represent a value on the way",
            slug="verify-failed",
            cure=f"find the nodes to keep in fp32: triage diagnose MODEL --target emulate:precision={word}; "
            "or write the model without verification: --no-verify",
        )


def _scale(feed: Feed) -> float:
    """Return the largest root mean square of a floating-point input; 1 when there is none, or nothing but zeros."""
    arrays = [
        np.asarray(array, np.float64) for array in feed.tensors.values() if DType.from_numpy(array.dtype).is_float
    ]
    return max((float(np.sqrt(np.mean(array**2))) for array in arrays if array.size), default=0.0) or 1.0


def _error(figure: Metrics, scale: float) -> float:
    """Return the relative error of an output; of one that is zero everywhere, relative to the inputs.

    Where a model computes ``x - x``, an engine that rounds one of the two only is no worse than the format.
    """
    if figure.exact or figure.reference_rms > 0.0 or figure.nonfinite_mismatch:
        return error_of(figure)
    return figure.rms_error / scale
