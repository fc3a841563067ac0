"""Recording what a running PyTorch application feeds a network, for a diagnosis later.

    import tensortriage.torch

    with tensortriage.torch.record(network, "recorded") as recording:
        application(network)
    # triage diagnose model.onnx --torch network.py:make --target ENGINE --inputs recorded/inputs.npz

PyTorch is not imported here: the network that is handed over brings it.
"""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from tensortriage.inputs.files.data_file import Iteration, Kind
from tensortriage.inputs.files.save_data import save

MOST_CALLS = 8
"""Calls of a network that are recorded unless told otherwise."""


class Recording:
    """Calls of a network, recorded while the ``with`` block runs; made by `record`.

    Attributes:
        inputs: Per call, arrays by name: of the parameter, with a number behind it where that holds several tensors.
        outputs: Per call, arrays by place in what the network returned.
    """

    def __init__(self, module: Any, folder: Path, most: int) -> None:
        self.inputs: list[dict[str, np.ndarray]] = []
        self.outputs: list[dict[str, np.ndarray]] = []
        self._module, self._folder, self._most = module, folder, most
        self._parameters = list(inspect.signature(module.forward).parameters)
        self._handles: list[Any] = []

    def __enter__(self) -> Self:
        before = self._module.register_forward_pre_hook(self._called, with_kwargs=True)
        self._handles = [before, self._module.register_forward_hook(self._returned)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._handles:
            handle.remove()
        if self.outputs:
            self._folder.mkdir(parents=True, exist_ok=True)
            finished = self.inputs[: len(self.outputs)]
            for name, calls, what in (("inputs", finished, Kind.INPUTS), ("outputs", self.outputs, Kind.OUTPUTS)):
                save(self._folder / f"{name}.npz", [("", [Iteration(call) for call in calls])], kind=what)

    def _called(self, _: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        if len(self.inputs) > len(self.outputs):  # the call before this one raised
            self.inputs.pop()
        if len(self.inputs) < self._most:
            given = {**dict(zip(self._parameters, arguments, strict=False)), **keywords}
            self.inputs.append(dict(_tensors(given, "")))

    def _returned(self, _: Any, __: Any, result: Any) -> None:
        if len(self.outputs) < len(self.inputs):
            self.outputs.append({str(place): array for place, (_, array) in enumerate(_tensors({"": result}, ""))})


def record(module: Any, folder: Path | str, *, most: int = MOST_CALLS) -> Recording:
    """Record the inputs and outputs of a network's calls, copied when they are made.

    Args:
        module: A ``torch.nn.Module``.
        folder: Where ``inputs.npz`` and ``outputs.npz`` go when the ``with`` block ends; nothing without a call.
        most: Calls to record; later ones pass.

    Raises:
        TypeError: When it is no module.
    """
    if not hasattr(module, "register_forward_hook"):
        raise TypeError(f"record() takes a torch.nn.Module, not a {type(module).__name__}")
    return Recording(module, Path(folder), most)


def _tensors(value: Any, name: str) -> list[tuple[str, np.ndarray]]:
    """Return the tensors in nested containers as arrays, in order, with a name each."""
    if hasattr(value, "detach"):
        return [(name, _array(value))]
    if isinstance(value, Mapping):
        parts = [(f"{name}_{key}" if name else str(key), item) for key, item in value.items()]
    elif isinstance(value, (tuple, list)):
        parts = [(f"{name}_{place}", item) for place, item in enumerate(value)]
    else:
        return []
    return [found for part, item in parts for found in _tensors(item, part)]


def _array(tensor: Any) -> np.ndarray:
    tensor = tensor.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()
    return np.array(tensor.numpy())
