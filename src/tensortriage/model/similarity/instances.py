"""Nodes of a model that are instances of one another: the equal places of its repeated blocks."""

from collections.abc import Mapping
from types import MappingProxyType

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.inspect import repeated_blocks
from tensortriage.model.inspect.outline import ConstantFacts
from tensortriage.model.io.hollow_message import hollow_proto
from tensortriage.model.model import Model
from tensortriage.values.dtype import DType

_SMALL_BYTES = 1024


@frozen_dataclass
class Instances:
    """The repeated places of a model.

    Attributes:
        alike: Node name to the names of all nodes at its place in the copies of its block, itself included, in
            topological order; nodes outside any repeated block lack.
        copies: Node name to the number of its copy, from 0.
    """

    alike: Mapping[str, tuple[str, ...]]
    copies: Mapping[str, int]

    @classmethod
    def of(cls, model: Model) -> "Instances":
        """Find the repeated blocks of a model's main graph (`tensortriage.model.inspect.repeated_blocks`)."""
        constants = {
            name: ConstantFacts(name, spec.dtype or DType.FLOAT, spec.sizes)
            for name, spec in model.graph.constants.items()
        }
        alike: dict[str, tuple[str, ...]] = {}
        copies: dict[str, int] = {}
        for block in repeated_blocks.instances(hollow_proto(model.ir, above_bytes=_SMALL_BYTES).graph.node, constants):
            for place in zip(*block, strict=True):
                for number, name in enumerate(place):
                    alike[name], copies[name] = place, number
        return cls(MappingProxyType(alike), MappingProxyType(copies))
