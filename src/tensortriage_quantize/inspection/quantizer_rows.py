"""Rows of the pairs of quantizers of a model, and the pair to remove: the result of their inspection."""

import dataclasses

from tensortriage_quantize.inspection.blocked_inspection import BlockRow


@dataclasses.dataclass(frozen=True, slots=True)
class PairRow:
    """One pair.

    Attributes:
        node: Its QuantizeLinear, or the DequantizeLinear of a weight that is stored quantized.
        value: The quantized value, or the weight as stored.
        weight: Whether it is a constant.
        dtype: Label of the quantized type.
        scales: Number of its scales.
        kind: ``fits`` (within 3 dB of the best scale for these numbers, or of its size),
            ``scale-too-small``, ``scale-too-large``, ``zero-point``, ``axis`` or ``scale-not-positive``; empty when it
            cannot be judged (floating-point types, no numbers).
        observed: Smallest and largest number that reach it.
        observed_on: Feed with the largest magnitude; empty for a constant.
        representable: Smallest and largest number that it can make.
        clipped: Share of the numbers that are cut off.
        clipping_share: Share of its squared error that the cut-off numbers hold; the rest is rounding.
        error: Relative RMS error of the tensor behind it.
        best_error: The same with the best scale for these numbers.
        alone: Largest relative RMS error of an output when no other pair quantizes.
        without: The error when all pairs but this one quantize; None when that was not tried.
        words: The fault and its cure; empty where it fits.
        design: Its intended effect besides rounding, in a word: ``ReLU``, ``ReLU6``, ``7 bits``, ``half range`` or
            ``smoothed``; ``ReLU?`` where only the float model could decide; else empty.
    """

    node: str
    value: str
    weight: bool
    dtype: str
    scales: int
    kind: str
    observed: tuple[float, float] | None
    observed_on: str
    representable: tuple[float, float] | None
    clipped: float | None
    clipping_share: float | None
    error: float | None
    best_error: float | None
    alone: float
    without: float | None
    words: str
    design: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class QuantizersResult:
    """The pairs of a model.

    Attributes:
        model: The file.
        feeds: The feeds of the inspection.
        inputs: ``real`` or ``random``.
        error: Largest relative RMS error of an output with all pairs, against none; None without pairs.
        pairs: All that can be switched, those first that cost most alone.
        fixed: Weights that are stored quantized and whose originals are unknown; they count as exact.
        remove: The pair whose removal helps most; empty when none helps.
        error_without: The remaining error without it.
        recalibrate: Feeds on which ranges cut off more than they round, the most ranges first.
        blocks: Tensors that are quantized in blocks, in topological order.
    """

    model: str
    feeds: tuple[str, ...]
    inputs: str
    error: float | None
    pairs: tuple[PairRow, ...]
    fixed: tuple[str, ...]
    remove: str
    error_without: float | None
    recalibrate: tuple[str, ...]
    blocks: tuple[BlockRow, ...] = ()
    format: str = "tensortriage.quantizers/1"
