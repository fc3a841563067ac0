"""Does an engine work in an environment? It converts a small network there, runs it, and what comes is known.

The network is one of the conformance suite: all its numbers are whole and small, so that every format holds them.
"""

import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np

from tensortriage.engines.capabilities import ChecksOptions
from tensortriage.engines.registry import create
from tensortriage.engines.spec import EngineSpec
from tensortriage.engines.torch.engine import TorchEngine
from tensortriage.errors import EngineError
from tensortriage.testing.conformance import TOLERANCE
from tensortriage.testing.conformance_models import Example, Tensors, examples, small

_NETWORK = """import torch

class Small(torch.nn.Module):
    def forward(self, x):
        return torch.relu(torch.conv2d(x, torch.ones(1, 2, 3, 3)))

def make():
    return Small(), (torch.zeros(1, 2, 4, 4),)
"""


def try_out(engine: str, target: str, python: str) -> None:
    """Convert and run a small network.

    Args:
        engine: The name of the engine.
        target: Its spec, with the Python of the environment; torch exports a network of its own.
        python: That Python.

    Raises:
        TriageError: When the engine does not start, does not take the network, or computes something else.
    """
    with tempfile.TemporaryDirectory(prefix="triage-trial-") as folder:
        if engine == TorchEngine.name:
            spec, path = _exported(Path(folder), python)
            feed: Tensors = {"x": small(1, 2, 4, 4)}
            wanted = np.maximum(
                np.lib.stride_tricks.sliding_window_view(feed["x"], (1, 2, 3, 3)).sum((-4, -3, -2, -1)), 0
            )
        else:
            example = _example()
            spec, path, feed = EngineSpec.parse(target), example.save(Path(folder)), example.feeds[0]
            (wanted,) = example.expected(feed).values()
        made = create(spec)
        if isinstance(made, ChecksOptions):
            made.check(spec.options)
        with closing(made.compile(path, spec.options)) as session:
            (found,) = session.run(feed).values()
    if found.shape != wanted.shape or not np.abs(found - wanted).max() <= TOLERANCE:
        raise EngineError(
            "it gives wrong numbers for a small Conv", slug="environment-failed", cure="use another release"
        )


def _example() -> Example:
    return next(example for example in examples() if example.name == "conv")


def _exported(folder: Path, python: str) -> tuple[EngineSpec, Path]:
    script, path = folder / "small_network.py", folder / "small.onnx"
    script.write_text(_NETWORK, encoding="utf-8")
    spec = EngineSpec(TorchEngine.name, {"file": str(script), "attribute": "make", "worker": python})
    TorchEngine().export(spec.options, path, exporter="dynamo")
    return spec, path
