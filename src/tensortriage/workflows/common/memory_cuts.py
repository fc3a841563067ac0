"""Whether a model has to be cut to be run within memory, and where."""

from tensortriage.compare.cuts import Cuts
from tensortriage.model.cutting.narrow_cuts import ModelBlock, blocks_of, weights_bytes
from tensortriage.model.model import Model
from tensortriage.runs.blocks.memory import block_bytes, fits, memory_bytes


def cuts_of(model: Model, limit_bytes: int | None) -> tuple[Cuts, tuple[ModelBlock, ...]] | None:
    """Return how a model has to be cut to be run within memory; None when it fits, or cannot be cut.

    Args:
        model: The model.
        limit_bytes: Memory that may be used; None for what the machine has.
    """
    memory, size = memory_bytes(limit_bytes), weights_bytes(model.graph.initializers.values())
    if memory is None or fits(size, memory):
        return None
    blocks = blocks_of(model, weight_bytes=block_bytes(memory))
    if len(blocks) < 2:
        return None
    return Cuts(len(blocks), tuple(block.outputs for block in blocks[:-1]), size, memory), blocks
