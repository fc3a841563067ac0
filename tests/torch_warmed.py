"""PyTorch with what its exporter imports and looks up at the first export, so that a fork of this process need not."""

import contextlib
import functools
import io
import warnings

import torch
import torch.onnx
from torch import nn
from torch.onnx._internal.exporter import _registration


class _Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(2, 2, 1), nn.LayerNorm(2), nn.Linear(2, 2)

    def forward(self, x):
        return self.head(self.norm(torch.relu(self.conv(x)).mean((2, 3)))).softmax(-1)


def warm():
    """Export a network once; random numbers, threads and gradients are as they were."""
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    torch.set_num_threads(1)  # the threads of a parallel loop would not be there in a fork
    registry = _registration.ONNXRegistry
    known = functools.cache(registry.from_torchlib)  # a second of every export, and the same each time
    registry.from_torchlib = staticmethod(known)
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        torch.onnx.export(_Small().eval(), (torch.ones(1, 2, 4, 4),), io.BytesIO(), dynamo=True, verbose=False)
    torch.set_num_threads(threads)
    torch.set_rng_state(state)


warm()
