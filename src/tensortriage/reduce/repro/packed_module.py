"""The PyTorch side of a repro: a part of the network as a module, its weights and inputs, and what became of it here.

``module.py`` holds operations of the exported program and is a network like any user's (``torch:module.py:make``);
weights and inputs lie beside it in the safetensors format, read without a package of that name.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from string import Template

import numpy as np

from tensortriage.engines.torch.cut_module import CutModule
from tensortriage.values.printable import printable
from tensortriage_worker.shards import write_shard

MODULE, WEIGHTS, INPUTS = "module.py", "weights.safetensors", "inputs.safetensors"
MODULE_FILES = (MODULE, WEIGHTS, INPUTS)
_MOST_NAMED = 12


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PackedModule:
    """A module cut out, and what exporting it anew gave.

    Attributes:
        cut: The module.
        label: Where it is in the network: path, class and line.
        exporter: ``dynamo`` or ``legacy``.
        anew: Whether it is wrong when the PyTorch here exports it anew; None when that could not be tried.
        told: How it is wrong then, or why it could not be tried.
    """

    cut: CutModule
    label: str
    exporter: str
    anew: bool | None = None
    told: str = ""

    @property
    def torch(self) -> str:
        """PyTorch with its version."""
        return f"PyTorch {self.cut.versions.get('torch', '')}".strip()


def write_module(folder: Path, packed: PackedModule) -> None:
    """Write ``module.py``, its weights and its inputs.

    Raises:
        ShardError: For a type that the format does not have.
        OSError: When the folder cannot be written.
    """
    cut = packed.cut
    write_shard(folder / WEIGHTS, cut.weights)
    write_shard(folder / INPUTS, cut.inputs)
    narrow = {key: word for key, word in cut.dtypes.items() if not hasattr(np, word) and word != "bool"}
    types = {key.partition("/")[2]: word for key, word in narrow.items() if not key.startswith("output/")}
    lines = "\n".join(f"    {line}" if line else "" for line in cut.code.splitlines())
    text = Template(_MODULE).substitute(
        label=printable(packed.label), inputs=repr(list(cut.inputs)), types=repr(types), forward=lines
    )
    (folder / MODULE).write_text(text)


def contents(packed: PackedModule) -> str:
    """Return in Markdown what of the network is in the files, for who decides whether to hand them on."""
    cut = packed.cut
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
