"""The PyTorch side of a repro: a part of the network as a module, its weights and inputs, and its outcome here.

``module.py`` holds operations of the exported program and is a network like any user's (``torch:module.py:make``);
weights and inputs lie next to it in the safetensors format, read without a package of that name.
"""

import functools
from collections.abc import Mapping
from pathlib import Path
from string import Template

import numpy as np

from tensortriage.sdk import MODULE_FILES, ModuleBeside, printable
from tensortriage_torch.cut_module import CutModule
from tensortriage_worker.shards import write_shard

MODULE, WEIGHTS, INPUTS = MODULE_FILES
_MOST_NAMED = 12


def module_beside(cut: CutModule, label: str, exporter: str) -> ModuleBeside:
    """Return the files of a module in a repro, not yet exported again.

    Args:
        cut: The module; one of its tensors may be of a type that files do not have, so that writing it raises
            ShardError.
        label: Its place in the network: path, class and line.
        exporter: ``dynamo`` or ``legacy``.
    """
    dynamo = exporter == "dynamo"
    return ModuleBeside(
        write=functools.partial(_write, cut, label),
        label=label,
        code=cut.code,
        contents=_contents(cut),
        framework=f"PyTorch {cut.versions.get('torch', '')}".strip(),
        export=f"torch.onnx.export(dynamo={dynamo})",
        check=Template(_ANEW).substitute(dynamo=dynamo),
        versions=cut.versions,
    )


def _write(cut: CutModule, label: str, folder: Path) -> None:
    write_shard(folder / WEIGHTS, cut.weights)
    write_shard(folder / INPUTS, cut.inputs)
    narrow = {key: word for key, word in cut.dtypes.items() if not hasattr(np, word) and word != "bool"}
    types = {key.partition("/")[2]: word for key, word in narrow.items() if not key.startswith("output/")}
    lines = "\n".join(f"    {line}" if line else "" for line in cut.code.splitlines())
    text = Template(_MODULE).substitute(
        label=printable(label), inputs=repr(list(cut.inputs)), types=repr(types), forward=lines
    )
    (folder / MODULE).write_text(text)


def _contents(cut: CutModule) -> str:
    operators = ", ".join(dict.fromkeys(cut.operators))
    return (
        f"- `{MODULE}`: operations of the network, as PyTorch prints them, none of your source:\n\n"
        f"      {printable(operators)}\n\n"
        f"- `{WEIGHTS}`: the weights that they use:\n\n{_listed(cut.weights)}\n\n"
        f"- `{INPUTS}`: the values that reach them on your inputs:\n\n{_listed(cut.inputs)}\n\n"
        "Nothing else of the network is in here.\n"
    )


def _listed(arrays: Mapping[str, np.ndarray]) -> str:
    lines = [f"      {printable(name)} {array.dtype} {list(array.shape)}" for name, array in arrays.items()]
    more = [f"      and {len(lines) - _MOST_NAMED} more"] if len(lines) > _MOST_NAMED else []
    return "\n".join([*lines[:_MOST_NAMED], *more]) or "      none"


_ANEW = '''
def exported_anew():
    """Return the worst error of the module as the PyTorch here exports it; None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    from module import make

    module, inputs = make()
    with torch.no_grad():
        expected = module(*inputs)
    given = ["input_%d" % number for number in range(len(inputs))]
    names = ["output_%d" % number for number in range(len(expected))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.onnx"
        torch.onnx.export(
            module, inputs, str(path), dynamo=$dynamo, verbose=False, input_names=given, output_names=names
        )
        run = attempt("build-failed", opened, path)
        found = attempt("run-failed", run, {name: tensor.numpy() for name, tensor in zip(given, inputs)}, names)
    place = "exported by PyTorch " + torch.__version__
    return max(error_of(place, name, right, found[name]) for name, right in zip(names, expected))

'''

_MODULE = '''# $label
"""A part of a PyTorch network: its operations, with the weights that they use and the inputs that reach them."""

import json
from math import inf, nan  # noqa: F401 - constants below may be written so
from pathlib import Path

import torch
from torch import device  # noqa: F401 - as above

HERE = Path(__file__).resolve().parent
INPUTS = $inputs
TYPES = $types  # of what is stored wider
STORED = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}


def tensors(name):
    """Return the tensors of a safetensors file: length of the header, header in JSON, data."""
    data = (HERE / name).read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        begin, end = (start + offset for offset in entry["data_offsets"])
        dtype = STORED[entry["dtype"]]
        flat = torch.frombuffer(bytearray(data[begin:end]), dtype=dtype) if end > begin else torch.empty(0, dtype=dtype)
        tensor = flat.reshape(entry["shape"])
        found[name] = tensor.to(getattr(torch, TYPES[name])) if name in TYPES else tensor
    return found


class Part(torch.nn.Module):
    """The part."""

    def __init__(self, weights):
        super().__init__()
        for name, tensor in weights.items():
            self.register_buffer(name, tensor)

$forward


def make():
    """Return the module and the inputs that it has in its network."""
    inputs = tensors("inputs.safetensors")
    return Part(tensors("weights.safetensors")).eval(), tuple(inputs[name] for name in INPUTS)
'''
