"""Writing the ONNX model of a network, by either exporter of PyTorch, with the feed it was exported with."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from tensortriage_torch.worker.intermediates import quietly
from tensortriage_torch.worker.network import as_item, check_forward, load_network, tensors_in, torch_module
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.exchange import Item

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # the exporter's messages are meant for a terminal
_CLASS = re.compile(r"^<class '(?:[^']*\.)?([^'.]+)'>")
_ADVICE = ("(Refer to the full stack trace", "The error above occurred when calling torch.export")
_HALF_REASON = 240
_kept = {}  # type: Dict[Tuple[Any, ...], ExportedProgram]

ExportedProgram = Tuple[List[Tuple[int, ...]], Any]
"""Shapes of the example inputs, and the program of ``torch.export`` that was translated."""


def export(options: Mapping[str, str]) -> Tuple[Dict[str, Any], List[Item]]:
    """Export ``file`` and ``attribute`` to ``to`` with the ``exporter`` named; return facts and the example inputs.

    Raises:
        AdapterError: When there are no example inputs, or the exporter refuses the network.
    """
    torch = torch_module()
    network = load_network(Path(options["file"]), options.get("attribute", ""))
    if network.arguments is None:
        raise AdapterError(
            AdapterFailure.USAGE,
            "{} gives no example inputs to export with".format(network.place),
            "torch-examples",
            "return (module, example_inputs), or export it yourself and give the ONNX file too",
        )
    dynamo = options["exporter"] == "dynamo"
    extra = json.loads(options.get("arguments", "{}"))  # type: Dict[str, Any]
    try:
        with quietly():
            made = torch.onnx.export(
                network.module,
                network.arguments,
                options["to"],
                kwargs=network.keywords or None,
                dynamo=dynamo,
                verbose=not dynamo,  # the older exporter writes the stack of each node then
                **extra,
            )
    except Exception as error:  # the exporter runs the user's code
        check_forward(torch, network, error)
        raise AdapterError(
            AdapterFailure.BUILD,
            "torch.onnx.export refuses {}: {}".format(network.place, reason_of(error)),
            "torch-export",
            "try the other exporter (--exporter {}), or export it yourself and give the ONNX file".format(
                "legacy" if dynamo else "dynamo"
            ),
        ) from error
    examples = tensors_in(torch, (network.arguments, network.keywords))
    items = [as_item(torch, str(place), tensor) for place, tensor in enumerate(examples)]
    _kept.clear()
    if dynamo and not extra:
        _kept[_identity(options)] = [tuple(tensor.shape) for tensor in examples], made.exported_program
    return {"version": str(torch.__version__), "exporter": options["exporter"]}, items


def reason_of(error: BaseException) -> str:
    """Return PyTorch's reason for refusing an export: its summary, without the advice around it.

    The middle of a long one is left out: the class of error is in front, the line of the network at the end.
    """
    text = " ".join(_COLOURS.sub("", str(error)).split())
    _, summary, reason = text.partition("## Exception summary")
    for advice in _ADVICE if summary else ():
        reason = reason.partition(advice)[0].strip()
    text = reason if summary else text
    text = _CLASS.sub(r"\1", text) if summary else "{}: {}".format(type(error).__name__, text)
    return text if len(text) <= 2 * _HALF_REASON else text[:_HALF_REASON] + " ... " + text[-_HALF_REASON:]


def taken_program(options: Mapping[str, str]) -> Optional[ExportedProgram]:
    """Return the program with which this network, file and all, was just exported here; it is given away once."""
    return _kept.pop(_identity(options), None)


def _identity(options: Mapping[str, str]) -> Tuple[Any, ...]:
    about = Path(options["file"]).stat()
    return options["file"], options.get("attribute", ""), about.st_mtime_ns, about.st_size


def versions() -> Dict[str, str]:
    """Return the versions of the exporter here: PyTorch, and the packages that it works with."""
    found = {}
    for name in ("torch", "onnxscript", "onnx", "onnx_ir"):
        try:
            found[name] = str(importlib.import_module(name).__version__)
        except (ImportError, AttributeError):
            continue
    return found
