"""Maps the values of an ONNX model to those of its PyTorch network, according to the exporter's metadata.

A node of ``torch.export``'s graph becomes one or more ONNX nodes; the one value that leaves them is the node's. A
module becomes the ONNX nodes inside it; the one value that leaves those is its result, the one that enters them its
argument. Where several values leave, they are matched by their numbers. A constant that was folded has the name of the
node whose value it is.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from tensortriage.engines.sdk import Graph, Model, grouped, noted_outputs
from tensortriage_torch.operations import Operation, counterparts, operations

JOINED = (
    "batch_norm", "pad", "view", "reshape", "flatten", "permute", "transpose", "expand", "squeeze", "slice", "select",
    "getitem", "split", "clone", "copy", "detach", "alias", "contiguous", "dropout",
)  # fmt: skip
"""Parts of the names of operators that onnxscript's optimizer joins with others or leaves out: layouts, pads, norms."""


MOST_RETURNED = 4
"""Tensors that a module may return for its values to be matched by their numbers."""


@dataclasses.dataclass(frozen=True, slots=True)
class TracedValue:
    """Place of a value in the network.

    Attributes:
        fx_node: Name of the node of ``torch.export``'s graph; empty when unknown.
        module: Path of the module that returns it; empty for none.
        given: Path of a module that is called with it, used where the network does not have the other; empty for none.
    """

    fx_node: str = ""
    module: str = ""
    given: str = ""


def traced_values(model: Model) -> Mapping[str, TracedValue]:
    """Return the file's information about the values of a model, by ONNX name, in the names of its exporter.

    Inner values that are marked as outputs leave nothing that they did not leave before.
    """
    graph = model.graph
    outputs = noted_outputs(model.ir.graph.metadata_props, [spec.name for spec in model.outputs])
    origins = [(node.name, graph.origin(node.name)) for node in graph.nodes]
    by_fx_node = grouped((origin.fx_node, name) for name, origin in origins if origin.fx_node)
    by_module = nodes_by_module(graph)
    found: dict[str, TracedValue] = {}
    for fx_node, nodes in by_fx_node.items():
        if len(values := leaving(graph, nodes, outputs)) == 1:
            found[values[0]] = TracedValue(fx_node)
    for module in sorted(by_module, key=lambda path: path.count(".")):  # the innermost one is said last
        if len(values := leaving(graph, by_module[module], outputs)) == 1:
            known = found.get(values[0], TracedValue())
            found[values[0]] = dataclasses.replace(known, module=module)
    constant = _constant(graph)
    for module, nodes in by_module.items():
        if len(values := entering(graph, nodes, constant)) == 1:
            found[values[0]] = dataclasses.replace(found.get(values[0], TracedValue()), given=module)
    return found


@dataclasses.dataclass(frozen=True)
class Trace:
    """Values of a model and operations of a network, compared with each other.

    Attributes:
        values: Places of the model's values in the network, by ONNX name.
        folded: Likewise for initializers that the exporter computed.
        operations: Operations of the network by the name that the file has for them.
        network: All operations of the network, in order.
        inputs: Names of the model's inputs, which are those of the network's.
    """

    values: Mapping[str, TracedValue]
    folded: Mapping[str, TracedValue]
    operations: Mapping[str, Operation]
    network: tuple[Operation, ...] = ()
    inputs: frozenset[str] = frozenset()

    def made_of(self, name: str) -> tuple[Operation, ...]:
        """Return the operations behind one of the file: its own, then those before it that the file lacks.

        An exporter that multiplies the scale of a normalization into a convolution leaves one node for both.
        """
        by_name, held = self._by_name, self._held
        pending = [self.operations[name].name] if name in self.operations else []
        found: dict[str, Operation] = {}
        while pending:
            each = pending.pop(0)
            if each in by_name and each not in found and (not found or each not in held):
                found[each] = by_name[each]
                pending += by_name[each].arguments
        return tuple(found.values())

    def left_out(self, name: str) -> tuple[Operation, ...]:
        """Return the computing ones of `made_of` that the file lacks.

        Operations that exporters join with their neighbours (`JOINED`), and those that depend on constants alone, are
        left out.
        """
        joined = {*self._held, *self.inputs}
        missing = []
        among = {each.name for each in self.made_of(name)[1:]}
        for each in (one for one in self.network if one.name in among):
            if joined.intersection(each.arguments):
                joined.add(each.name)
                if not any(word in each.origin.operator for word in JOINED):
                    missing.append(each)
        return tuple(missing)

    @cached_property
    def _by_name(self) -> Mapping[str, Operation]:
        return {each.name: each for each in self.network}

    @cached_property
    def _held(self) -> frozenset[str]:
        return frozenset(each.name for each in self.operations.values())


def trace(model: Model, network: Collection[Operation]) -> Trace:
    """Return which values of a model are which of a network.

    Args:
        model: The exported model.
        network: Operations of the network; none when they are not known, which leaves the values of modules.
    """
    known = tuple(network)
    file, inputs = operations(model), frozenset(spec.name for spec in model.inputs)
    held = {each.name for each in file}.union(model.graph.initializers)
    same = {name: each for name, each in counterparts(file, known).items() if name in held}
    values = {
        name: dataclasses.replace(place, fx_node=same[place.fx_node].name if place.fx_node in same else "")
        for name, place in traced_values(model).items()
    }
    folded = {name: TracedValue(same[name].name) for name in model.graph.initializers if name in same}
    return Trace({name: place for name, place in values.items() if place != TracedValue()}, folded, same, known, inputs)


def folded_modules(graph: Graph, calls: Sequence[tuple[str, str]]) -> Mapping[str, tuple[str, ...]]:
    """Return modules of a file whose nodes do the work of others too, and those, in the order of their calls.

    An exporter that multiplies a norm into the convolution before it leaves nodes of the convolution alone; their
    result is the norm's. So it continues, module for module, as long as the file has none of the next one.

    Args:
        graph: The exported model.
        calls: Innermost modules of the network in the order of their calls, each with the module whose result it
            received.
    """
    own = {module for node in graph.nodes for module in around(graph.origin(node.name).module)}
    paths = [path for path, _ in calls]
    followers = grouped((source, path) for path, source in calls)
    found: dict[str, tuple[str, ...]] = {}
    for module in own.intersection(paths):
        chain = [module]
        while len(after := followers.get(chain[-1], [])) == 1 and after[0] not in own and paths.count(after[0]) == 1:
            chain.append(after[0])
        if len(chain) > 1:
            found[module] = tuple(chain[1:])
    return found


def around(module: str) -> Iterable[str]:
    """Yield a module and those around it, without the network itself."""
    while module:
        yield module
        module = module.rpartition(".")[0]


def entering(graph: Graph, nodes: Collection[str], constant: Collection[str]) -> list[str]:
    """Return the values that nodes take from others, without ``constant`` and fed ones."""
    inside = set(nodes)
    operands = dict.fromkeys(value for name in nodes for value in graph.node(name).uses if value not in constant)
    makers = ((value, graph.producer(value)) for value in operands)
    return [value for value, maker in makers if maker is not None and maker.name not in inside]


def nodes_by_module(graph: Graph) -> Mapping[str, list[str]]:
    """Return the nodes in each module of a graph, those in modules within included."""
    return grouped((module, node.name) for node in graph.nodes for module in around(graph.origin(node.name).module))


def several(model: Model) -> Mapping[str, tuple[str, ...]]:
    """Return modules that a few values leave, innermost ones first, and those values."""
    graph = model.graph
    outputs = noted_outputs(model.ir.graph.metadata_props, [spec.name for spec in model.outputs])
    by_module = nodes_by_module(graph)
    constant = _constant(graph)
    left = {
        module: tuple(value for value in leaving(graph, by_module[module], outputs) if value not in constant)
        for module in sorted(by_module, key=lambda path: -path.count("."))
    }
    return {module: values for module, values in left.items() if 1 < len(values) <= MOST_RETURNED}


def _constant(graph: Graph) -> frozenset[str]:
    """Return the values that depend on no input."""
    found = set(graph.constants)
    for node in graph.nodes:
        if node.uses and found.issuperset(node.uses):
            found.update(node.outputs)
    return frozenset(found)


def leaving(graph: Graph, nodes: Collection[str], outputs: Collection[str]) -> list[str]:
    """Return the values that nodes make for others, or for the user."""
    inside = set(nodes)
    made = (value for name in nodes for value in graph.node(name).outputs if value)
    return [
        value for value in made if value in outputs or any(user.name not in inside for user in graph.consumers(value))
    ]
