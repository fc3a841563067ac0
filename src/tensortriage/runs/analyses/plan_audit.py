"""The types requested of an engine, against those that it reports.

Engines fall back silently: a kernel that does not exist in fp16 runs in fp32, a device that prefers bf16 uses it
without a request, a build that should be mixed is not. The plan shows it. The request is the engine's options, else the
types of the model; for a node that multiplies dequantized numbers by dequantized numbers, its quantizers request their
own type. Only regions that compute are judged: moving, casting or picking elements rounds nothing.

Where an engine reports the device or provider of each region, a region on another one than requested is a finding as
well, whatever it computes in: a fallback costs time and copies, and hides the device's own results.
"""

import dataclasses
import enum
from collections.abc import Mapping

from tensortriage.engines.base import Engine, Plan, Region
from tensortriage.engines.capabilities import ReportsPrecision
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import TriageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Node
from tensortriage.model.mixed_precision.rounding_nodes import MOVES_DATA
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import MULTIPLIES, quantizers
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.values.dtype import DType, Precision
from tensortriage.values.spec import ValueSpec

_AS_TYPED = ("auto", "dynamic", "mixed")
_ROUNDS_NOTHING = MOVES_DATA | {
    "Cast", "CastLike", "Constant", "ConstantOfShape", "EyeLike", "Shape", "Size", "Pad", "Dropout", "OneHot",
}  # fmt: skip


class PrecisionMatch(enum.Enum):
    """How a built precision compares with the request; the value is the word in documents."""

    AS_ASKED = "as-asked"
    WIDER = "wider"
    NARROWER = "narrower"
    OTHER = "other"
    NOT_JUDGED = "not-judged"

    @property
    def is_finding(self) -> bool:
        """Whether the engine departed from the request."""
        return self in (PrecisionMatch.WIDER, PrecisionMatch.NARROWER, PrecisionMatch.OTHER)


@frozen_dataclass
class AuditedRegion:
    """One region of a plan.

    Attributes:
        name: The engine's own name.
        kind: The engine's layer type.
        implementation: Kernel or tactic; empty when the engine does not report it.
        nodes: ONNX nodes it executes.
        op_types: Their operators, each once, in order.
        asked: Label of the requested element type; empty when the region computes nothing in floating point.
        built: Label of the element type it computes in; empty when the engine does not report it.
        match: How the two compare.
        modules: Modules of the source network that the nodes come from, with class and line, each once.
        device: Device or provider it runs on; empty when the engine does not report it.
        fell_back: Whether that differs from the request, and the region computes there.
    """

    name: str
    kind: str
    implementation: str
    nodes: tuple[str, ...]
    op_types: tuple[str, ...]
    asked: str
    built: str
    match: PrecisionMatch
    modules: tuple[str, ...] = ()
    device: str = ""
    fell_back: bool = False

    @property
    def is_finding(self) -> bool:
        """Whether the engine departed from the request."""
        return self.match.is_finding or self.fell_back


@frozen_dataclass
class PlanAudit:
    """A plan, region by region.

    Attributes:
        model: The ONNX file.
        target: The engine and its options.
        requested: The precision word that the options ask for; empty when the model's own types decide.
        regions: In execution order.
        unplaced: Nodes that no region executes: folded into constants, or swallowed without a trace. Nodes that only
            compute constants or shapes are left out.
        device: Requested device or provider; empty when that was left open.
    """

    model: str
    target: str
    requested: str
    regions: tuple[AuditedRegion, ...]
    unplaced: tuple[str, ...]
    device: str = ""
    format: str = "tensortriage.plan/1"

    @property
    def findings(self) -> tuple[AuditedRegion, ...]:
        """Regions that compute in another type, or run elsewhere, than requested."""
        return tuple(region for region in self.regions if region.is_finding)


def audit(plan: Plan, model: Model, spec: EngineSpec, engine: Engine) -> PlanAudit:
    """Compare a plan with the request.

    Args:
        plan: The engine's plan.
        model: The model it was given.
        spec: The engine and its options.
        engine: The engine, for the precision of one that has no choice.
    """
    requested = requested_precision(spec, engine)
    specs = value_specs(model)
    placed = {name for region in plan.regions for name in region.nodes}
    fed = [value.name for value in model.inputs]
    computed = (
        n for n in model.graph.descendants(fed) if n.op_type != "Constant" and not {*n.outputs} & model.graph.shape_like
    )
    quantized = any(node.op_type == "DequantizeLinear" for node in model.graph.nodes)
    pairs = {pair.result: pair.dtype for pair in quantizers(model.graph)}
    return PlanAudit(
        model=str(model.path or ""),
        target=str(spec),
        requested=requested.value if requested else "",
        regions=tuple(
            dataclasses.replace(
                _audited(region, model, specs, requested, pairs, quantized=quantized),
                device=region.device,
                fell_back=bool(plan.device and region.nodes) and region.device not in ("", plan.device),
            )
            for region in plan.regions
        ),
        unplaced=tuple(node.name for node in computed if node.name not in placed),
        device=plan.device,
    )


def requested_precision(spec: EngineSpec, engine: Engine) -> Precision | None:
    """Return the precision requested of an engine; None when it follows the types of the model.

    An engine without an option for it computes in its own format, which then counts as requested.
    """
    word = spec.options.get("precision", "").strip().lower()
    if not word and "precision" not in engine.options and isinstance(engine, ReportsPrecision):
        word = engine.precision(spec.options)
    if not word or word in _AS_TYPED:
        return None
    return Precision.parse(word)


def _audited(
    region: Region,
    model: Model,
    specs: Mapping[str, ValueSpec],
    requested: Precision | None,
    pairs: Mapping[str, DType],
    *,
    quantized: bool,
) -> AuditedRegion:
    nodes = [model.graph.node(name) for name in region.nodes if name in model.graph]
    declared = next(filter(None, (_computed_in(node, model, specs) for node in reversed(nodes))), None)
    wanted = declared if requested is None or declared is None else requested.dtype
    built = _parsed(region.precision)
    by_pairs = next(filter(None, (_multiplied(node, pairs) for node in nodes)), None)
    return AuditedRegion(
        region.name,
        region.kind,
        region.implementation,
        tuple(node.name for node in nodes),
        tuple(dict.fromkeys(node.op_type for node in nodes)),
        by_pairs.label if by_pairs else wanted.label if wanted else "",
        region.precision,
        _compared_with_pairs(by_pairs, built) if by_pairs else _compared(wanted, built, quantized=quantized),
        model.graph.origin_labels(node.name for node in nodes),
    )


def _multiplied(node: Node, pairs: Mapping[str, DType]) -> DType | None:
    """Return the type that quantizers ask a node to multiply in; None where it reads anything else."""
    if node.domain or node.op_type not in MULTIPLIES or len(node.inputs) < 2 or not {*node.inputs[:2]} <= pairs.keys():
        return None
    return pairs[node.inputs[0]]


def _compared_with_pairs(asked: DType, built: DType | None) -> PrecisionMatch:
    """Compare with the formats of quantizers; the engine may choose the sign of integers."""
    if built is None:
        return PrecisionMatch.NOT_JUDGED
    same = built is asked or (built.is_integer and asked.is_integer and built.bits == asked.bits)
    return PrecisionMatch.AS_ASKED if same else PrecisionMatch.WIDER


def _computed_in(node: Node, model: Model, specs: Mapping[str, ValueSpec]) -> DType | None:
    """Return the floating-point type a node computes in as the model has it; None when it rounds nothing."""
    if (not node.domain and node.op_type in _ROUNDS_NOTHING) or {*node.outputs} & model.graph.shape_like:
        return None
    for name in (*node.outputs, *node.inputs):
        dtype = specs[name].dtype if name in specs else None
        if dtype is not None and dtype.is_float:
            return dtype
    return None


def _parsed(label: str) -> DType | None:
    try:
        return DType.parse(label) if label else None
    except TriageError:
        return None


def _compared(asked: DType | None, built: DType | None, *, quantized: bool) -> PrecisionMatch:
    if asked is None or built is None:
        return PrecisionMatch.NOT_JUDGED
    if asked is built:
        return PrecisionMatch.AS_ASKED
    if not built.is_float:  # without quantizers: the label of a kernel whose first operand is a mask or an index
        return PrecisionMatch.AS_ASKED if quantized and built.is_integer else PrecisionMatch.NOT_JUDGED
    if not asked.is_float:  # int8 was asked for: what the quantizers leave in floating point is not for a plan to judge
        return PrecisionMatch.NOT_JUDGED
    wider, narrower = (built.finfo, asked.finfo) if built.bits > asked.bits else (asked.finfo, built.finfo)
    if wider.nmant >= narrower.nmant and wider.max >= narrower.max:
        return PrecisionMatch.WIDER if built.bits > asked.bits else PrecisionMatch.NARROWER
    return PrecisionMatch.OTHER
