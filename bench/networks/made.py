"""What a network of the table is made of, and how it becomes a file."""

import contextlib
import dataclasses
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tensortriage_testing import save_model


@dataclasses.dataclass(frozen=True)
class Made:
    """A network and its inputs.

    Attributes:
        network: An ONNX model, or a network of PyTorch.
        feed: Inputs by name: arrays, or tensors of PyTorch; lists of them for inputs that are lists.
        outputs: Names of the outputs of a network of PyTorch; the exporter's where there are none.
        exporter: Of PyTorch: ``legacy``, ``script`` (the same, of TorchScript), ``dynamo``.
        options: Further words for it.
        names: Names of single inputs where `feed` holds lists.
    """

    network: Any
    feed: Mapping[str, Any]
    outputs: Sequence[str] = ()
    exporter: str = "legacy"
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    names: Sequence[str] = ()

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the inputs as arrays."""
        flat = [each for value in self.feed.values() for each in (value if isinstance(value, list) else [value])]
        return {name: np.asarray(value) for name, value in zip(self.names or self.feed, flat, strict=True)}

    def write(self, path: Path) -> dict[str, np.ndarray]:
        """Write the network as one ONNX file, and return its inputs."""
        if isinstance(self.network, onnx.ModelProto):
            save_model(self.network, path)
        else:
            self._export(path)
        return self.arrays()

    def _export(self, path: Path) -> None:
        import torch

        dynamo = {"dynamo": True, "external_data": False, "verbose": False}
        words = dynamo if self.exporter == "dynamo" else {"dynamo": False, "opset_version": 17}
        words |= {"input_names": list(self.names or self.feed), "output_names": list(self.outputs) or None}
        given = torch.jit.script(self.network) if self.exporter == "script" else self.network
        with torch.no_grad(), quiet():
            torch.onnx.export(given, tuple(self.feed.values()), str(path), **{**words, **self.options})


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Leave unsaid what exporters and quantizers say about themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
