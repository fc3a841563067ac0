"""Recording the inputs of a network in a running PyTorch application, for a diagnosis later.

    from tensortriage_torch.record import record

    with record(network, "recorded") as recording:
        application(network)
    # triage diagnose model.onnx --torch network.py:make --target ENGINE --inputs recorded/inputs.npz

PyTorch is not imported here: the network that is handed over brings it. The application goes on whatever it calls the
network with; a call that cannot be recorded is left out, with a warning and the reason.
"""

import inspect
import itertools
import re
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from tensortriage.sdk import Iteration, Kind, TriageError, save

MOST_CALLS = 8
"""Default number of recorded calls of a network."""
MOST_LEVELS = 32
"""Containers in containers that are looked into."""
_LONGEST_NAME = 200
_ODD = re.compile(r"[^\w.-]+")

Arrays = dict[str, np.ndarray]


class Recording:
    """Calls of a network, recorded while the ``with`` block runs; made by `record`.

    Calls may come from several threads. Of a network that calls itself, the outermost call is recorded.

    Attributes:
        inputs: Per call, arrays by name: of the parameter, with a number behind it where that holds several tensors.
        outputs: Per call, arrays by their position in the network's results.
        left_out: Why calls were not recorded; empty when all were.
    """

    def __init__(self, module: Any, folder: Path, most: int) -> None:
        self.inputs: list[Arrays] = []
        self.outputs: list[Arrays] = []
        self.left_out: list[str] = []
        self._module, self._folder, self._most = module, folder, most
        self._handles: list[Any] = []
        self._open, self._lock = threading.local(), threading.Lock()

    def __enter__(self) -> Self:
        before = self._module.register_forward_pre_hook(self._called, with_kwargs=True)
        self._handles = [before, self._module.register_forward_hook(self._returned, always_call=True)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._handles:
            handle.remove()
        try:
            self._save()
        except (OSError, TriageError) as problem:
            if error is None:
                raise
            text = f"nothing is recorded: {problem}"  # the error of the application itself goes on
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        if self.left_out:
            text = f"{len(self.left_out)} calls of the network are not recorded: {self.left_out[0]}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)

    def _save(self) -> None:
        if self.outputs:
            self._folder.mkdir(parents=True, exist_ok=True)
            for name, calls, what in (("inputs", self.inputs, Kind.INPUTS), ("outputs", self.outputs, Kind.OUTPUTS)):
                save(self._folder / f"{name}.npz", [("", [Iteration(call) for call in calls])], kind=what)

    def _called(self, _: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        calls = self._calls()
        if calls or len(self.outputs) >= self._most:
            calls.append(None)
        else:
            calls.append(self._copied({**_named(self._module, arguments), **keywords}))

    def _returned(self, _: Any, __: Any, result: Any) -> None:
        calls = self._calls()
        inputs = calls.pop() if calls else None
        if inputs is None or result is None:  # None: it raised, or returned nothing to compare with
            return
        outputs = self._copied({"": result})
        if outputs == {}:
            self.left_out.append(f"no tensor was found in the {type(result).__name__} that it returned")
        with self._lock:
            if outputs and len(self.outputs) < self._most:
                self.inputs.append(inputs)
                self.outputs.append({str(place): array for place, array in enumerate(outputs.values())})

    def _calls(self) -> list[Arrays | None]:
        """Return the calls that this thread is in, outermost first; None for those that are not recorded."""
        if not hasattr(self._open, "calls"):
            self._open.calls = []
        calls: list[Arrays | None] = self._open.calls
        return calls

    def _copied(self, given: Mapping[Any, Any]) -> Arrays | None:
        """Return copies of all tensors by name; None where one cannot be: the user's work goes on."""
        found: Arrays = {}
        try:
            for name, tensor in _tensors(given, "", ()):
                found[_new_name(name, found)] = _array(tensor)
        except Exception as error:
            self.left_out.append(f"{type(error).__name__}: {str(error)[:_LONGEST_NAME]}")
            return None
        return found


def record(module: Any, folder: Path | str, *, most: int = MOST_CALLS) -> Recording:
    """Record the inputs and outputs of a network's calls, copied when they are made.

    Args:
        module: A ``torch.nn.Module``.
        folder: The folder of ``inputs.npz`` and ``outputs.npz``, written when the ``with`` block ends; nothing without
            a call.
        most: Calls to record; later ones pass.

    Raises:
        TypeError: When it is no module, or a TorchScript one, which takes no hooks.
        ValueError: For fewer calls than one.
        NotADirectoryError: When the folder is a file.
    """
    if not hasattr(module, "register_forward_hook") or hasattr(module, "save_to_buffer"):
        raise TypeError(f"record() takes a torch.nn.Module that is no TorchScript, not a {type(module).__name__}")
    if most < 1:
        raise ValueError(f"record() takes at least one call, not {most}")
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; record() writes inputs.npz and outputs.npz into a folder")
    return Recording(module, folder, most)


def _named(module: Any, arguments: Sequence[Any]) -> dict[str, Any]:
    """Return positional arguments by the names of the parameters; ``args_0`` and so on where there are none."""
    try:
        names = [*itertools.islice(_names(inspect.signature(module.forward)), len(arguments))]
    except Exception:  # native functions have no signature, and a user's object may have any
        names = []
    names += [f"args_{place}" for place in range(len(names), len(arguments))]
    return dict(zip(names, arguments, strict=True))


def _names(signature: inspect.Signature) -> Iterator[str]:
    kinds = inspect.Parameter
    for one in signature.parameters.values():
        if one.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD):
            yield one.name
        elif one.kind is kinds.VAR_POSITIONAL:
            yield from (f"{one.name}_{place}" for place in itertools.count())


def _tensors(value: Any, name: str, around: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the tensors in nested containers, in order, with a name each; a container inside itself is passed over."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        yield name, value
        return
    if isinstance(value, Mapping):
        parts = [(f"{name}_{key}" if name else str(key), item) for key, item in value.items()]
    elif isinstance(value, (tuple, list)):
        parts = [(f"{name}_{place}", item) for place, item in enumerate(value)]
    else:
        return
    if id(value) in around:
        return
    if len(around) >= MOST_LEVELS:
        raise ValueError(f"an argument has more than {MOST_LEVELS} containers in each other")
    for part, item in parts:
        yield from _tensors(item, part, (*around, id(value)))


def _new_name(name: str, taken: Mapping[str, Any]) -> str:
    """Return an unused name that is valid in a file."""
    plain = _ODD.sub("_", name)[:_LONGEST_NAME] or "_"
    numbered = (f"{plain}__{number}" for number in itertools.count(2))
    return next(new for new in itertools.chain([plain], numbered) if new not in taken)


def _array(tensor: Any) -> np.ndarray:
    tensor = tensor.detach().cpu()
    if hasattr(tensor, "resolve_conj"):
        tensor = tensor.resolve_conj().resolve_neg()
    if str(tensor.dtype).startswith(("torch.bfloat16", "torch.float8")):  # float32 holds all of theirs
        tensor = tensor.float()
    return np.array(tensor.numpy())
