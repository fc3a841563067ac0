"""The freedoms of a healthy engine against its reference: one table, in the order in which it is walked.

A row excuses an error by its cost and no more. The first rows allow least, or depend on the model alone; the last ones
need the target's ops as well. Freedoms stand in one block: those that all engines of a class take are expected before
anything else is measured, the others count where ops take them (`tensortriage.envelope.judge`).
"""

import functools
from collections.abc import Collection

from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec, Hardware
from tensortriage.envelope.costs import (
    of_draws,
    of_format,
    of_freedoms,
    of_moved_inputs,
    of_orders,
    of_ties,
)
from tensortriage.envelope.explanations import (
    AMPLIFIED_FP32,
    FOLDED,
    PREDICTED,
    ROUNDED,
    Cost,
    Explanation,
    Needs,
    Usual,
)
from tensortriage.envelope.limits import OPS_IN_FP32, of_equal, of_floor
from tensortriage.envelope.rows.freedoms import FREEDOMS
from tensortriage.envelope.rows.integers import INTEGERS
from tensortriage.model.model import Model
from tensortriage.model.quantization.whole_numbers import beside_ties, has_narrow_types, rounds_to_integers
from tensortriage.model.transforms.folded_norms import has_foldable_norms
from tensortriage.values.dtype import Precision

_order = functools.partial(Explanation, cost=of_orders, allows=lambda cost, _: of_floor(cost))
"""A healthy fp32 evaluation under its options: as far off as the farthest of these is any healthy engine."""

_IN_FP32 = dict.fromkeys(set(Precision) - set(ROUNDED), Usual.EXPECTED)

REGISTRY: tuple[Explanation, ...] = (
    _order(
        name="order-of-sums",
        words="sums in another order, functions as CPUs compute them",
        source="an evaluation whose every operator is `MATCH_FACTOR` times as wrong as a healthy kernel's result",
        options=AMPLIFIED_FP32.options,
    ),
    *(
        _order(
            name=f"order-of-sums-{number}",
            words="sums in yet another order, where roundings to integers may flip",
            source="what a flipped rounding costs depends on which one it is: over seven feeds of a quantized mixer "
            "one evaluation was up to 2.9 times quieter than OpenVINO, the loudest of three 1.2 times",
            options={"accumulator": "fp32", "functions": "cpu", "amplify": amplify, "block": block, "seed": seed},
            applies=rounds_to_integers,
        )
        for number, amplify, block, seed in (
            (2, f"{MATCH_FACTOR - 1:g}", "8", "1"),
            (3, f"{MATCH_FACTOR + 1:g}", "16", "2"),
        )
    ),
    _order(
        name="unrounded",
        words="nothing rounded between operators",
        source="results of engines that compute narrow types in float32 and fuse ops",
        options={"rounding": "none"},
        applies=has_narrow_types,
    ),
    _order(
        name="folded",
        words="weights folded with their BatchNormalization before the first run, stored in the model's narrow type",
        source="over thirty small networks ONNX Runtime was 1.1 to 2.8 times as far off as unrounded",
        options=FOLDED.options,
        applies=lambda model: has_foldable_norms(model) and has_narrow_types(model),
    ),
    Explanation(
        name="number-format",
        words="rounding to the format",
        source="every operator exact, its result rounded to the format; TF32 and formats of blocks shorten operands",
        cost=of_format,
        formats=dict.fromkeys(PREDICTED, Usual.EXPECTED),
    ),
    *FREEDOMS,
    *INTEGERS,
    Explanation(
        name="ties",
        words="a tie that falls on its other side",
        source="float32 carries numbers to ten units in the last place here, within which a Cast, a Round or a Greater "
        "may decide either way: -23.9999964 on OpenVINO (bench/judge_rules.py)",
        cost=of_ties,
        allows=lambda cost, _: cost,
        needs=Needs(alone=OPS_IN_FP32, unproven=True),
        applies=lambda model: beside_ties(model, 0.0) is not None,
        formats=_IN_FP32,
    ),
    Explanation(
        name="amplification",
        words="the model amplifies rounding",
        source="an engine cannot be closer to the reference than the reference is to itself on inputs that float32 "
        "barely separates",
        cost=of_moved_inputs,
        allows=lambda cost, _: of_floor(cost),
        needs=Needs(alone=OPS_IN_FP32, unproven=True),
        draws=4,
        formats=_IN_FP32,
    ),
    Explanation(
        name="chance",
        words="rounding by chance",
        source="of thirteen draws of one distribution, any given draw is the largest once in 13, and rarely by 3 dB",
        cost=of_draws,
        allows=lambda cost, _: of_equal(cost),
        needs=Needs(alone=1.0),
        draws=12,
        formats=dict.fromkeys(set(ROUNDED) - {Precision.INT8}, Usual.EXPECTED),
    ),
)
"""All of them; the first that explains an error is named."""


def freedoms_of_target(
    target: EngineSpec, usual: Usual | None = None, *, op_types: Collection[str] | None = None
) -> tuple[Explanation, ...]:
    """Return the freedoms of a target; see `freedoms_of`."""
    engine = resolve(target)
    return freedoms_of(engine.hardware, engine.precision, usual, engine=engine.known_as, op_types=op_types)


def costing(cost: Cost) -> tuple[Explanation, ...]:
    """Return the rows whose cost a function finds, in order."""
    return tuple(each for each in REGISTRY if each.cost is cost)


def draws_of(precision: Precision) -> int:
    """Return how often rounding to a format is drawn where chance may explain an error; 0 where it explains none."""
    return next((each.draws for each in costing(of_draws) if precision in each.formats), 0)


def orders_of(model: Model) -> tuple[Explanation, ...]:
    """Return the rows by which healthy fp32 evaluations of a model differ."""
    return tuple(each for each in costing(of_orders) if each.applies(model))


def freedoms_of(
    hardware: Hardware,
    precision: Precision,
    usual: Usual | None = None,
    *,
    engine: str = "",
    op_types: Collection[str] | None = None,
) -> tuple[Explanation, ...]:
    """Return the freedoms of a class of engines that compute in a format.

    Args:
        hardware: The class; engines of an unknown one may choose anything. Without habits, nothing is usual.
        precision: The format.
        usual: How usual that is there; None for any.
        engine: The name of one; empty where no more than its class is known.
        op_types: Operators, one of which must be in the model; None for any.
    """
    return tuple(
        each
        for each in costing(of_freedoms)
        if precision in each.formats
        and each.is_of(hardware, engine)
        and (usual is None or hardware.has_habits)
        and usual in (None, each.formats[precision])
        and (op_types is None or each.concerns(op_types))
    )
