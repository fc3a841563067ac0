"""The network that a user names: a saved program, or the result of a function in a Python file.

``FILE.pt2`` is a file of ``torch.export.save``. ``FILE.py:FUNCTION`` names a function without arguments that returns a
module, or a module and example inputs: a tensor, a tuple of arguments, or a dict of keyword arguments. Both may run
code of a stranger, which is why this happens in a worker only.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tensortriage_worker.adapter import AdapterError, AdapterFailure, place_of
from tensortriage_worker.exchange import Item
from tensortriage_worker.script_adapter import load_script

OLDEST = (2, 6)
"""Oldest PyTorch whose exported programs name their nodes as its ONNX exporter does."""

_LONGEST_REASON = 600
_DTYPES = {"fp32": "float32", "fp64": "float64", "fp16": "float16", "bf16": "bfloat16"}


class Network(NamedTuple):
    """A module and how to call it.

    Attributes:
        module: Callable with the arguments below.
        arguments: Example positional arguments; None when there are none of either kind.
        keywords: Example keyword arguments.
        place: The network's name in messages.
    """

    module: Any
    arguments: Optional[Tuple[Any, ...]]
    keywords: Dict[str, Any]
    place: str


def torch_module() -> Any:
    """Return PyTorch.

    Raises:
        AdapterError: When this interpreter has none, or one that is too old.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise AdapterError(
            AdapterFailure.MISSING,
            "this Python has no PyTorch: {}".format(error),
            "torch-missing",
            "pip install 'torch>={}.{}', or name a Python that has it: worker=/path/to/python".format(*OLDEST),
        ) from None
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < OLDEST:
        raise AdapterError(
            AdapterFailure.MISSING,
            "PyTorch {} is too old".format(torch.__version__),
            "torch-missing",
            "pip install 'torch>={}.{}'".format(*OLDEST),
        )
    return torch


def load_network(file: Path, function: str) -> Network:
    """Return the network of a file.

    Raises:
        AdapterError: When there is no such function, or it returns something else.
    """
    torch = torch_module()
    if file.suffix == ".pt2":
        program = torch.export.load(str(file))
        arguments, keywords = program.example_inputs or (None, {})
        return Network(program.module(), arguments, dict(keywords), file.name)
    made = _called(file, function)
    module, examples = made, None  # type: Any, Any
    if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module):
        module, examples = made
    if not isinstance(module, torch.nn.Module):
        raise AdapterError(
            AdapterFailure.USAGE,
            "{}() of {} returned a {}, not a torch.nn.Module".format(function, file.name, type(module).__name__),
            "torch-network",
            "return the module, or (module, example_inputs)",
        )
    arguments, keywords = _examples(examples)
    return Network(module, arguments, keywords, "{}:{}".format(file.name, function))


def own_fault(place: str, error: Exception) -> AdapterError:
    """Return the error for an exception of the user's own code, with its place: neither engine nor exporter erred."""
    text = " ".join(str(error).split())[:_LONGEST_REASON]
    return AdapterError(
        AdapterFailure.USAGE,
        "{} raises {}: {}{}".format(place, type(error).__name__, text, place_of(error)),
        "torch-network",
        "correct it there: it fails in PyTorch alone, on its own example inputs",
    )


def check_forward(torch: Any, network: Network, error: Exception) -> None:
    """Do nothing where a network runs on its example inputs, or has none.

    Raises:
        AdapterError: When it does not, so that an error seen elsewhere is not attributed to its caller.
    """
    if network.arguments is None:
        return
    pytree = importlib.import_module("torch.utils._pytree")

    def copied(leaf: Any) -> Any:
        return leaf.clone() if isinstance(leaf, torch.Tensor) else leaf

    arguments, keywords = pytree.tree_map(copied, (network.arguments, network.keywords))
    try:
        with torch.no_grad():
            network.module(*arguments, **keywords)
    except Exception as own:
        raise own_fault("forward of {}".format(network.place), own) from error


def _called(file: Path, function: str) -> Any:
    try:
        namespace = load_script(file)
    except Exception as error:
        raise own_fault(file.name, error) from error
    found = getattr(namespace, function, None)
    if not callable(found):
        names = [name for name, value in vars(namespace).items() if inspect.isfunction(value)]
        raise AdapterError(
            AdapterFailure.USAGE,
            "{} has no function '{}'".format(file.name, function),
            "script-attribute-missing",
            "it has: " + (", ".join(names) or "none"),
        )
    try:
        return found()
    except Exception as error:
        raise own_fault("{}() of {}".format(function, file.name), error) from error


def _examples(examples: Any) -> Tuple[Optional[Tuple[Any, ...]], Dict[str, Any]]:
    if examples is None:
        return None, {}
    if isinstance(examples, Mapping):
        return (), dict(examples)
    return tuple(examples) if isinstance(examples, (tuple, list)) else (examples,), {}


def in_dtype(torch: Any, network: Network, word: str, device: str) -> Network:
    """Return the network on a device, computing in a format; unchanged where the word is empty."""
    if not word and not device:
        return network
    dtype = getattr(torch, _DTYPES[word]) if word else None
    module = network.module.to(**({"dtype": dtype} if dtype else {}), **({"device": device} if device else {}))
    return network._replace(module=module)


class Caller:
    """Calls a network with feeds under the names of an ONNX model.

    Args:
        network: The network to call.
        names: Names of the ONNX model's inputs, in order.
        dtype: The format of floating point arguments; empty to leave them as they are fed.
        device: Device of the arguments.
    """

    def __init__(self, network: Network, names: Sequence[str], dtype: str, device: str) -> None:
        self._torch = torch_module()
        self._network, self._names = network, list(names)
        self._dtype = getattr(self._torch, _DTYPES[dtype]) if dtype else None
        self._device = device

    def arguments(self, feed: Mapping[str, Item]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """Return positional and keyword arguments.

        Inputs that are called like parameters of the network are handed over by name; others take the places of the
        tensors in the example inputs, in order; without examples, they are the positional arguments.

        Raises:
            AdapterError: When the examples hold another number of tensors.
        """
        tensors = [self._tensor(feed[name]) for name in self._names]
        network = self._network
        if network.arguments is None:
            parameters = _parameters(network.module)
            if set(self._names) <= set(parameters):
                return (), dict(zip(self._names, tensors))  # noqa: B905 - Python 3.9
            return tuple(tensors), {}
        pytree = importlib.import_module("torch.utils._pytree")
        leaves, structure = pytree.tree_flatten((network.arguments, network.keywords))
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, self._torch.Tensor)]
        if len(places) != len(tensors):
            raise AdapterError(
                AdapterFailure.USAGE,
                "the example inputs of {} hold {} tensors, the ONNX model takes {}".format(
                    network.place, len(places), len(tensors)
                ),
                "torch-inputs",
                "return the example inputs with which the model was exported",
            )
        for place, tensor in zip(places, self._in_order(places, leaves, tensors)):  # noqa: B905 - Python 3.9
            leaves[place] = tensor
        arguments, keywords = pytree.tree_unflatten(leaves, structure)
        return arguments, keywords

    def examples(self) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """Return the example inputs, which must be there, as positional and keyword arguments of the network's own."""
        pytree = importlib.import_module("torch.utils._pytree")

        def copied(leaf: Any) -> Any:
            return self._placed(leaf.clone()) if isinstance(leaf, self._torch.Tensor) else leaf

        arguments, keywords = pytree.tree_map(copied, (self._network.arguments, self._network.keywords))
        return arguments, keywords

    def _in_order(self, places: List[int], leaves: List[Any], tensors: List[Any]) -> List[Any]:
        """Return the tensors in the order of the examples: by parameter name where inputs are called so."""
        network = self._network
        assert network.arguments is not None
        parameters = _parameters(network.module)
        order = [*parameters[: len(network.arguments)], *network.keywords]
        if len(order) == len(tensors) == len(leaves) and set(order) == set(self._names):
            by_name = dict(zip(self._names, tensors))  # noqa: B905 - Python 3.9
            return [by_name[name] for name in order]
        return tensors

    def _tensor(self, item: Item) -> Any:
        array = np.array(item.array)  # feeds are read-only, and networks may write into their inputs
        torch = self._torch
        if item.label == "bfloat16":
            tensor = torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        else:
            tensor = torch.from_numpy(array)
        return self._placed(tensor)

    def _placed(self, tensor: Any) -> Any:
        if self._dtype is not None and tensor.is_floating_point():
            tensor = tensor.to(self._dtype)
        return tensor.to(self._device) if self._device else tensor


def _parameters(module: Any) -> List[str]:
    try:
        return list(inspect.signature(module.forward).parameters)
    except (AttributeError, TypeError, ValueError):
        return []


def tensors_in(torch: Any, value: Any) -> List[Any]:
    """Return the tensors that a network returns, in the order in which its ONNX model does."""
    pytree = importlib.import_module("torch.utils._pytree")
    leaves = []  # type: List[Any]
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            leaves.append(leaf)
        elif isinstance(leaf, Mapping):  # outputs of libraries that PyTorch cannot take apart
            leaves += tensors_in(torch, list(leaf.values()))
    return leaves


def as_item(torch: Any, name: str, tensor: Any, *, keep: bool = False) -> Item:
    """Return a tensor as numbers; formats that numpy lacks become float32, which holds all of theirs.

    Args:
        torch: PyTorch.
        name: Name of the tensor.
        tensor: Tensor of any format.
        keep: Whether bfloat16 stays bfloat16.
    """
    tensor = tensor.detach().to("cpu").resolve_conj().resolve_neg()
    if keep and tensor.dtype == torch.bfloat16:
        return Item(name, np.ascontiguousarray(tensor.view(torch.int16).numpy().view(np.uint16)), "bfloat16")
    if tensor.is_floating_point() and tensor.dtype not in (torch.float16, torch.float32, torch.float64):
        tensor = tensor.to(torch.float32)
    return Item(name, np.ascontiguousarray(tensor.numpy()))
