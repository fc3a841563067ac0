"""Results of a PyTorch network on a feed, under the names of its ONNX model, and the part of the model they cover."""

import dataclasses
import enum
import functools
import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from tensortriage.diagnose.sdk import (
    EngineSpec,
    Feed,
    Graph,
    Investigation,
    Lab,
    Model,
    ValueSpec,
    measure,
    percent,
    value_specs,
)
from tensortriage_torch.network import TorchNetwork
from tensortriage_torch.traced_values import Trace, leaving, nodes_by_module, several

_MODULES_SEEN = 0.9
"""Share of a file's modules with a compared result; with fewer, values of single operations are requested."""


class Inner(enum.Enum):
    """The inner values to compare: none, the results of modules, or those of single operations as well."""

    NONE = enum.auto()
    MODULES = enum.auto()
    OPERATIONS = enum.auto()


@dataclasses.dataclass(frozen=True)
class NetworkValues:
    """Values of a network on one feed.

    Attributes:
        inner: Inner values to compare.
        names: Their ONNX names, in topological order.
        arrays: The values.
        folded: The network's values for initializers that the exporter computed, by ONNX name.
        trace: Operations of the network, and those of the file that they are; none when not known.
        modules: Modules of the ONNX model, by path.
        seen: Modules with a result among the values.
        training: Whether a module is in training mode.
        reason: Why values of single operations are missing; empty when they are not.
        own_error: Relative RMS error of the worst output against the same network in float64; None when not measured.
        descriptions: How PyTorch prints modules, by path.
        joined: Modules whose nodes in the file may do the work of others too, and those, in the order of their calls.
        otherwise: Alternative readings of values, as the file names only a module: by ONNX name, that module's result,
            and the results joined with it.
    """

    inner: Inner
    names: tuple[str, ...]
    arrays: Mapping[str, np.ndarray]
    folded: Mapping[str, np.ndarray]
    trace: Trace
    modules: frozenset[str]
    seen: frozenset[str]
    training: bool
    reason: str
    own_error: float | None
    descriptions: Mapping[str, str]
    joined: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    otherwise: Mapping[str, tuple[np.ndarray, ...]] = dataclasses.field(default_factory=dict)

    @property
    def covers_most(self) -> bool:
        """Whether there are modules, and results of most of them."""
        return bool(self.modules) and len(self.seen) >= _MODULES_SEEN * len(self.modules)

    @property
    def share(self) -> str:
        """The compared part of the network, in words."""
        if not self.modules:
            return f"{len(self.names)} values compared; the file names no modules"
        part = len(self.seen) / len(self.modules)
        return (
            f"{len(self.names)} values compared, of {len(self.seen)} of {len(self.modules)} modules ({percent(part)})"
        )

    @property
    def evidence(self) -> Mapping[str, Any]:
        """The figures behind the words."""
        return {
            "values": len(self.names),
            "modules": len(self.modules),
            "modules_compared": len(self.seen),
            "pytorch_fp32_against_fp64": self.own_error,
            "training": self.training,
            "not_seen_because": self.reason,
        }

    def described(self, module: str) -> str:
        """Return how PyTorch prints a module, and those joined with it; empty when that is not known."""
        paths = (module, *self.joined.get(module, ()))
        return ", then ".join(text for path in paths if (text := self.descriptions.get(path, "")))


def asked_about(lab: Lab, network: EngineSpec, model: Model, feed: Feed) -> TorchNetwork:
    """Return a network with a feed, whose answers a lab remembers."""
    return TorchNetwork(model, functools.partial(lab.query, network, model, feed))


def network_values(inv: Investigation, network: EngineSpec, feed: Feed, *, inner: Inner) -> NetworkValues:
    """Run a network on one feed.

    Args:
        inv: Investigation of the model.
        network: Spec of the engine ``torch``.
        feed: The inputs.
        inner: Which inner values are wanted too.

    Raises:
        EngineError: When the network cannot be run.
    """
    model, graph, torch_network = inv.model, inv.model.graph, asked_about(inv.lab, network, inv.model, feed)
    arrays = dict(inv.lab.outputs(network, model, feed))
    descriptions: Mapping[str, str] = {}
    training, own_error = False, None
    folded: dict[str, np.ndarray] = {}
    trace = Trace({}, {}, {})
    joined: Mapping[str, tuple[str, ...]] = {}
    otherwise: Mapping[str, tuple[np.ndarray, ...]] = {}
    if inner is not Inner.NONE:
        single = inner is Inner.OPERATIONS
        trace = torch_network.trace(operations=single)
        wanted = [name for name in (*graph.values, *trace.folded) if name not in arrays]
        arrays |= dict(torch_network.captured(wanted, operations=single))
        folded = {name: arrays.pop(name) for name in trace.folded if name in arrays}
        joined = torch_network.folded()
        otherwise = {**_otherwise(torch_network, trace, joined, arrays), **_apart(torch_network, model, arrays)}
        arrays |= {name: returned[0] for name, returned in otherwise.items()}
        arrays = _in_declared_shapes(arrays, value_specs(model), keep={spec.name for spec in model.outputs})
        descriptions, training = torch_network.modules()
        own_error = _own_error(torch_network.in_float64(), arrays)
    order = {name: place for place, name in enumerate(graph.values)}
    names = tuple(sorted(arrays, key=lambda name: order.get(name, len(order))))
    modules = modules_of(graph)
    seen = {module for module, values in modules.items() if values & arrays.keys()}
    return NetworkValues(
        inner=inner,
        names=names,
        arrays=arrays,
        folded=folded,
        trace=trace,
        modules=frozenset(modules),
        seen=frozenset(seen),
        training=training,
        reason=torch_network.reason,
        own_error=own_error,
        descriptions=descriptions,
        joined=joined,
        otherwise=otherwise,
    )


def _otherwise(
    asked: TorchNetwork, trace: Trace, joined: Mapping[str, tuple[str, ...]], known: Collection[str]
) -> dict[str, tuple[np.ndarray, ...]]:
    """Return possible counterparts of a file's values that name only modules, the last joined module's result first."""
    places = {
        name: (place.module, *joined[place.module])[::-1]
        for name, place in trace.values.items()
        if name in known and not place.fx_node and place.module in joined
    }
    returned = asked.returned(sorted({path for paths in places.values() for path in paths}))
    found = {name: tuple(returned[path] for path in paths if path in returned) for name, paths in places.items()}
    return {name: arrays for name, arrays in found.items() if arrays}


def _apart(asked: TorchNetwork, model: Model, known: Collection[str]) -> dict[str, tuple[np.ndarray, ...]]:
    """Return possible counterparts of values that leave one module together: its result tensors of their shape.

    Where the file does not decide it, and as many values leave as tensors are returned, the one at the same place
    first.
    """
    declared = value_specs(model)
    modules = {module: values for module, values in several(model).items() if set(values) - set(known)}
    returned = asked.returned_each(list(modules))
    found: dict[str, tuple[np.ndarray, ...]] = {}
    for module, arrays in returned.items():
        for place, value in enumerate(modules[module]):
            shape = declared[value].shape if value in declared else None
            alike = tuple(array for array in arrays if array.shape == shape)
            if shape is None and len(arrays) == len(modules[module]):
                alike = (arrays[place], *arrays[:place], *arrays[place + 1 :])
            if alike and value not in known:
                found.setdefault(value, alike)
    return found


def _in_declared_shapes(
    arrays: Mapping[str, np.ndarray], declared: Mapping[str, ValueSpec], *, keep: Collection[str]
) -> dict[str, np.ndarray]:
    """Return values in the model's shapes, without those that do not fit.

    The Reshape that ends an operation may have been joined with the next one: the value then has another rank.
    """
    found = {}
    for name, array in arrays.items():
        shape = declared[name].shape if name in declared else None
        sizes = tuple(size for size in shape or () if isinstance(size, int))
        if name in keep or shape is None or len(shape) == array.ndim:
            found[name] = array
        elif len(sizes) == len(shape) and math.prod(sizes) == array.size:
            found[name] = array.reshape(sizes)
    return found


def modules_of(graph: Graph) -> Mapping[str, Collection[str]]:
    """Return the modules of a graph, and the values that leave each."""
    outputs = graph.output_names
    return {module: frozenset(leaving(graph, names, outputs)) for module, names in nodes_by_module(graph).items()}


def _own_error(wide: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray]) -> float | None:
    """Return how far the network's outputs are from those of the same network in float64."""
    errors = [
        measure(exact, arrays[name]).relative_rms_error
        for name, exact in wide.items()
        if exact.dtype.kind == "f" and exact.shape == arrays[name].shape
    ]
    return max(errors, default=None)


def next_known(graph: Graph, value: str, known: Collection[str]) -> set[str]:
    """Return the known values computed from a value without another known one between."""
    found: set[str] = set()
    pending, seen = [value], {value}
    while pending:
        for user in graph.consumers(pending.pop()):
            for output in user.outputs:
                if output and output not in seen:
                    seen.add(output)
                    if output in known:
                        found.add(output)
                    else:
                        pending.append(output)
    return found
