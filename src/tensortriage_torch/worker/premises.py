"""Conditions that make a comparison with a network void: it differs every time, or was not the exported one.

Only numbers are returned, of the network made again, called again, and of its weights; their meaning for a file is
decided where the file is.
"""

from __future__ import annotations

import copy
from typing import Any, Callable, Dict, List, Tuple

import numpy as np

from tensortriage_torch.worker.network import as_item, tensors_in
from tensortriage_worker.exchange import Item

MOST_ALONG = 16
"""Elements of a weight that are looked at along each of its dimensions, the same share of the way as in the file."""
QUANTILES = 65
"""Numbers that identify a weight regardless of the order of its elements."""
_CALLS_TOLD = 4

Call = Callable[[], Tuple[Tuple[Any, ...], Dict[str, Any]]]


def made_again(torch: Any, module: Any, again: Callable[[], Any]) -> Dict[str, Any]:
    """Return by how much the weights of a network differ when it is made once more: relative, by name."""
    own, other = module.state_dict(), again().state_dict()
    differ = {}
    for name, tensor in own.items():
        if name in other and isinstance(tensor, torch.Tensor) and tensor.numel():
            error = _difference(tensor, other[name])
            if error > 0:
                differ[name] = error
    return {"weights": len(own), "differ": differ, "missing": sorted(set(own) ^ set(other))}


def called_again(torch: Any, module: Any, call: Call) -> Dict[str, Any]:
    """Call a network three times on the same inputs, and return the changes with random numbers and with calls.

    ``random`` and ``state`` are relative differences of its results; ``buffers`` those that calls change. ``module`` is
    the first innermost module whose result differs, empty for operations between modules.
    """
    before = {name: tensor.clone() for name, tensor in module.state_dict().items() if isinstance(tensor, torch.Tensor)}
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        runs = [_run(torch, module, call, seed) for seed in (0, 0, 1)]
    after = module.state_dict()
    changed = [name for name, tensor in before.items() if name in after and _difference(tensor, after[name]) > 0]
    state, drawn = _farthest(runs[0][0], runs[1][0]), _farthest(runs[1][0], runs[2][0])
    first, second = (runs[0], runs[1]) if state else (runs[1], runs[2])
    return {
        "state": state,
        "random": 0.0 if state else drawn,
        "buffers": changed,
        "module": _first_other(first[1], second[1]),
    }


def _run(torch: Any, module: Any, call: Call, seed: int) -> Tuple[List[Any], List[Tuple[str, List[float]]]]:
    """Return the results of a network, and of each call of an innermost module two numbers that identify its result."""
    results = []  # type: List[Tuple[str, List[float]]]

    def note(name: str) -> Any:
        def hook(_module: Any, _inputs: Any, output: Any) -> None:
            sums = [float(tensor.double().abs().sum()) for tensor in tensors_in(torch, output)]
            results.append((name, sums))

        return hook

    handles = [inner.register_forward_hook(note(name)) for name, inner in _innermost(module)]
    torch.manual_seed(seed)
    try:
        positional, keywords = call()
        return [tensor.clone() for tensor in tensors_in(torch, module(*positional, **keywords))], results
    finally:
        for handle in handles:
            handle.remove()


def _first_other(one: List[Tuple[str, List[float]]], other: List[Tuple[str, List[float]]]) -> str:
    return next((left[0] for left, right in zip(one, other) if left != right), "")  # noqa: B905 - Python 3.9


def _innermost(module: Any) -> List[Tuple[str, Any]]:
    return [(name, inner) for name, inner in module.named_modules() if not any(True for _ in inner.children())]


def _farthest(one: List[Any], other: List[Any]) -> float:
    if len(one) != len(other):
        return float("inf")
    return max((_difference(left, right) for left, right in zip(one, other)), default=0.0)  # noqa: B905 - Python 3.9


def _difference(one: Any, other: Any) -> float:
    """Return the relative RMS difference of two tensors; inf for other shapes or kinds."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return float("inf")
    if one.is_complex():
        one, other = one.detach().abs(), other.detach().abs()
    one, other = one.detach().double(), other.detach().double()
    off, size = float((one - other).pow(2).sum()), float(one.pow(2).sum())
    if off == 0.0 or off != off:  # NaN in both, as in both runs
        return 0.0
    return float((off / size) ** 0.5) if size else float("inf")


def weights(torch: Any, module: Any) -> Tuple[Dict[str, List[int]], List[Item]]:
    """Return the shapes of a network's weights of two dimensions or more, and of each a sample and its quantiles."""
    shapes, items = {}, []  # type: Dict[str, List[int]], List[Item]
    for name, tensor in module.state_dict().items():
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and tensor.dim() > 1 and tensor.numel():
            array = as_item(torch, name, tensor.detach().to("cpu").float()).array
            shapes[name] = [int(size) for size in array.shape]
            items += [Item("sample/" + name, sample(array)), Item("quantiles/" + name, quantiles(array))]
    return shapes, items


def sample(array: np.ndarray) -> np.ndarray:
    """Return elements of an array at places that depend on its shape alone, alike for a transposed one."""
    places = [np.unique(np.linspace(0, size - 1, min(size, MOST_ALONG)).astype(int)) for size in array.shape]
    return np.ascontiguousarray(array[np.ix_(*places)])


def quantiles(array: np.ndarray) -> np.ndarray:
    """Return numbers of an array at even steps of their order."""
    places = np.linspace(0, array.size - 1, QUANTILES).astype(int)
    return np.asarray(np.partition(array.ravel(), np.unique(places))[places])


def at_the_ends(torch: Any, module: Any, call: Call) -> Tuple[List[Tuple[str, Any]], List[Tuple[str, Any]], List[str]]:
    """Return the inputs of the first modules, the outputs of the last ones, and all that run, by path.

    The network itself is none of them.
    """
    given, returned = [], []  # type: List[Tuple[str, Any]], List[Tuple[str, Any]]
    ran = {}  # type: Dict[str, None]

    def before(name: str) -> Any:
        def hook(_module: Any, inputs: Any) -> None:
            ran[name] = None
            for tensor in tensors_in(torch, inputs)[:1]:
                if len(given) < _CALLS_TOLD:
                    given.append((name, tensor.detach().clone()))

        return hook

    def after(name: str) -> Any:
        def hook(_module: Any, _inputs: Any, output: Any) -> None:
            returned.extend((name, tensor.detach().clone()) for tensor in tensors_in(torch, output)[:1])
            del returned[:-_CALLS_TOLD]

        return hook

    named = [(name, inner) for name, inner in module.named_modules() if name]
    handles = [inner.register_forward_pre_hook(before(name)) for name, inner in named]
    handles += [inner.register_forward_hook(after(name)) for name, inner in named]
    try:
        with torch.no_grad():
            positional, keywords = call()
            module(*positional, **keywords)
    finally:
        for handle in handles:
            handle.remove()
    return given, returned, list(ran)


def by_own_statistics(torch: Any, module: Any, call: Call) -> Tuple[Dict[str, str], List[Any]]:
    """Return modules that normalize by stored statistics, with their classes, and what the network returns without.

    There each of them computes those of its input, as in training; nothing else is another.
    """
    named = {
        name: type(inner).__name__
        for name, inner in module.named_modules()
        if getattr(inner, "running_mean", None) is not None and not inner.training
    }
    if not named:
        return {}, []
    other = copy.deepcopy(module)
    for name in named:
        other.get_submodule(name).train()
    with torch.no_grad():
        positional, keywords = call()
        return named, tensors_in(torch, other(*positional, **keywords))


def told_of(torch: Any, module: Any, again: Callable[[], Any], call: Call) -> Tuple[Dict[str, Any], List[Item]]:
    """Return all of the above; where a part fails, its ``reason`` instead."""

    def attempt(work: Callable[[], Dict[str, Any]]) -> Dict[str, Any]:
        try:
            return work()
        except Exception as error:  # the user's code, called otherwise than it expects
            return {"reason": "{}: {}".format(type(error).__name__, str(error)[:300])}

    shapes, items = weights(torch, module)
    ends = {}  # type: Dict[str, Item]

    def gather() -> Dict[str, Any]:
        given, returned, ran = at_the_ends(torch, module, call)
        for word, found in (("given", given), ("returned", returned)):
            for path, tensor in found:
                name = "{}/{}".format(word, path)
                ends.setdefault(name, as_item(torch, name, tensor))
        return {"ran": ran}

    def normalized() -> Dict[str, Any]:
        named, made = by_own_statistics(torch, module, call)
        items.extend(as_item(torch, "own/{}".format(place), tensor) for place, tensor in enumerate(made))
        return {"modules": named}

    numbers = {
        "again": attempt(lambda: made_again(torch, module, again)),
        "calls": attempt(lambda: called_again(torch, module, call)),
        "ends": attempt(gather),
        "statistics": attempt(normalized),
        "paths": [name for name, _ in module.named_modules() if name],
        "shapes": shapes,
    }  # type: Dict[str, Any]
    return numbers, [*items, *ends.values()]
