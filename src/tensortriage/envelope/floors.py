"""Noise floors: the relative error that a healthy engine must be allowed at every tensor.

The floor of fp32 is measured by one *loud* evaluation, whose every operator is ten times as wrong as a healthy kernel's
result: sums in float32 in another order, functions as inaccurate as CPUs compute them. What ten times the usual noise
does at a tensor is what an engine may do there. Where noise grows smoothly that is ten times the floor; where it only
flips decisions (a rounding to int8, a comparison) it is what flips cost, and no more. What they cost depends on which
ones they are, so that models which round to integers have the floor of the loudest of three evaluations.

For a narrower format the floor is the error that remains when every operator is exact and its result is rounded to the
format. Models that cut values to whole numbers (positions to the buckets of relative attention) are also evaluated with
results passed on unrounded where engines fuse: a value on the edge falls to one side with one rounding more, and to the
other with one less.
"""

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import ErrorFigures, error_of, least_floor
from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.compare.judgement.within import fp32_floor_of, loud_limit
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.freedoms import Freedom
from tensortriage.envelope.member_errors import MemberError
from tensortriage.envelope.members import CENTRE, WITNESS, member, spread
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.traversal import all_nodes
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.folded_norms import has_foldable_norms
from tensortriage.model.transforms.rewrite_helpers import is_standard
from tensortriage.runs.lab import Lab
from tensortriage.values.block_format import BLOCK_FORMATS
from tensortriage.values.dtype import DType, Precision
from tensortriage.values.store import TensorStore

ROUNDED = (Precision.FP16, Precision.BF16, Precision.FP8E4M3, Precision.FP8E5M2, Precision.INT8)
"""Formats whose rounding can be emulated result by result."""

PREDICTED = (*ROUNDED, Precision.TF32, *BLOCK_FORMATS)
"""Formats whose error can be predicted; TF32 and formats of blocks shorten operands of products, not results."""

LOUD = member({"accumulator": "fp32", "functions": "cpu", "amplify": f"{MATCH_FACTOR:g}"})
"""A healthy fp32 evaluation whose every operator errs `MATCH_FACTOR` times as much."""

LOUD_AGAIN = {
    f"loud {number}": member({"accumulator": "fp32", "functions": "cpu", **options})
    for number, options in enumerate(
        (
            {"amplify": f"{MATCH_FACTOR - 1:g}", "block": "8", "seed": "1"},
            {"amplify": f"{MATCH_FACTOR + 1:g}", "block": "16", "seed": "2"},
        ),
        2,
    )
}
"""Two more, for models that round to integers: what a flipped rounding costs depends on which one it is. Over seven
feeds of a quantized mixer one evaluation was up to 2.9 times quieter than OpenVINO, the loudest of three 1.2 times."""

UNROUNDED = EngineSpec("reference")
"""Nothing rounded between operators: what engines make of narrow types that compute in float32 and fuse."""

FOLDED = EngineSpec("reference", {"norms": "folded"})
"""Nor that, and weights that took their BatchNormalization in before the first run are kept in the model's narrow type,
as is every factor on the way: over thirty small networks ONNX Runtime was 1.1 to 2.8 times as far off as unrounded."""


@dataclasses.dataclass(frozen=True, slots=True)
class Floors:
    """Relative noise floors by value name.

    Attributes:
        fp32: Floor of a healthy fp32 engine; it may be `MATCH_FACTOR` times as far off.
        target: Floor of a healthy engine in the target's format; equals ``fp32`` for fp32.
        emulated: Figures of the emulated format, where one was emulated; with their NaN and Inf counts they tell what
            the format cannot hold.
        source: How the fp32 floor was found: ``envelope`` or ``input jitter``.
        reference: Figures of the reference's own values against the centre of the envelope, as far as it was judged.
        taken: Freedoms that the target took, by value; its floor allows for what they cost.
    """

    fp32: Mapping[str, float]
    target: Mapping[str, float]
    emulated: Mapping[str, MemberError]
    source: str
    reference: Mapping[str, MemberError] = dataclasses.field(default_factory=dict)
    taken: Mapping[str, Freedom] = dataclasses.field(default_factory=dict)


def envelope_floors(
    lab: Lab,
    model: Model,
    feed: Feed,
    values: Sequence[str],
    *,
    precision: Precision,
    kept: Collection[str] = (),
    reference: TensorStore | None = None,
    reference_name: str = "",
    judged: Sequence[str] | None = None,
    seen: Callable[[str, np.ndarray], None] | None = None,
    what: str,
) -> Floors:
    """Measure the floors of values of a model on one feed, from nothing but these two.

    Args:
        lab: Where engines are asked.
        model: The model (whole, or exploded).
        feed: Its inputs.
        values: Values whose floors are wanted, in topological order.
        precision: The target's format.
        kept: Nodes of the model that compute in fp32 whatever the format.
        reference: The reference's values, to be judged by the envelope.
        reference_name: Tells references apart.
        judged: Values at which the reference is judged; None for all.
        seen: Told every value of the centre while it is evaluated.
        what: Said while it takes place, e.g. ``every layer``.

    Raises:
        EngineError: When the model cannot be evaluated, as for an operator without float64 arithmetic.
        UsageError: Likewise.
    """
    members = fp32_members(model)
    loud = tuple(members)
    formats = format_members(model, precision, kept)
    members |= formats
    found = spread(
        lab,
        model,
        feed,
        values,
        members,
        witness=reference,
        witness_name=reference_name,
        witnessed=judged,
        seen=seen,
        what=f"floors of {what}",
    )
    fp32: dict[str, float] = {}
    for each in loud:
        for name, figure in found[each].items():
            fp32[name] = max(fp32.get(name, 0.0), fp32_floor(figure))
    target, least = dict(fp32), least_floor(precision if precision in ROUNDED else Precision.FP32)  # TF32: of results
    for each in formats:
        for name, figure in found[each].items():
            target[name] = max(target.get(name, 0.0), error_of(figure), 0.0 if figure.exact else least)
    return Floors(fp32, target, found.get("format", {}), "envelope", found.get(WITNESS, {}))


def fp32_members(model: Model) -> dict[str, EngineSpec]:
    """Return the evaluations by name of which the one farthest from the centre gives a value's fp32 floor."""
    again = LOUD_AGAIN if rounds_to_integers(model) else {}
    return {"loud": LOUD, **again, **narrow_members(model)}


def narrow_members(model: Model) -> dict[str, EngineSpec]:
    """Return the evaluations by name of a model typed in a narrow format by engines that compute it in float32."""
    if not narrow_types(model):
        return {}
    return {"unrounded": UNROUNDED, **({"folded": FOLDED} if has_foldable_norms(model) else {})}


def fp32_floor(loud: ErrorFigures) -> float:
    """Return the floor that makes `MATCH_FACTOR` floors what a loud evaluation shows, chance allowed for."""
    error = error_of(loud)
    if not math.isfinite(error):  # NaN or Inf at one end of the noise: no finite error is a fault here
        return math.inf
    allowed = fp32_floor_of(loud_limit(loud))
    return allowed if loud.exact else max(allowed, least_floor(Precision.FP32))


def format_member(precision: Precision, kept: Collection[str] = ()) -> EngineSpec | None:
    """Return the evaluation of an fp32 model in a format, some nodes kept in fp32; None for fp32 and wider."""
    if precision is Precision.TF32 or precision in BLOCK_FORMATS:
        return member({"operands": precision.value})
    if precision is Precision.INT8 or (kept and precision in ROUNDED):
        words = {"kept": "+".join(sorted(kept))} if kept else {}
        return EngineSpec("emulate", {"precision": precision.value, **words})
    return member({"format": precision.value}) if precision in ROUNDED else None


def format_members(model: Model, precision: Precision, kept: Collection[str] = ()) -> dict[str, EngineSpec]:
    """Return the evaluations by name of which the one farthest from the centre predicts the error in a format.

    None for fp32 and wider. The first is called ``format``; where values are cut to whole numbers, another fuses.
    """
    first = format_member(precision, kept)
    if first is None:
        return {}
    return {"format": first} if first.name != CENTRE.name else either_side(model, "format", first.options)


def either_side(model: Model, name: str, options: Mapping[str, str]) -> dict[str, EngineSpec]:
    """Return the evaluation under an arithmetic by its name, and the one that fuses where that moves whole numbers."""
    first = {name: member(options)}
    return {**first, f"{name} fused": member({**options, "fused": "true"})} if cuts_to_integers(model) else first


def narrow_types(model: Model) -> bool:
    """Say whether a model declares values in float16 or bfloat16."""
    return any(spec.dtype in (DType.FLOAT16, DType.BFLOAT16) for spec in value_specs(model).values())


def rounds_to_integers(model: Model) -> bool:
    """Say whether a model rounds values to integers as it computes: by Q/DQ pairs, quantized operators, or Round."""
    return any(is_standard(node, *_TO_INTEGERS) for node in all_nodes(model.ir))


def cuts_to_integers(model: Model) -> bool:
    """Say whether a model makes whole numbers of others as it computes, by a Cast as well."""
    if any(is_standard(node, *_TO_INTEGERS, "Floor", "Ceil") for node in all_nodes(model.ir)):
        return True
    casts = [node for node in model.graph.nodes if node.op_type == "Cast"]
    if not casts:
        return False
    specs = value_specs(model)
    dtypes = [(specs[node.inputs[0]].dtype, specs[node.outputs[0]].dtype) for node in casts if node.inputs[0] in specs]
    return any(before and before.is_float and after and after.is_integer for before, after in dtypes)


_TO_INTEGERS = ("QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "Round")


def jitter(tensors: Mapping[str, np.ndarray], *, seed: int = 0) -> dict[str, np.ndarray]:
    """Return a copy of a feed with every float32 and float64 element moved by -1, 0 or +1 ulp, reproducibly.

    Args:
        tensors: Arrays by name; those of other types are handed on.
        seed: Of the random directions.
    """
    rng = np.random.default_rng(seed)
    moved: dict[str, np.ndarray] = {}
    for name, array in tensors.items():
        if array.dtype not in (np.float32, np.float64):
            moved[name] = array
            continue
        direction = rng.integers(-1, 2, array.shape)
        towards = np.where(direction > 0, np.inf, -np.inf).astype(array.dtype)
        moved[name] = np.where(direction == 0, array, np.nextafter(array, towards)).astype(array.dtype)
    return moved
