"""Whether a model has to be cut to be run within memory, and where."""

import logging

from tensortriage.compare.cuts import Cuts, size_words
from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.cutting.narrow_cuts import ModelBlock, blocks_of, largest_weight, weights_bytes
from tensortriage.model.model import Model
from tensortriage.runs.blocks.memory import block_bytes, fits, memory_bytes, whole_bytes

_logger = logging.getLogger(__name__)


@frozen_dataclass
class CutModel:
    """A model that is run block by block; ``cuts`` describes the blocks in words."""

    model: Model
    cuts: Cuts
    blocks: tuple[ModelBlock, ...]


def cut_to_memory(model: Model, limit_bytes: int | None) -> CutModel | None:
    """Return a model, cut to be run within memory; None when it fits, or cannot be cut.

    Args:
        model: The model.
        limit_bytes: Memory that may be used; None for that of the machine.

    Raises:
        UsageError: When what cannot be cut has more weights than memory that may be used (``block-too-large``); where
            it may not fit, that is logged.
    """
    memory, size = memory_bytes(limit_bytes), weights_bytes(model.graph.initializers.values())
    if memory is None or fits(size, memory):
        return None
    blocks = blocks_of(model, weight_bytes=block_bytes(memory))
    if len(blocks) < 2:
        return None
    largest = max(blocks, key=lambda block: block.weight_bytes)
    if not fits(largest.weight_bytes, memory):
        weight, user, weight_bytes = largest_weight(model, largest)
        needed = size_words(whole_bytes(largest.weight_bytes))
        text = (
            f"'{user}' and the nodes that cannot be cut from it have {size_words(largest.weight_bytes)} of weights, "
            f"{size_words(weight_bytes)} of them in '{weight}'"
        )
        if largest.weight_bytes > memory:
            raise UsageError(
                f"{text}: more than the {size_words(memory)} that may be used",
                slug="block-too-large",
                cure=f"raise --memory-limit to {needed}, or cut the node off with triage surgeon extract",
            )
        _logger.warning("%s: comparing these may take %s, and %s may be used", text, needed, size_words(memory))
    return CutModel(model, Cuts(len(blocks), tuple(block.outputs for block in blocks[:-1]), size, memory), blocks)
