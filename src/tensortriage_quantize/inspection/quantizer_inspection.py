"""Every pair of quantizers of a model: does it fit the values it quantizes, and what is its cost at the outputs?

The question is about a model alone, whatever the source of its scales: calibrated, learned in training, set by hand.
The yardstick is the same model without its pairs. One session with a switch per pair measures the cost of each alone,
and the remaining error without it; the numbers that reach it show how its error divides into clipping and rounding, and
on which feed they are largest.
"""

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from tensortriage.api import Model
from tensortriage.envelope.sdk import PLAIN, Lab, require_numbers
from tensortriage.model.sdk import (
    Correspondence,
    Quantizer,
    are_symmetric,
    dequantized,
    is_quantizer,
    may_rectify,
    uses_half_range,
    uses_seven_bits,
)
from tensortriage.precision.sdk import (
    Graph,
    Meant,
    QuantizerFit,
    Rectifier,
    Run,
    activations,
    calibrate,
    origin_of,
    quantizers,
    rectifiers,
)
from tensortriage.sdk import Feed
from tensortriage_quantize.inspection.blocked_inspection import inspect_blocks
from tensortriage_quantize.inspection.quantizer_rows import PairRow, QuantizersResult
from tensortriage_quantize.inspection.smoothing import smoothing
from tensortriage_quantize.output_errors import errors_of
from tensortriage_quantize.pairs.switched_pairs import QuantizerSwitches, switch_pairs

MOST_REMOVED = 12
"""Pairs that are tried without, those first that cost most alone."""

MOST_NUMBERS = 1 << 20
"""Numbers of one tensor that a pair is judged by; of more, every n-th."""

BATCH_BYTES = 1 << 28

CUTTING = ("scale-too-small", "zero-point")
"""Faults of a pair that clips numbers."""


def inspect_quantizers(
    model: Model,
    feeds: Sequence[Feed],
    *,
    original: Model | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> QuantizersResult:
    """Judge every pair of a model.

    Args:
        model: A model with Q/DQ pairs.
        feeds: Feeds to run, at least one.
        original: The float model, for the originals of weights that are stored quantized.
        progress: Receives the name of a slow step.

    Raises:
        ModelError: When there is no pair that can be switched (``quantizers-none``).
        DataError: When the model's outputs are no numbers (``reference-nan``, ``nothing-compared``).
    """
    blocks = inspect_blocks(model, feeds, original=original)
    pairs = quantizers(model.graph)
    if blocks and all(_makes_scales(model.graph, pair) for pair in pairs):
        names, kind = tuple(feed.name for feed in feeds), origin_of(feeds)
        return QuantizersResult(str(model.path or ""), names, kind, None, (), (), "", None, (), blocks)
    matched = Correspondence.of(original, model) if original is not None else None
    weights = dict(matched.weights()) if matched is not None else {}
    smoothed = _smoothed(model, pairs, weights)
    weights |= smoothed
    with Lab(batch_bytes=BATCH_BYTES) as lab:
        tops, unsure = _activations(model, pairs, feeds, lab, matched.relus if matched is not None else None)
    switched = switch_pairs(model, weights, tops=tops)
    mine = [pair for pair in pairs if pair.dequantize in switched.nodes]
    with Lab(batch_bytes=BATCH_BYTES) as lab:
        with lab.session(PLAIN, switched.model, sequence=True) as run:
            session = _Switched(switched, feeds, run)
            error = session.error(switched.nodes)
            alone = {}
            for index, pair in enumerate(mine):
                progress(f"measuring each pair's cost alone: {index + 1} of {len(mine)}")
                alone[pair.dequantize] = session.error({pair.dequantize})
            worst = sorted(mine, key=lambda pair: -alone[pair.dequantize])
            without = {
                pair.dequantize: session.error({*switched.nodes} - {pair.dequantize}) for pair in worst[:MOST_REMOVED]
            }
        seen = _seen(switched, mine, feeds, lab)
    fits = _fits(model, mine, seen, _Meant(weights, smoothed, tops, unsure))
    rows = tuple(
        _row(pair, fits.get(pair.dequantize), alone[pair.dequantize], without.get(pair.dequantize), model)
        for pair in worst
    )
    best = min((row for row in rows if row.without is not None), key=lambda row: row.without or 0.0)
    helps = best.without is not None and best.without < error
    outgrown = [row for row in rows if row.kind in CUTTING and (row.clipping_share or 0.0) > 0.5]
    named = [row.observed_on for row in outgrown if row.observed_on]
    return QuantizersResult(
        model=str(model.path or ""),
        feeds=tuple(feed.name for feed in feeds),
        inputs=origin_of(feeds),
        error=error,
        pairs=rows,
        fixed=tuple(pair.dequantize for pair in pairs if pair not in mine and pair.dtype.bits <= 8),
        remove=best.node if helps else "",
        error_without=best.without if helps else None,
        recalibrate=tuple(sorted(dict.fromkeys(named), key=lambda name: -named.count(name))),
        blocks=blocks,
    )


def _makes_scales(graph: Graph, pair: Quantizer) -> bool:
    """Return whether a pair dequantizes the scales of others, as in NVFP4."""
    readers = graph.consumers(pair.result)
    return bool(readers) and all(is_quantizer(node) and pair.result in node.inputs[1:2] for node in readers)


class _Switched:
    """Errors at the outputs for any set of pairs."""

    def __init__(self, switched: QuantizerSwitches, feeds: Sequence[Feed], run: Run) -> None:
        self._switched = switched
        self._feeds = feeds
        self._run = run
        self._golden = self._outputs(())
        require_numbers((feed.name, outputs) for feed, outputs in zip(feeds, self._golden, strict=True))

    def error(self, quantized: Collection[str]) -> float:
        """Return the largest relative RMS error of an output when some pairs quantize."""
        return max(errors_of(self._golden, self._outputs(quantized)).values(), default=0.0)

    def _outputs(self, quantized: Collection[str]) -> list[Mapping[str, np.ndarray]]:
        switches = self._switched.feed([name for name in self._switched.nodes if name not in quantized])
        return [self._run({**feed.tensors, **switches}) for feed in self._feeds]


@dataclasses.dataclass(frozen=True, slots=True)
class _Fit:
    """The fit of a pair to its numbers, the feed on which they are largest, and the numbers it is made for."""

    calibration: QuantizerFit
    feed: str
    design: str


def _smoothed(model: Model, pairs: Sequence[Quantizer], weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the originals of weights that were smoothed before they were quantized, smoothed as they were."""
    found = {}
    for pair in pairs:
        readers = model.graph.consumers(pair.result)
        if pair.of_weight and pair.result in weights and all(node.op_type == "MatMul" for node in readers):
            original = weights[pair.result]
            factors = smoothing(original, dequantized(model.graph, pair))
            if factors is not None:
                found[pair.result] = (factors * original).astype(original.dtype)
    return found


def _as_relu(found: _Fit, *, unsure: bool) -> _Fit:
    """Return the fit of a pair that is a ReLU, or may be one: a range made for numbers larger than these is no mistake.

    Other samples make up to twice as wide ones; wider ones are reported where the ReLU is sure.
    """
    fit = found.calibration
    if fit.kind == "scale-too-large" and (unsure or fit.representable[1] < 2.0 * fit.observed[1]):
        fit = dataclasses.replace(fit, kind="" if unsure else "fits", words="")
    return dataclasses.replace(found, calibration=fit, design="ReLU?" if unsure else found.design)


def _activations(
    model: Model, pairs: Sequence[Quantizer], feeds: Sequence[Feed], lab: Lab, known: Collection[str] | None
) -> tuple[dict[str, float], frozenset[str]]:
    """Return the values whose pair is a ReLU or ReLU6, with its upper end, and the uncertain ones.

    It is recognized by the numbers of the model as it is. A range that begins at 0 and is wider than they need may also
    have lost its zero point: without the original that is unknown.

    Args:
        model: The model.
        pairs: Its pairs.
        feeds: Feeds to run.
        lab: Runs it.
        known: Values with a ReLU in the original; None without the original.
    """
    wanted = {pair.value: pair for pair in pairs if may_rectify(model.graph, pair)}
    parts: dict[str, list[np.ndarray]] = {}
    for feed in feeds if wanted else ():
        for name, array in lab.stream(PLAIN, model, feed, list(wanted), specs={}):
            parts.setdefault(name, []).append(np.array(array).reshape(-1))
    candidates = {}
    for name, arrays in parts.items():
        pair, numbers = wanted[name], np.concatenate(arrays)
        zero = model.graph.weight(pair.zero_point) if pair.zero_point else None
        if np.isfinite(numbers).all():
            candidates[name] = Rectifier(numbers, model.graph.weight(pair.scale), zero, pair.dtype)
    sure = dict.fromkeys(known or (), math.inf) | activations(candidates)
    unsure = rectifiers(candidates).keys() - sure.keys() if known is None else frozenset()
    return sure | dict.fromkeys(unsure, math.inf), frozenset(unsure)


@dataclasses.dataclass(frozen=True, slots=True)
class _Meant:
    """The numbers that pairs were made for, as far as they are known.

    Attributes:
        weights: The originals of weights, by the result of the pair.
        smoothed: The smoothed ones.
        tops: Upper ends of values whose pair is a ReLU or ReLU6.
        unsure: Those of these values for which that is uncertain.
    """

    weights: Mapping[str, np.ndarray]
    smoothed: Collection[str]
    tops: Mapping[str, float]
    unsure: Collection[str]


def _fits(
    model: Model, pairs: Sequence[Quantizer], seen: Mapping[str, Sequence[tuple[str, np.ndarray]]], meant: _Meant
) -> dict[str, _Fit]:
    """Return how pairs fit, by their DequantizeLinear; those that cannot be judged are left out."""
    weights, tops = meant.weights, meant.tops
    found, symmetric, seven_bits = {}, are_symmetric(model.graph, pairs), uses_seven_bits(model.graph, pairs)
    for pair in pairs:
        numbers = weights.get(pair.result)
        if pair.value in model.graph.constants:
            numbers = model.graph.weight(pair.value)
        feed = ""
        if numbers is None and pair.value in seen:
            parts = [(name, array) for name, array in seen[pair.value] if array.size]
            if parts and len({array.shape[1:] for _, array in parts}) == 1:
                feed = max(parts, key=lambda part: float(np.abs(part[1]).max()))[0]
                numbers = np.concatenate([array for _, array in parts])
        if numbers is None or not numbers.size or pair.dtype.is_float or pair.dtype.bits > 16:
            continue
        if pair.value in tops:
            numbers = np.clip(numbers, 0.0, tops[pair.value])
        if np.isfinite(numbers).all():
            half = uses_half_range(model.graph, pair)
            zero = model.graph.weight(pair.zero_point) if pair.zero_point else None
            scale = model.graph.weight(pair.scale)
            fit = calibrate(
                numbers, scale, zero,
                axis=pair.axis, dtype=pair.dtype,
                meant=Meant(symmetric, (seven_bits and pair.of_weight) or half, sampled=not pair.of_weight),
            )  # fmt: skip
            design = "7 bits" if seven_bits and pair.of_weight else "half range" if half else ""
            design = "smoothed" if pair.result in meant.smoothed else design
            if pair.value in tops:
                design = "ReLU" if math.isinf(tops[pair.value]) else "ReLU6"
            made = _Fit(fit, feed, design)
            found[pair.dequantize] = _as_relu(made, unsure=pair.value in meant.unsure) if pair.value in tops else made
    return found


def _seen(
    switched: QuantizerSwitches, pairs: Sequence[Quantizer], feeds: Sequence[Feed], lab: Lab
) -> dict[str, list[tuple[str, np.ndarray]]]:
    """Return the numbers that reach pairs in the model with all pairs off, by value, each with the feed."""
    found: dict[str, list[tuple[str, np.ndarray]]] = {}
    wanted = {pair.value for pair in pairs}
    made = [value for value in dict.fromkeys(switched.model.graph.values) if value in wanted]
    off = switched.feed(switched.nodes)
    for feed in feeds:
        for name in wanted & feed.tensors.keys():
            found.setdefault(name, []).append((feed.name, feed.tensors[name]))
        whole = dataclasses.replace(feed, tensors={**feed.tensors, **off})
        for name, array in lab.stream(PLAIN, switched.model, whole, made, specs={}):
            kept = np.array(array)
            rows = max(1, MOST_NUMBERS // max(len(feeds), 1) // max(kept[:1].size, 1)) if kept.ndim else 1
            part = kept[:: max(1, len(kept) // rows)] if kept.ndim else kept.reshape(1)
            found.setdefault(name, []).append((feed.name, part))
    return found


def _row(pair: Quantizer, found: _Fit | None, alone: float, without: float | None, model: Model) -> PairRow:
    fit = found.calibration if found else None
    return PairRow(
        node=pair.quantize or pair.dequantize,
        value=pair.value or pair.stored,
        weight=pair.of_weight or pair.value in model.graph.constants,
        dtype=pair.dtype.label,
        scales=model.graph.weight(pair.scale).size,
        kind=fit.kind if fit else "",
        observed=fit.observed if fit else None,
        observed_on=found.feed if found else "",
        representable=fit.representable if fit else None,
        clipped=fit.clipped if fit else None,
        clipping_share=fit.clipping if fit else None,
        error=fit.error if fit else None,
        best_error=fit.best_error if fit else None,
        alone=alone,
        without=without,
        words=f"{fit.words}; {fit.cure}" if fit and fit.words else "",
        design=found.design if found else "",
    )
