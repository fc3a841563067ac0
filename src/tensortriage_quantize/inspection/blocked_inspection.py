"""Quantization in blocks: do the scales fit the numbers that they are for, and are they such as formats keep?"""

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tensortriage.api import EngineError, Model
from tensortriage.envelope.sdk import CORRECTLY_ROUNDED, PLAIN, Lab
from tensortriage.model.sdk import BlockedQuantizer, blocked_quantizers, extract, made_of_constants
from tensortriage.sdk import DType, Feed, Origin
from tensortriage_quantize.inspection.block_fit import BlockFit, Blocks, fit_blocks


@dataclasses.dataclass(frozen=True, slots=True)
class BlockRow:
    """One tensor that is quantized in blocks.

    Attributes:
        node: Its QuantizeLinear, or the DequantizeLinear of a weight that is stored quantized.
        value: The quantized value, or the value made of the stored weight.
        weight: Whether it is a constant.
        dtype: Label of the quantized type.
        axis: The axis along which neighbours share a scale.
        block: How many do.
        scales: Number of its scales.
        kind: A word of `tensortriage_quantize.inspection.block_fit.BlockFit`, or `NOT_JUDGED`.
        error: Relative RMS error of quantizing the numbers; None where these are not known.
        best_error: The same with the best scales.
        words: The fault and its cure; empty where there is none.
    """

    node: str
    value: str
    weight: bool
    dtype: str
    axis: int
    block: int
    scales: int
    kind: str
    error: float | None
    best_error: float | None
    words: str


NOT_JUDGED = "not-judged"
"""Kind of a tensor that is quantized with unknown scales."""


def inspect_blocks(model: Model, feeds: Sequence[Feed], *, original: Model | None = None) -> tuple[BlockRow, ...]:
    """Judge everything that a model quantizes in blocks.

    Args:
        model: The model.
        feeds: Feeds, of which the first is run.
        original: The float model, for the originals of weights that are stored quantized and keep their name there.
    """
    found = blocked_quantizers(model.graph)
    if not found:
        return ()
    names = [name for each in found for name in (each.quantized or each.value, each.scale, each.zero_point) if name]
    arrays = _arrays(model, feeds[0], dict.fromkeys(names))
    weights = original.graph.constants if original is not None else {}
    rows = []
    for each in found:
        numbers = arrays.get(each.value)
        if each.stored:
            numbers = original.graph.weight(each.value) if original is not None and each.value in weights else None
        rows.append(_row(model, each, numbers, arrays))
    return tuple(rows)


def _arrays(model: Model, feed: Feed, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Return values that are constant, computed from constants, or seen on a feed, as far as they can be."""
    graph = model.graph
    found = {name: graph.weight(name) for name in names if name in graph.constants}
    found |= {name: feed.tensors[name] for name in names if name in feed.tensors}
    computed = [name for name in names if name not in found and made_of_constants(graph, name)]
    if computed:
        nodes = [node.name for node in graph.ancestors(computed)]
        part = extract(model, nodes, specs={}, outputs=computed)
        found |= _seen(part, Feed("constants", {}, Origin.REAL), computed)
    open_values = [name for name in names if name not in found]
    return found | (_seen(model, feed, open_values) if open_values else {})


def _seen(model: Model, feed: Feed, values: Sequence[str]) -> dict[str, np.ndarray]:
    """Return values on a feed, of ONNX Runtime or, for types that it lacks, evaluated; none where neither runs it."""
    with Lab(batch_bytes=None) as lab:
        for engine in (PLAIN, CORRECTLY_ROUNDED):
            with contextlib.suppress(EngineError):
                return dict(lab.stream(engine, model, feed, values, specs={}))
    return {}


def _row(
    model: Model, each: BlockedQuantizer, numbers: np.ndarray | None, arrays: Mapping[str, np.ndarray]
) -> BlockRow:
    scale, stored, zero_point = (arrays.get(name) for name in (each.scale, each.quantized, each.zero_point))
    shape = numbers.shape if numbers is not None else stored.shape if stored is not None else None
    element = stored if stored is not None else zero_point
    dtype = each.dtype or (DType.from_numpy(element.dtype) if element is not None else None)
    if scale is None or shape is None or dtype is None or (each.zero_point and zero_point is None):
        words = "it cannot be judged: its scales or numbers come from nodes that cannot be run here"
        fit = BlockFit(NOT_JUDGED, words=words)
    else:
        if numbers is not None and not np.isfinite(numbers.astype(np.float64)).all():
            numbers = None
        fit = fit_blocks(numbers, scale, zero_point, shape=shape, blocks=Blocks(each.axis, each.block, dtype))
    return BlockRow(
        each.node,
        each.value,
        each.stored or each.value in model.graph.constants,
        dtype.label if dtype is not None else "",
        each.axis,
        each.block,
        0 if scale is None else int(scale.size),
        fit.kind,
        fit.error,
        fit.best_error,
        fit.words,
    )
