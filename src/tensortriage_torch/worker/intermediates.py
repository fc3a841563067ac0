"""Inner values of a network, copied the moment they are made: later operations may write into the same memory.

Two ways to see them. Hooks take the results of modules while the network runs as it is; that is the truth, but only of
modules. The program that ``torch.export`` makes of the network, run node by node, shows every value that an ONNX file
of PyTorch's exporter can name; it is trusted only where it returns the network's own outputs.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import warnings
import weakref
from typing import Any, Dict, List, Mapping, Tuple

from tensortriage_torch.worker.network import tensors_in

_LONGEST_STACK = 2000  # the innermost calls are last

ModuleResults = Dict[str, List[List[Any]]]
"""Path of a module to its calls, and per call the tensors it returned."""


def run_with_hooks(
    torch: Any, module: Any, arguments: Tuple[Any, ...], keywords: Mapping[str, Any], wanted: Any, given: Any = ()
) -> Tuple[Any, ModuleResults, ModuleResults]:
    """Run a network; return its outputs, copies of the wanted modules' outputs, and the inputs of others."""
    found, fed = {}, {}  # type: ModuleResults, ModuleResults

    def keep(name: str) -> Any:
        def hook(_module: Any, _inputs: Any, output: Any) -> None:
            copies = [tensor.detach().clone() for tensor in tensors_in(torch, output)]
            found.setdefault(name, []).append(copies)

        return hook

    def take(name: str) -> Any:
        def hook(_module: Any, inputs: Any) -> None:
            fed.setdefault(name, []).append([tensor.detach().clone() for tensor in tensors_in(torch, inputs)[:1]])

        return hook

    handles = [inner.register_forward_hook(keep(name)) for name, inner in module.named_modules() if name in wanted]
    handles += [inner.register_forward_pre_hook(take(name)) for name, inner in module.named_modules() if name in given]
    try:
        with torch.no_grad():
            result = module(*arguments, **keywords)
    finally:
        for handle in handles:
            handle.remove()
    return result, found, fed


def module_calls(
    torch: Any, module: Any, arguments: Tuple[Any, ...], keywords: Mapping[str, Any]
) -> List[Tuple[str, str]]:
    """Run a network; return the calls of its innermost modules in order, each with the producer of its input.

    That is empty where the first tensor it was given is no module's result as it was returned.
    """
    found = []  # type: List[Tuple[str, str]]
    made = {}  # type: Dict[int, Tuple[str, Any]]

    def note(name: str) -> Any:
        def before(_module: Any, given: Any) -> None:
            first = next(iter(tensors_in(torch, given)), None)
            source, still = made.get(id(first), ("", lambda: None))
            found.append((name, source if first is not None and still() is first else ""))

        def after(_module: Any, _inputs: Any, output: Any) -> None:
            for tensor in tensors_in(torch, output):
                made[id(tensor)] = name, weakref.ref(tensor)

        return before, after

    handles = []
    for name, inner in module.named_modules():
        if not any(True for _ in inner.children()):
            before, after = note(name)
            handles += [inner.register_forward_pre_hook(before), inner.register_forward_hook(after)]
    try:
        with torch.no_grad():
            module(*arguments, **keywords)
    finally:
        for handle in handles:
            handle.remove()
    return found


def exported(torch: Any, module: Any, arguments: Tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """Return the program that the ONNX exporter translates, its nodes named as in the metadata of the ONNX file.

    Raises:
        Exception: Whatever the exporter raises.
    """
    with quietly():
        made = torch.onnx.export(
            module, arguments, kwargs=dict(keywords) or None, dynamo=True, optimize=False, verbose=False
        )
    return made.exported_program


def operations(program: Any) -> List[Dict[str, str]]:
    """Return the operations of an exported program, in order, each as the metadata that the ONNX exporter writes."""
    found = []
    for node in program.graph.nodes:
        if node.op == "call_function":
            around = list((node.meta.get("nn_module_stack") or {}).values())
            classes = [
                kind if isinstance(kind, str) else kind.__module__ + "." + kind.__qualname__ for _, kind in around
            ]
            found.append(
                {
                    "pkg.torch.onnx.name_scopes": repr([path for path, _ in around] + [node.name]),
                    "pkg.torch.onnx.class_hierarchy": repr([*classes, str(node.target)]),
                    "pkg.torch.onnx.stack_trace": (node.meta.get("stack_trace") or "")[-_LONGEST_STACK:],
                    "pkg.torch.onnx.fx_node": node.format_node() or "",
                }
            )
    return found


def values_by_node(
    torch: Any, program: Any, arguments: Tuple[Any, ...], keywords: Mapping[str, Any], wanted: Any
) -> Tuple[List[Any], Dict[str, Any]]:
    """Run an exported program node by node; return its outputs, and copies of the wanted nodes' values."""
    fx = importlib.import_module("torch.fx")
    found = {}  # type: Dict[str, Any]

    class Watching(fx.Interpreter):  # type: ignore[misc, name-defined] # imported late
        def run_node(self, node: Any) -> Any:
            value = super().run_node(node)
            if node.name in wanted and isinstance(value, torch.Tensor):
                found[node.name] = value.detach().clone()
            return value

    signature, state = program.graph_signature, dict(program.state_dict)
    state.update(program.constants)
    fed = iter(tensors_in(torch, (arguments, dict(keywords))))
    values = []  # type: List[Any]
    sources = dict(signature.inputs_to_parameters)
    sources.update(signature.inputs_to_buffers)
    sources.update(signature.inputs_to_lifted_tensor_constants)
    for node in program.graph.nodes:
        if node.op != "placeholder":
            continue
        if node.name in sources:
            values.append(state[sources[node.name]])
        else:
            values.append(next(fed, None) if isinstance(node.meta.get("val"), torch.Tensor) else None)
    with torch.no_grad():
        returned = Watching(program.graph_module).run(*values)
    mutated = len(getattr(signature, "buffers_to_mutate", ())) + len(getattr(signature, "user_inputs_to_mutate", ()))
    return tensors_in(torch, returned)[mutated:], found


def agree(torch: Any, left: List[Any], right: List[Any]) -> bool:
    """Return whether two lists of results are the same numbers, but for the order of sums."""
    return len(left) == len(right) and all(
        one.shape == other.shape
        and bool(torch.allclose(one.double(), other.double(), rtol=1e-3, atol=1e-5, equal_nan=True))
        for one, other in zip(left, right)  # noqa: B905 - Python 3.9
    )


@contextlib.contextmanager
def quietly() -> Any:
    """Hide the exporter's prints and warnings, those of its log included, which keeps the stderr that it began with."""
    printed, before = io.StringIO(), logging.root.manager.disable
    logging.disable(max(before, logging.WARNING))
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
