"""Exporting a network into a folder, so that work can begin from the network alone, and a network to try that out."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tensortriage.engines.sdk import Model
from tensortriage.sdk import DataError, Iteration, Kind, save

EXPORTERS = ("dynamo", "legacy")
"""PyTorch's exporters: of ``torch.export`` programs, and the older one of traces."""

_SMALL = """import torch

class Small(torch.nn.Module):
    def forward(self, x):
        return torch.relu(torch.conv2d(x, torch.ones(1, 2, 3, 3)))

def make():
    return Small(), (torch.zeros(1, 2, 4, 4),)
"""


def saved_inputs(model: Path, examples: Sequence[np.ndarray]) -> Path:
    """Write the example inputs of a network next to its exported model; return the path.

    Raises:
        DataError: When the model takes another number of inputs than there are examples (``torch-inputs``).
    """
    names = [spec.name for spec in Model.load(model).inputs]
    if len(names) != len(examples):
        raise DataError(
            f"the exported model takes {len(names)} inputs, the example inputs hold {len(examples)} tensors",
            slug="torch-inputs",
            cure="give the inputs yourself with --inputs",
        )
    path = model.with_name("inputs.npz")
    save(path, [("", [Iteration(dict(zip(names, examples, strict=True)))])], kind=Kind.INPUTS)
    return path


def small_network(folder: Path) -> tuple[Mapping[str, str], Mapping[str, np.ndarray], np.ndarray]:
    """Write a network of one Conv; return the options that name it, a feed, and its result.

    All numbers are whole and small, so that every format holds them.
    """
    script = folder / "small_network.py"
    script.write_text(_SMALL, encoding="utf-8")
    x = (np.arange(32, dtype=np.float32) % 5 - 2).reshape(1, 2, 4, 4)
    wanted = np.lib.stride_tricks.sliding_window_view(x, (1, 2, 3, 3)).sum((-4, -3, -2, -1))
    return {"file": str(script), "attribute": "make"}, {"x": x}, np.maximum(wanted, 0)
