"""What a model gets at the next step: its own state, the next token, a mask that is one longer, the next position.

What an input is for is told by its name and type, as exporters of decoders name them; what no rule knows stays what it
was at the first step. Nothing here runs a model.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.errors import DataError, UsageError
from tensortriage.inputs.steps.carried import Carry, grown_axes
from tensortriage.values.spec import ValueSpec

Arrays = Mapping[str, np.ndarray]

_TOKENS = re.compile(r"(^|[._])(input_?ids|token_?ids|tokens?|ids)$")
_MASK = re.compile(r"(^|[^a-z])mask([^a-z]|$)")
_POSITIONS = re.compile(r"(position_?ids?|cache_?position|(^|[^a-z])positions?)$")
_LOGITS = re.compile(r"(^|[._])logits?$")


@dataclasses.dataclass(frozen=True, slots=True)
class StepRoles:
    """What inputs and outputs are for.

    Attributes:
        carry: What is carried from step to step.
        tokens: Input that takes token ids ``[batch, sequence]``; empty without one.
        masks: Inputs that say which positions count; their last axis is as long as the sequence so far.
        positions: Inputs that count positions.
        logits: Output of scores over the vocabulary, of which the largest is the next token; empty without one.
        grown: Axes along which carried inputs grow, by input.
        sized: Masks of a size that the model fixes, as caches that do not grow have them: their positions are shown as
            they are filled.
    """

    carry: tuple[Carry, ...]
    tokens: str = ""
    masks: tuple[str, ...] = ()
    positions: tuple[str, ...] = ()
    logits: str = ""
    grown: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    sized: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def generates(self) -> bool:
        """Whether the next token follows from the outputs."""
        return bool(self.tokens and self.logits)

    @property
    def regrows(self) -> bool:
        """Whether every step gets the whole sequence again, for nothing is carried."""
        return not self.carry and self.generates

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the carried outputs."""
        return tuple(pair.output for pair in self.carry)

    def parts(self, output: str, feed: Arrays, array: np.ndarray) -> dict[str, tuple[slice, ...]]:
        """Return where the parts of an output are: of a cache the rows of this step, and those that it held before.

        Args:
            output: Its name.
            feed: The feed of the step.
            array: The output.
        """
        given = next((pair.input for pair in self.carry if pair.output == output), "")
        for axis in self.grown.get(given, ()):
            before = feed[given].shape[axis] if feed[given].ndim == array.ndim else 0
            if 0 < before < array.shape[axis]:
                head = (slice(None),) * axis
                return {"new rows": (*head, slice(before, None)), "old rows": (*head, slice(0, before))}
        return {"": ()}

    def state(self, outputs: Arrays) -> dict[str, np.ndarray]:
        """Return the carried outputs by the names of the inputs that they become."""
        return {pair.input: np.asarray(outputs[pair.output]) for pair in self.carry}


def step_roles(
    inputs: Sequence[ValueSpec], outputs: Sequence[ValueSpec], carry: Sequence[Carry], *, logits: str = ""
) -> StepRoles:
    """Tell what inputs and outputs are for.

    Args:
        inputs: The model's inputs.
        outputs: Its outputs.
        carry: What is carried.
        logits: Name of the output of scores; empty to find it.

    Raises:
        UsageError: When there is no output of that name (``value-unknown``).
    """
    known = {spec.name: spec for spec in outputs}
    if logits and logits not in known:
        raise UsageError(
            f"the model has no output '{logits}'",
            slug="value-unknown",
            cure=f"its outputs: {', '.join(list(known)[:12])}",
        )
    taken = {pair.input for pair in carry}
    free = [spec for spec in inputs if spec.name not in taken]
    whole = [spec for spec in free if spec.dtype is not None and spec.dtype.is_integer]
    masks = tuple(spec.name for spec in free if _MASK.search(spec.name.lower()))
    positions = tuple(spec.name for spec in whole if _POSITIONS.search(spec.name.lower()))
    tokens = [s.name for s in whole if _TOKENS.search(s.name.lower()) and s.name not in (*masks, *positions)]
    scores = [name for name in known if _LOGITS.search(name.lower())]
    specs = {spec.name: spec for spec in inputs}
    grown = {pair.input: grown_axes(known[pair.output], specs[pair.input]) for pair in carry}
    sizes = {name: (specs[name].shape or (None,))[-1] for name in masks if carry and not any(grown.values())}
    return StepRoles(
        tuple(carry),
        tokens[0] if len(tokens) == 1 else "",
        masks,
        positions,
        logits or (scores[0] if len(scores) == 1 else ""),
        grown,
        {name: size for name, size in sizes.items() if isinstance(size, int)},
    )


def next_tokens(logits: np.ndarray) -> np.ndarray:
    """Return the ids of the largest scores at the last position, ``[batch]``.

    Args:
        logits: ``[batch, sequence, vocabulary]`` or ``[batch, vocabulary]``.
    """
    return np.asarray(last_scores(logits).argmax(axis=-1))


def last_scores(logits: np.ndarray) -> np.ndarray:
    """Return the scores at the last position, ``[batch, vocabulary]`` in float64.

    Raises:
        DataError: When the array has no such axes (``logits-shape``).
    """
    scores = np.asarray(logits, np.float64)
    if scores.ndim not in (2, 3) or not scores.size:
        raise DataError(
            f"logits have shape {list(scores.shape)}, not [batch, sequence, vocabulary] or [batch, vocabulary]",
            slug="logits-shape",
            cure="name the output of scores with --logits",
        )
    return scores if scores.ndim == 2 else scores[:, -1]


def following(roles: StepRoles, feed: Arrays, state: Arrays, tokens: np.ndarray | None) -> dict[str, np.ndarray]:
    """Return the feed of the next step.

    Args:
        roles: What inputs are for.
        feed: The feed of this step.
        state: Carried values by input, see `StepRoles.state`.
        tokens: The next ids, ``[batch]`` or ``[batch, several]``; None where the next step has no new ones.

    Raises:
        DataError: When a cache of a fixed size is full (``steps-cache-full``).
    """
    made = {**feed, **state}
    if tokens is None or not roles.tokens:
        return made
    ids = np.asarray(tokens, feed[roles.tokens].dtype).reshape(len(tokens), -1)
    made[roles.tokens] = np.concatenate([feed[roles.tokens], ids], axis=-1) if roles.regrows else ids
    for name in roles.masks:
        if name in roles.sized:
            made[name] = _filled(name, feed[name], ids.shape[-1])
            continue
        made[name] = _longer(feed[name], ids.shape[-1], rows=1 if roles.carry else 0)
    for name in roles.positions:
        new = _counted_on(feed[name], ids.shape[-1])
        made[name] = np.concatenate([feed[name], new], axis=-1) if roles.regrows else new
    return made


def beginning(roles: StepRoles, given: Arrays, made_up: Arrays) -> dict[str, np.ndarray]:
    """Return the feed of the first step.

    Args:
        roles: What inputs are for.
        given: What the user gave, by input; may lack whatever rules know.
        made_up: Sensible values of all inputs, in the shapes that the first step has.

    States begin empty, or as zeros; masks show everything; positions count from 0.
    """
    first = {**made_up, **given}
    length = first[roles.tokens].shape[-1] if roles.tokens else 0
    for pair in roles.carry:
        if pair.input not in given:
            first[pair.input] = np.zeros_like(made_up[pair.input])
    past = next(
        (first[name].shape[axes[0]] for name, axes in roles.grown.items() if axes and first[name].ndim > axes[0]), 0
    )
    for name in roles.masks:
        if name not in given and roles.tokens and first[name].ndim == 2:
            shown = np.ones((len(first[name]), past + length), first[name].dtype)
            first[name] = _hidden_beyond(shown, roles.sized.get(name, past + length))
    for name in roles.positions:
        if name not in given and first[name].ndim and length:
            counted = np.arange(past, past + length, dtype=first[name].dtype)
            first[name] = np.array(np.broadcast_to(counted, (*first[name].shape[:-1], length)))
    return first


def _longer(mask: np.ndarray, count: int, *, rows: int) -> np.ndarray:
    """Return a mask for some positions more, which are shown as the last one is to itself.

    Args:
        mask: ``[batch, length]``, or ``[..., queries, length]`` of which the last query sees itself.
        count: How many positions more.
        rows: 1 where the queries of the next step are the new positions alone; else all queries stay.
    """
    if mask.ndim > 2 and rows:
        mask = mask[..., -1:, :]
    return np.concatenate([mask, np.repeat(mask[..., -1:], count, axis=-1)], axis=-1)


def _hidden_beyond(shown: np.ndarray, size: int) -> np.ndarray:
    """Return a mask ``[batch, size]`` of which but the first positions are shown; longer ones stay as they are."""
    return np.pad(shown, ((0, 0), (0, max(0, size - shown.shape[-1]))))


def _filled(name: str, mask: np.ndarray, count: int) -> np.ndarray:
    """Return a mask of a fixed size in which some positions more are shown, behind the last one that is.

    Args:
        name: The input.
        mask: ``[batch, size]``, or ``[..., queries, size]`` of which the last query is taken; what is largest is shown.
        count: How many positions more.

    Raises:
        DataError: When there is no room for them (``steps-cache-full``).
    """
    if mask.ndim > 2:
        mask = mask[..., -1:, :]
    shown = (mask == mask.max()).reshape(-1, mask.shape[-1]).any(axis=0)
    begin = int(np.flatnonzero(shown)[-1]) + 1
    if begin + count > mask.shape[-1]:
        raise DataError(
            f"the cache is full: all {mask.shape[-1]} positions of '{name}' are shown",
            slug="steps-cache-full",
            cure="fewer --steps, a shorter prompt, or masks of your own by --between",
        )
    made = mask.copy()
    made[..., begin : begin + count] = mask.max()
    return made


def _counted_on(positions: np.ndarray, count: int) -> np.ndarray:
    last = positions[..., -1:]
    return np.asarray(last + np.arange(1, count + 1, dtype=positions.dtype), positions.dtype)
