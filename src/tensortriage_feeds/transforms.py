"""One thing that a program does to its inputs otherwise than it ought to: words, numbers, the line that mends it."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Tensors = Mapping[str, np.ndarray]
CHANCE_BITS = 10.0
"""By so many bits an agreement must be less likely than one of all candidates by chance: once in a thousand."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Transform:
    """A transform of the right tensors of a feed.

    Attributes:
        kind: A word for machines, such as ``channels-reversed``; see `KINDS`.
        inputs: The inputs that it changes.
        words: The transform, as a predicate of the input: ``has its channels reversed``.
        apply: Returns the changed tensors, those of `inputs`, of all tensors of the right feed.
        cure: The line to write, or advice.
        parameters: Its numbers, in types of JSON.
        simple: Whether it may be one of several that were made at once.
    """

    kind: str
    inputs: tuple[str, ...]
    words: str
    apply: Callable[[Tensors], Tensors]
    cure: str
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    simple: bool = True

    def __call__(self, tensors: Tensors) -> Tensors:
        """Return a feed with its inputs changed; each keeps its type."""
        with np.errstate(all="ignore"):  # what a network makes of Inf is for its outputs to say
            made = {name: _like(array, tensors[name].dtype) for name, array in self.apply(tensors).items()}
        return {**tensors, **made}

    @property
    def stated(self) -> dict[str, Any]:
        """Its parameters, in types of JSON."""
        return {"kind": self.kind, "inputs": list(self.inputs), "parameters": dict(self.parameters), "cure": self.cure}


def of_input(
    name: str, kind: str, words: str, change: Callable[[np.ndarray], np.ndarray], cure: str, **parameters: Any
) -> Transform:
    """Return a transform of one input, by a function of its tensor; ``{x}`` in the cure is the input's name."""

    def apply(tensors: Tensors) -> Tensors:
        return {name: change(tensors[name])}

    return Transform(kind, (name,), words, apply, cure.replace("{x}", identifier(name)), parameters)


def of_all(each: Sequence[Transform]) -> Transform:
    """Return one transform for several that change one input each in the same way."""
    first = each[0]

    def apply(tensors: Tensors) -> Tensors:
        return {name: array for transform in each for name, array in transform.apply(tensors).items()}

    inputs = tuple(name for transform in each for name in transform.inputs)
    cure = "; ".join(transform.cure for transform in each)
    return Transform(first.kind, inputs, first.words, apply, cure, first.parameters)


def composed(steps: Sequence[Transform], tensors: Tensors) -> Tensors:
    """Return a feed after several transforms, in their order."""
    for step in steps:
        tensors = step(tensors)
    return tensors


def sentence(steps: Sequence[Transform]) -> str:
    """Return the change of the inputs, as a clause that begins with the first of them."""
    said: list[str] = []
    for place, step in enumerate(steps):
        names = " and ".join(f"'{name}'" for name in step.inputs)
        again = place and step.inputs == steps[place - 1].inputs
        said.append(step.words if again else f"{names} {step.words}")
    return " and ".join(said)


def cure_of(steps: Sequence[Transform]) -> str:
    """Return the inverse of several transforms: the last one first."""
    return "; ".join(dict.fromkeys(step.cure for step in reversed(steps)))


def identifier(name: str) -> str:
    """Return an input's name as one of Python."""
    word = "".join(letter if letter.isalnum() else "_" for letter in name.split("/")[-1].split(":")[0])
    return word if word.isidentifier() else "x"


def _like(array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    if array.dtype == dtype:
        return np.ascontiguousarray(array)
    if dtype.kind in "iu" and array.dtype.kind == "f":
        bounds = np.iinfo(dtype)
        array = np.clip(np.rint(np.nan_to_num(array)), bounds.min, bounds.max)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(array.astype(dtype))
