"""Which lines of the networks of `exporter_networks` are translated wrong, and what they share."""

import torch
from torch import nn

Made = tuple[nn.Module, tuple[object, ...]]
WRONG: set[str] = set()
"""Words of what is translated wrong; empty for the truth."""


def pick(word: str, right: object, wrong: object) -> object:
    """Return what a line is to use: what is right, unless its word was planted."""
    return wrong if word in WRONG else right


def drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
