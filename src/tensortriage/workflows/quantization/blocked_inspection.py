"""What is quantized in blocks: do the scales fit the numbers that they are for, and are they such as formats keep?"""

import contextlib
import dataclasses
from collections.abc import Sequence

import numpy as np

from tensortriage.compare.quantization.block_fit import fit_blocks
from tensortriage.engines.base import Limits
from tensortriage.engines.spec import PLAIN
from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.quantization.blocked import BlockedQuantizer, blocked_quantizers
from tensortriage.runs.capture import capture
from tensortriage.runs.runner import Tally
from tensortriage.runs.workspace import Workspace


@dataclasses.dataclass(frozen=True, slots=True)
class BlockRow:
    """One tensor that is quantized in blocks.

    Attributes:
        node: Its QuantizeLinear, or the DequantizeLinear of a weight that is stored quantized.
        value: What is quantized, or what is made of the stored weight.
        weight: Whether it is a constant.
        dtype: Label of the quantized type.
        axis: The axis along which neighbours share a scale.
        block: How many do.
        scales: Number of its scales.
        kind: A word of `tensortriage.compare.quantization.block_fit.BlockFit`.
        error: Relative RMS error of quantizing the numbers; None where these are not known.
        best_error: The same with the best scales.
        words: What is wrong with it, and what to do; empty where nothing is.
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


def inspect_blocks(model: Model, feeds: Sequence[Feed], *, original: Model | None = None) -> tuple[BlockRow, ...]:
    """Judge everything that a model quantizes in blocks.

    Args:
        model: The model.
        feeds: What to run on; the first one is.
        original: The float model, for the originals of weights that are stored quantized and keep their name there.
    """
    graph = model.graph
    found = blocked_quantizers(graph)
    if not found:
        return ()
    numbers = {
        each.value: graph.weight(each.value) for each in found if not each.stored and each.value in graph.constants
    }
    if original is not None:
        weights = original.graph.constants
        numbers |= {e.value: original.graph.weight(e.value) for e in found if e.stored and e.value in weights}
    open_values = [each.value for each in found if not each.stored and each.value not in graph.constants]
    if open_values:
        numbers |= _seen(model, feeds[0], open_values)
    return tuple(row for each in found if (row := _row(model, each, numbers.get(each.value))) is not None)


def _seen(model: Model, feed: Feed, values: Sequence[str]) -> dict[str, np.ndarray]:
    """Return what reaches quantizers on a feed; nothing where the model cannot be run here."""
    given = {name: feed.tensors[name] for name in values if name in feed.tensors}
    made = [name for name in dict.fromkeys(values) if name not in given]
    with Workspace() as workspace, contextlib.suppress(EngineError):
        found = capture(
            PLAIN, model, feed, made, workspace=workspace, specs={}, limits=Limits(), tally=Tally(), batch_bytes=None
        )
        given |= {name: np.array(array) for name, array in found}
    return given


def _row(model: Model, each: BlockedQuantizer, numbers: np.ndarray | None) -> BlockRow | None:
    graph = model.graph
    scale = graph.weight(each.scale)
    stored = next((node.inputs[0] for node in graph.nodes if node.name == each.node), "")
    spec = graph.constants.get(stored) if each.stored else None
    shape = numbers.shape if numbers is not None else spec.shape if spec is not None else None
    if shape is None or not all(isinstance(size, int) for size in shape):
        return None
    if numbers is not None and not np.isfinite(numbers.astype(np.float64)).all():
        numbers = None
    fit = fit_blocks(
        numbers,
        scale,
        graph.weight(each.zero_point) if each.zero_point else None,
        shape=tuple(size for size in shape if isinstance(size, int)),
        axis=each.axis,
        block=each.block,
        dtype=each.dtype,
    )
    weight = each.stored or each.value in graph.constants
    return BlockRow(
        each.node,
        each.value,
        weight,
        each.dtype.label,
        each.axis,
        each.block,
        int(scale.size),
        fit.kind,
        fit.error,
        fit.best_error,
        fit.words,
    )
