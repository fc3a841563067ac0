"""Bounds on the expansion of a small file, checked before anything expands it.

A model of a few kilobytes can stand for more nodes than atoms: each of thirty functions calls the one before it twice.
Whoever follows calls by recursion, as engines do in native code, has his stack overrun by a chain of three thousand.
Every bound here is far above what exporters write; the error names it.
"""

from collections.abc import Iterator, Mapping, Sequence

import onnx

from tensortriage.errors import ModelError
from tensortriage.model.ir.display_names import quoted
from tensortriage.model.ir.messages import all_nodes

MAX_CALL_DEPTH = 256
"""Functions that call each other in a row; PyTorch's exporter nests them as modules are nested, some twenty deep."""
MAX_NODES = 250_000
"""Nodes that calls of functions expand to; the largest exports of language models have some 50,000."""
MAX_RANK = 64
"""numpy's largest rank (NPY_MAXDIMS of numpy 2)."""
MAX_VERSION = 2**31 - 1
"""Versions are compared as 32-bit integers by engines (``int`` in ONNX Runtime)."""

_Key = tuple[str, str, str]


def check_limits(proto: onnx.ModelProto) -> None:
    """Check versions, and the size of a model with its functions expanded.

    Raises:
        ModelError: ``version-impossible``, ``function-recursive``, ``function-too-deep`` or
            ``function-expands-too-much``.
    """
    if not 0 <= proto.ir_version <= MAX_VERSION:
        raise _impossible(f"the model's IR version is {proto.ir_version}")
    for holder in (proto, *proto.functions):
        for opset in holder.opset_import:
            if not 0 <= opset.version <= MAX_VERSION:
                raise _impossible(f"the model imports version {opset.version} of the opset {quoted(opset.domain)}")
    if proto.functions:
        _check_functions(proto)


def check_rank(rank: int, where: str) -> None:
    """Refuse a rank that no array can have.

    Raises:
        ModelError: ``rank-too-high``.
    """
    if rank > MAX_RANK:
        raise ModelError(
            f"{where} has {rank} dimensions; {MAX_RANK} is the limit",
            slug="rank-too-high",
            cure="the file is damaged or malicious: export the model again",
        )


def _impossible(message: str) -> ModelError:
    return ModelError(
        f"{message}; 0 to {MAX_VERSION} are possible",
        slug="version-impossible",
        cure="the file is damaged: export the model again",
    )


def _check_functions(proto: onnx.ModelProto) -> None:
    functions = {(one.domain, one.name, one.overload): one for one in proto.functions}
    calls = {key: [*_calls(one.node, functions)] for key, one in functions.items()}
    own = {key: sum(1 for _ in all_nodes(one.node)) for key, one in functions.items()}
    sizes: dict[_Key, int] = {}
    depths: dict[_Key, int] = {}
    for key in _callees_first(calls):
        depths[key] = 1 + max((depths[called] for called in calls[key]), default=0)
        sizes[key] = own[key] + sum(sizes[called] for called in calls[key])
        if depths[key] > MAX_CALL_DEPTH:
            raise _too_much(
                key, f"calls others {depths[key]} deep; {MAX_CALL_DEPTH} is the limit", slug="function-too-deep"
            )
        if sizes[key] > MAX_NODES:
            raise _too_much(key, f"expands to more than {MAX_NODES} nodes, the limit", slug="function-expands-too-much")
    total = sum(sizes[called] for called in _calls(proto.graph.node, functions))
    if total > MAX_NODES:
        raise ModelError(
            f"the model's functions expand to {total} nodes; {MAX_NODES} is the limit",
            slug="function-expands-too-much",
            cure="export the model without functions",
        )


def _callees_first(calls: Mapping[_Key, Sequence[_Key]]) -> Iterator[_Key]:
    """Yield functions after those that they call, without recursion."""
    done: set[_Key] = set()
    for start in calls:
        if start in done:
            continue
        path: dict[_Key, Iterator[_Key]] = {start: iter(calls[start])}
        while path:
            key, pending = next(reversed(path.items()))
            called = next((one for one in pending if one not in done), None)
            if called is None:
                path.popitem()
                done.add(key)
                yield key
            elif called in path:
                raise _too_much(called, "calls itself", slug="function-recursive")
            else:
                path[called] = iter(calls[called])


def _calls(nodes: Sequence[onnx.NodeProto], functions: Mapping[_Key, object]) -> Iterator[_Key]:
    for node in all_nodes(nodes):
        key = (node.domain, node.op_type, node.overload)
        if key in functions:
            yield key


def _too_much(key: _Key, what: str, *, slug: str) -> ModelError:
    return ModelError(
        f"function {quoted(key[1])} of the model {what}", slug=slug, cure="export the model without functions"
    )
