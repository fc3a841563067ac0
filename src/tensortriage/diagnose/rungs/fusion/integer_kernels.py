"""Ops that an engine computes as one integer kernel, with results that are one step off.

Between a DequantizeLinear and a QuantizeLinear engines compute in integers: a Softmax from a table of exponentials.
Such a kernel rounds once more, or has another factor. Some results are then one step off, never more, and no op is to
blame for it. A kernel that does not round at all is wrong: all of its results are half a step lower on average.
"""

import numpy as np

from tensortriage.compare.judgement.within import always_cuts_off, cuts_off
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.local_errors.wired_ops import Wired, wrong_ends
from tensortriage.diagnose.measurements.suggested_commands import layers_command
from tensortriage.diagnose.rungs.fusion.joint_ops import Together
from tensortriage.diagnose.state.confidence import INTEGER_ARITHMETIC
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.model.ir.graph import Graph
from tensortriage.values.dtype import DType
from tensortriage.values.store import TensorStore
from tensortriage.values.text import error_size, percent

SOFTMAX_SHARE = 255.0 / 256.0
"""Factor of ONNX Runtime's integer Softmax (1.31.1) on a share, then rounded, where the step is 1/255: in rows of 4 to
64 it cuts off 44 to 3 % of the results to be rounded up where inputs spread by 1, more where they spread further; of 2
nearly equal ones all: that factor is half a step there."""

QUESTION = "is the integer kernel wrong, or does it only round differently?"


def off_by_a_step(inv: Investigation, evidence: Evidence, joint: Together) -> Conclusion | None:
    """Return the verdict on sets of ops whose wrong results are all integers, dequantized or not, one step off.

    Args:
        inv: The investigation.
        evidence: The evidence so far.
        joint: Sets that are wrong only together, and make the failure.
    """
    graph, golden = inv.model.graph, inv.golden.of(evidence.feed)
    units = {value: _unit(graph, value) for item in joint.sets for value in item.errors}
    if not units or None in units.values():
        return None
    made = wrong_ends(inv, evidence.feed, joint.sets)
    steps: dict[str, np.ndarray] = {}
    for value, unit in units.items():
        sides = [in_units(array, unit or 1.0) for array in (made.get(value), golden[value]) if array is not None]
        if len(sides) == 2 and sides[0] is not None and sides[1] is not None:
            steps[value] = sides[0] - sides[1]
    share = max((float(np.mean(away != 0)) for away in steps.values()), default=1.0)
    shares = {value: _healthy_share(graph, item) for item in joint.sets for value in item.errors}
    never = [value for value, away in steps.items() if _never_rounds(graph, golden, value, away, shares[value])]
    fine = len(steps) == len(units) and all(map(cuts_off, steps.values())) and not never
    largest = max((int(np.abs(away).max(initial=0)) for away in steps.values()), default=0)
    inv.record.answered(
        QUESTION,
        f"{'no' if fine else 'yes'}: {percent(share)} of the integers differ, by {largest} at most"
        + (f"; '{never[0]}' is cut off everywhere, where the model rounds to nearest" if never else ""),
        unequal={value: float(np.mean(away != 0)) for value, away in steps.items()},
        largest_step=largest,
    )
    if not fine:
        return None
    first = joint.sets[0]
    kinds = " + ".join(graph.node(name).op_type for name in first.nodes)
    others = f" and {len(joint.sets) - 1} more such sets" if len(joint.sets) > 1 else ""
    name, error, _ = evidence.worst_feed.worst_output()
    target = str(inv.question.target)
    return Conclusion(
        VerdictKind.ROUNDING,
        INTEGER_ARITHMETIC,
        f"no op is to blame: {kinds} ({', '.join(map(repr, first.nodes))}){others} are one integer kernel on "
        f"{target}, one step off in {percent(share)} of its results, as where they are cut off and not rounded; "
        f"output '{name}' is off by {error_size(error)}, of which that explains {percent(joint.explained)}",
        next=[layers_command(inv.question)],
    )


def _unit(graph: Graph, value: str) -> float | None:
    """Return how far apart neighbouring results of a quantizer are: 1 for integers, the scale once dequantized.

    None for values that no quantizer makes, and for scales that are no constant or several numbers, as no activation
    has.
    """
    maker = graph.producer(value)
    if maker is None or maker.op_type not in ("QuantizeLinear", "DequantizeLinear"):
        return None
    if maker.op_type == "QuantizeLinear":
        return 1.0
    scale = graph.weight(maker.inputs[1]) if maker.inputs[1] in graph.constants else None
    return float(scale.reshape(-1)[0]) if scale is not None and scale.size == 1 else None


def _healthy_share(graph: Graph, item: Wired) -> float:
    """Return the relative error of an integer kernel of given ops before it rounds."""
    return SOFTMAX_SHARE if any(graph.node(name).op_type == "Softmax" for name in item.nodes) else 1.0


def _never_rounds(graph: Graph, golden: TensorStore, value: str, steps: np.ndarray, share: float) -> bool:
    """Return whether a quantizer's results are cut off where it rounds to nearest, by its operand.

    Args:
        graph: The model's.
        golden: Values of the reference.
        value: Name of the quantizer's result, dequantized or not.
        steps: How many steps it is off.
        share: Healthy error of the quantizer's operand, as a share of it.
    """
    maker = graph.producer(value)
    dequantized = maker is not None and maker.op_type == "DequantizeLinear"
    quantizer = graph.producer(maker.inputs[0]) if maker is not None and dequantized else maker
    if quantizer is None or quantizer.op_type != "QuantizeLinear" or quantizer.inputs[0] not in golden:
        return False
    operands = [graph.weight(name) if name in graph.constants else None for name in quantizer.inputs[1:] if name]
    if any(operand is None or operand.size != 1 for operand in operands):
        return False
    scale, zero = (float(operand.reshape(-1)[0]) for operand in (*operands, np.zeros(1))[:2] if operand is not None)
    rounded = in_units(golden[value], scale if dequantized else 1.0)
    numbers = np.asarray(golden[quantizer.inputs[0]], np.float64) / scale
    if rounded is None or rounded.shape != numbers.shape:
        return False
    if dequantized:  # so without zero point
        rounded = rounded + int(zero)
    return always_cuts_off(rounded + steps, rounded, numbers + zero, numbers * share + zero)


def in_units(values: np.ndarray, unit: float) -> np.ndarray | None:
    """Return values in units, int64; None where they are no whole numbers of them, by more than a product rounds."""
    array = np.asarray(values)
    dtype = DType.from_numpy(array.dtype)
    whole = np.rint(scaled := array.astype(np.float64) / unit)
    exact = np.abs(scaled - whole) <= np.abs(whole) * (float(dtype.finfo.eps) if dtype.is_float else 0.0)
    return whole.astype(np.int64) if bool(exact.all()) else None
