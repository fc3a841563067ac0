"""A part of a network as a module of its own: operations of its exported program, as code, with weights and inputs.

The cut is made in the graph of ``torch.export``, not in the user's classes: the part runs without their source, and
holds nothing of the network but these operations, the weights that they use, and the values that reach them.
"""

from __future__ import annotations

import importlib
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Set

_FREED = re.compile(r";  (?:\w+ = )+None")
_IN_SCOPE = frozenset({"inf", "nan", "torch", "device", "NoneType", "fx_pytree", "pytree"})


class CutRefused(Exception):
    """The part cannot be made a module; holds the reason."""


class Part(NamedTuple):
    """A part of a network.

    Attributes:
        code: Its ``forward``, with parameters, buffers and inputs as names.
        weights: Parameters, buffers and constants by name.
        inputs: Names of the nodes whose values it takes, in order.
        outputs: Names of the nodes whose values it returns, in order.
        operators: Its operators, in the order of their calls.
    """

    code: str
    weights: Dict[str, Any]
    inputs: List[str]
    outputs: List[str]
    operators: List[str]


def cut(torch: Any, program: Any, wanted: Mapping[str, Any]) -> Part:
    """Return a part of an exported program.

    Args:
        torch: PyTorch.
        program: The result of ``torch.export``.
        wanted: Either ``ends``, the places of the values that it returns, and ``known``, those of values that it may
            take; or ``nodes`` and ``modules``, names of all operations in it and paths of modules whose operations are.
            A place has ``fx_node``, or the ``module`` that returns the value.

    Raises:
        CutRefused: When there is no such part, or it is not made of plain operations.
    """
    nodes = list(program.graph.nodes)
    if wanted.get("ends"):
        ends = [_at(torch, nodes, place) for place in wanted["ends"]]
        known = {node.name for node in (_at(torch, nodes, place) for place in wanted["known"]) if node is not None}
        chosen = _before(torch, [end for end in ends if end is not None], known)
    else:
        named, modules = set(wanted["nodes"]), list(wanted["modules"])
        chosen = {node for node in nodes if node.name in named or any(_inside(node, path) for path in modules)}
        chosen |= {user for node in chosen if not _is_tensor(torch, node) for user in node.users}
        ends = [node for node in nodes if node in chosen and any(user not in chosen for user in node.users)]
    ends = [end for end in ends if end is not None and end.op == "call_function" and _is_tensor(torch, end)]
    if not ends:
        raise CutRefused("torch.export's program has no such value")
    return _as_code(torch, program, [node for node in nodes if node in chosen], ends)


def _at(torch: Any, nodes: Sequence[Any], place: Mapping[str, str]) -> Any:
    """Return the node with the value of a place; None when it is unknown."""
    if place["fx_node"]:
        return next((node for node in nodes if node.name == place["fx_node"]), None)
    inside = {node for node in nodes if _inside(node, place["module"])} if place["module"] else set()
    leaving = [node for node in inside if _is_tensor(torch, node) and any(user not in inside for user in node.users)]
    return leaving[0] if len(leaving) == 1 else None


def _inside(node: Any, module: str) -> bool:
    paths = [path for path, _ in (node.meta.get("nn_module_stack") or {}).values()]
    return node.op == "call_function" and any(path == module or path.startswith(module + ".") for path in paths)


def _is_tensor(torch: Any, node: Any) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _before(torch: Any, ends: Sequence[Any], known: Set[str]) -> Set[Any]:
    """Return the operations that make values of known ones."""
    found = set()  # type: Set[Any]
    pending = list(ends)
    while pending:
        node = pending.pop()
        stops = node.name in known and node not in ends and _is_tensor(torch, node)
        if node.op == "call_function" and node not in found and not stops:
            found.add(node)
            pending += node.all_input_nodes
    return found


def _as_code(torch: Any, program: Any, chosen: Sequence[Any], ends: Sequence[Any]) -> Part:
    fx = importlib.import_module("torch.fx")
    state, kept = _state(program), fx.Graph()
    made, weights, inputs = {}, {}, []  # type: Dict[Any, Any], Dict[str, Any], List[str]
    members = set(chosen)
    for given in dict.fromkeys(each for node in chosen for each in node.all_input_nodes if each not in members):
        if given.op == "get_attr" or not _is_tensor(torch, given):
            raise CutRefused("'{}' is control flow, or a number that depends on values".format(given.name))
        if given.name in state:
            weights[given.name] = state[given.name].detach()
        else:
            made[given] = kept.placeholder(given.name)
            inputs.append(given.name)
    if not inputs:
        raise CutRefused("it depends only on constants, not on values of the network")
    for name in weights:
        node = next(each for each in program.graph.nodes if each.name == name)
        made[node] = kept.get_attr(name)
    for node in chosen:
        made[node] = kept.node_copy(node, lambda each: made[each])
    kept.output(tuple(made[end] for end in ends))
    root = torch.nn.Module()
    for name, tensor in weights.items():
        root.register_buffer(name, tensor)
    printed = fx.GraphModule(root, kept).graph.python_code("self")
    strange = set(printed.globals) - _IN_SCOPE
    if strange:
        raise CutRefused("it calls functions from outside PyTorch: {}".format(", ".join(sorted(strange))))
    code = "\n".join(line.rstrip() for line in _FREED.sub("", printed.src).strip().splitlines() if line.strip())
    return Part(code, weights, inputs, [end.name for end in ends], [str(node.target) for node in chosen])


def _state(program: Any) -> Dict[str, Any]:
    """Return parameters, buffers and constants by the names of their placeholders."""
    signature, state = program.graph_signature, dict(program.state_dict)
    state.update(program.constants)
    sources = dict(signature.inputs_to_parameters)
    sources.update(signature.inputs_to_buffers)
    sources.update(signature.inputs_to_lifted_tensor_constants)
    return {name: state[source] for name, source in sources.items()}
