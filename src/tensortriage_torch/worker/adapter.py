"""PyTorch as an engine: the network behind an ONNX model, run as it is or compiled, its values under the ONNX names.

The ONNX file of the build only identifies inputs, outputs and inner values; the network computes. A model that was cut
or changed is therefore refused: the network cannot follow.
"""

from __future__ import annotations

import collections
import copy
import json
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from tensortriage_torch.worker.batches import read_batch
from tensortriage_torch.worker.compiled import compiled
from tensortriage_torch.worker.cut import CutRefused, cut
from tensortriage_torch.worker.export import export, taken_program, versions
from tensortriage_torch.worker.intermediates import (
    agree,
    exported,
    module_calls,
    operations,
    run_with_hooks,
    values_by_node,
)
from tensortriage_torch.worker.network import (
    Caller,
    as_item,
    check_forward,
    in_dtype,
    load_network,
    tensors_in,
    torch_module,
)
from tensortriage_torch.worker.premises import told_of
from tensortriage_torch.worker.settings import computes_in
from tensortriage_worker.adapter import AdapterError, AdapterFailure, Spec
from tensortriage_worker.exchange import Item, Spill

RUNS_USERS_CODE = True
"""Errors here may be mistakes of the script's author."""
_LONGEST_PRINTED = 200
_ANOTHER_PROGRAM = "torch.export's program computes other results than the network"


def probe(options: Mapping[str, str]) -> Dict[str, Any]:
    """Return version and device of PyTorch here.

    Raises:
        AdapterError: When PyTorch is not installed, or sees no CUDA device and one is needed.
    """
    torch = torch_module()
    device = options.get("device", "") or "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise AdapterError(AdapterFailure.MISSING, "PyTorch sees no CUDA device", "device-missing", "device=cpu")
    return {"version": str(torch.__version__), "device": device}


def answer(question: str, model: Path, options: Mapping[str, str]) -> Tuple[Dict[str, Any], List[Item]]:
    """Answer ``export``, of the network in the options, or ``batch``: the contents of a file of ``torch.save``.

    ``precision`` is the format in which the network in the options computes; see `tensortriage_torch.worker.settings`.
    """
    if question == "precision":
        device = options.get("device", "")
        network = load_network(Path(options["file"]), options.get("attribute", ""))
        return {"precision": computes_in(torch_module(), network.module, device)}, []
    if question == "batch":
        return read_batch(model, options["names"].split(","))
    return export(options)


def compile(model: Path, options: Mapping[str, str]) -> "NetworkSession":
    """Load a network; ``names`` in the options is JSON with the ``inputs``, ``outputs`` of the ONNX model."""
    probe(options)
    return NetworkSession(options)


class NetworkSession:
    """A network that answers for an ONNX model; see `tensortriage_worker.adapter.AdapterSession`."""

    inputs: Optional[List[Spec]] = None
    outputs: Optional[List[Spec]] = None

    def __init__(self, options: Mapping[str, str]) -> None:
        self._torch = torch = torch_module()
        names, self._options = json.loads(options["names"]), options
        self._outputs, self._narrow = list(names["outputs"]), names.get("bfloat16", ())
        network = load_network(Path(options["file"]), options.get("attribute", ""))
        dtype, device = options.get("dtype", ""), options.get("device", "")
        self._names, self._device = list(names["inputs"]), device
        self._network = in_dtype(torch, network, dtype, device)
        self._caller = Caller(self._network, self._names, dtype, device)
        word = options.get("compile", "eager")
        self._run = compiled(torch, self._network.module, word)  # type: Any
        self._programs = {}  # type: Dict[Any, Any]
        if not dtype and not device:
            self._take_program(options)
        training = any(inner.training for inner in network.module.modules()) if _has_modules(network.module) else False
        self.info = {"version": str(torch.__version__), "training": training}  # type: Dict[str, Any]
        if word != "eager" and self._network.arguments is not None:  # a compiled network is compiled in the first run
            positional, keywords = self._caller.examples()
            with torch.no_grad():
                self._run(*positional, **keywords)

    def run(self, feed: Mapping[str, Item]) -> Iterable[Item]:
        """Run once."""
        arguments, keywords = self._caller.arguments(feed)
        try:
            with self._torch.no_grad():
                found = tensors_in(self._torch, self._run(*arguments, **keywords))
        except Exception as error:
            check_forward(self._torch, self._network, error)
            raise
        return self._named(found)

    def _named(self, found: List[Any]) -> List[Item]:
        if len(found) != len(self._outputs):
            raise AdapterError(
                AdapterFailure.RUN,
                "{} returns {} tensors, the ONNX model {} outputs".format(
                    self._network.place, len(found), len(self._outputs)
                ),
                "torch-outputs",
                "compare with the file that was exported from this network, whole and unchanged",
            )
        pairs = zip(self._outputs, found)  # noqa: B905 - Python 3.9
        return [as_item(self._torch, name, tensor, keep=name in self._narrow) for name, tensor in pairs]

    def answer(
        self, question: str, feed: Mapping[str, Item], arguments: Mapping[str, Any], spill: Spill
    ) -> Tuple[Dict[str, Any], List[Item]]:
        """Answer ``modules``: what modules print; ``calls``: theirs; ``program``: operations; ``values``: by ONNX name.

        ``premises`` returns the conditions that make any comparison void; see `tensortriage_torch.worker.premises`.

        ``wanted`` has per name ``fx_node``, ``module``, and the ``place`` among the results of the module. ``cut``
        returns a part of the network as a module; see `tensortriage_torch.worker.cut`. ``float64`` returns the outputs
        of the same network in that format, or the ``reason`` why there are none.
        """
        if question == "cut":
            return self._cut(feed, arguments, spill), []
        if question == "float64":
            return self._in_float64(feed)
        if question == "modules":
            return {"modules": _printed(self._network.module), "training": self.info["training"]}, []
        if question == "calls":
            positional, keywords = self._caller.arguments(feed)
            return {"calls": module_calls(self._torch, self._network.module, positional, keywords)}, []
        if question == "premises":
            return told_of(self._torch, self._network.module, self._made_again, lambda: self._caller.arguments(feed))
        if question == "program":
            try:
                return {"operations": operations(self._program(feed))}, []
            except Exception as error:  # exporting runs the user's code and much of PyTorch's
                return {"operations": [], "reason": _no_program(error)}, []
        wanted = arguments["wanted"]
        positional, keywords = self._caller.arguments(feed)
        modules = {place["module"] for place in wanted.values() if place["module"]}
        own = dict(self._network.module.named_modules()) if _has_modules(self._network.module) else {}
        places = [place for place in wanted.values() if place.get("given")]
        order = module_calls(self._torch, self._network.module, positional, keywords) if places else []
        counts = collections.Counter([path for path, _ in order])
        once = {path for path in own if path and counts[path] < 2}
        given = {place["given"] for place in places if place["module"] not in once}
        positional, keywords = self._caller.arguments(feed)
        result, by_module, fed = run_with_hooks(self._torch, self._network.module, positional, keywords, modules, given)
        positional, keywords = self._caller.arguments(feed)  # the network may have written into its inputs
        by_node, reason = self._by_node(feed, positional, keywords, wanted, tensors_in(self._torch, result))
        told = {}  # type: Dict[str, str]
        for name, place in wanted.items():
            calls = by_module.get(place["module"], [])
            calls = calls if len(calls) == 1 else fed.get(place.get("given", ""), [])
            if place["fx_node"] in by_node:
                told[name] = "node"
                spill.add(as_item(self._torch, name, by_node[place["fx_node"]]))
            elif len(calls) == 1 and len(calls[0]) > place["place"] >= 0:
                told[name] = "module"
                spill.add(as_item(self._torch, name, calls[0][place["place"]]))
        return {"told": told, "reason": reason, "modules": sorted(by_module)}, []

    def _made_again(self) -> Any:
        """Return the module once more, made by the user's function as the first one was."""
        options = self._options
        network = load_network(Path(options["file"]), options.get("attribute", ""))
        return in_dtype(self._torch, network, options.get("dtype", ""), self._device).module

    def _cut(self, feed: Mapping[str, Item], wanted: Mapping[str, Any], spill: Spill) -> Dict[str, Any]:
        """Return a part of the network as code, with its weights, inputs and results; only a ``reason`` for none."""
        torch = self._torch
        positional, keywords = self._caller.arguments(feed)
        with torch.no_grad():
            result = tensors_in(torch, self._network.module(*positional, **keywords))
        positional, keywords = self._caller.arguments(feed)
        try:
            program = self._program(feed)
            part = cut(torch, program, wanted)
            names = {*part.inputs, *part.outputs}
            outputs, found = values_by_node(torch, program, positional, keywords, names)
        except CutRefused as error:
            return {"reason": str(error)}
        except Exception as error:  # exporting runs the user's code and much of PyTorch's
            return {"reason": _no_program(error)}
        if not agree(torch, outputs, result):
            return {"reason": _ANOTHER_PROGRAM}
        tensors = {"weight/" + name: tensor for name, tensor in part.weights.items()}
        tensors.update({"input/" + name: found[name] for name in part.inputs})
        tensors.update({"output/" + name: found[name] for name in part.outputs})
        for name, tensor in tensors.items():
            spill.add(as_item(torch, name, tensor))
        return {
            "code": part.code,
            "inputs": part.inputs,
            "outputs": part.outputs,
            "operators": part.operators,
            "dtypes": {name: str(tensor.dtype).partition(".")[2] for name, tensor in tensors.items()},
            "versions": versions(),
        }

    def _in_float64(self, feed: Mapping[str, Item]) -> Tuple[Dict[str, Any], List[Item]]:
        """Run a copy of the network: with a conversion there and back, weights could change."""
        torch, dtype = self._torch, "fp64"
        try:
            network = self._network._replace(module=copy.deepcopy(self._network.module))
            wide = in_dtype(torch, network, dtype, self._device)
            arguments, keywords = Caller(wide, self._names, dtype, self._device).arguments(feed)
            with torch.no_grad():
                return {}, self._named(tensors_in(torch, wide.module(*arguments, **keywords)))
        except Exception as error:  # networks may hold constants of one type only, or objects that cannot be copied
            return {"reason": "{}: {}".format(type(error).__name__, str(error)[:300])}, []

    def _by_node(
        self,
        feed: Mapping[str, Item],
        arguments: Tuple[Any, ...],
        keywords: Mapping[str, Any],
        wanted: Mapping[str, Any],
        result: List[Any],
    ) -> Tuple[Dict[str, Any], str]:
        """Return values by node of the exported program, and why there are none."""
        nodes = {place["fx_node"] for place in wanted.values() if place["fx_node"]}
        if not nodes:
            return {}, ""
        try:
            outputs, found = values_by_node(self._torch, self._program(feed), arguments, keywords, nodes)
        except Exception as error:  # likewise
            return {}, _no_program(error)
        if not agree(self._torch, outputs, result):
            return {}, _ANOTHER_PROGRAM
        return found, ""

    def _take_program(self, options: Mapping[str, str]) -> None:
        """Spare the network a second export, if this process has just exported it."""
        program = taken_program(options)
        if program and len(program[0]) == len(self._names):
            self._programs[tuple(sorted(zip(self._names, program[0])))] = program[1]  # noqa: B905 - Python 3.9

    def _program(self, feed: Mapping[str, Item]) -> Any:
        """Return the network's exported program for the shapes of a feed; errors are the exporter's."""
        shapes = tuple(sorted((name, tuple(item.array.shape)) for name, item in feed.items()))
        if shapes not in self._programs:
            arguments, keywords = self._caller.arguments(feed)
            self._programs[shapes] = exported(self._torch, self._network.module, arguments, keywords)
        return self._programs[shapes]

    def plan(self) -> None:
        """Return None: PyTorch reports no such thing."""

    def close(self) -> None:
        """Forget the network."""
        self._run, self._programs = None, {}
        del self._network, self._caller


def _no_program(error: Exception) -> str:
    return "the network cannot be exported here: {}: {}".format(
        type(error).__name__, " ".join(str(error).split())[:300]
    )


def _printed(module: Any) -> Dict[str, str]:
    """Return the printed form of the innermost modules, each on one short line."""
    inner = module.named_modules() if _has_modules(module) else ()
    return {name: " ".join(repr(each).split())[:_LONGEST_PRINTED] for name, each in inner if not any(each.children())}


def _has_modules(module: Any) -> bool:
    return callable(getattr(module, "modules", None))
