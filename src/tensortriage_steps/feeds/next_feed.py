"""The inputs of the next step: the model's own state, the next token, a mask one longer, the next position.

The role of an input follows from its name, type and shape, as exporters of decoders name them; an input that no rule
knows keeps its value of the first step. Names of masks mislead: their other readings are listed too, for callers that
can try them on an engine. Nothing here runs a model.
"""

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.envelope.sdk import DType, ValueSpec
from tensortriage.sdk import DataError, UsageError
from tensortriage_steps.feeds.carried import Carry, grown_axes
from tensortriage_steps.feeds.state_parts import NEW, OLD, WHOLE, StatePart, state_parts

Arrays = Mapping[str, np.ndarray]
Run = Callable[[Arrays], Arrays]
"""Runs a model on a feed."""

_TOKENS = re.compile(r"(^|[._])(input_?ids|token_?ids|tokens?|ids)$")
_MASK = re.compile(r"(^|[^a-z])mask([^a-z]|$)")
_POSITIONS = re.compile(r"(position_?ids?|cache_?position|(^|[^a-z])positions?)$")
_ELSEWHERE = re.compile(r"(^|[^a-z])(encoder|cross|memory|source|src)([^a-z]|$)")
_BRANCH = re.compile(r"(^|[._])use_(cache|past)(_branch)?$")
_BEAMS = re.compile(r"(^|[._])beam_?(idx|index|indices|ids?)$")
_LOGITS = re.compile(r"(^|[._])logits?$")

MOST_MASKS = 3
"""Masks that have other readings to try."""


@dataclasses.dataclass(frozen=True, slots=True)
class StepRoles:
    """Roles of inputs and outputs.

    Attributes:
        carry: Pairs of an output and the input that receives it in the next step.
        tokens: Input that takes token ids ``[batch, sequence]``; empty without one.
        masks: Inputs that mark the positions that count; their last axis is as long as the sequence so far.
        windowed: Masks whose last axis is as long as the caches' contents and the new tokens, no longer.
        seen: Masks of something else, such as the encoder's input; they stay unchanged.
        positions: Inputs that count positions.
        logits: Output of scores over the vocabulary, whose largest is the next token; empty without one.
        grown: Axes along which carried inputs grow, by input.
        sized: Masks of a size that the model fixes, as caches that do not grow have them: their positions are shown as
            they are filled.
        branch: Input that selects whether caches hold anything, in decoders that are merged of two.
        beams: Input that holds the row of the batch which each row continues.
    """

    carry: tuple[Carry, ...]
    tokens: str = ""
    masks: tuple[str, ...] = ()
    windowed: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    positions: tuple[str, ...] = ()
    logits: str = ""
    grown: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    sized: Mapping[str, int] = dataclasses.field(default_factory=dict)
    branch: str = ""
    beams: str = ""

    @property
    def told(self) -> tuple[str, ...]:
        """Inputs that follow from the tokens alone."""
        return tuple(filter(None, (self.tokens, *self.masks, *self.seen, *self.positions, self.branch, self.beams)))

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

    def parts(self, output: str, feed: Arrays, array: np.ndarray) -> tuple[StatePart, ...]:
        """Return the parts of an output: of a state the rows of this step, and those that it held before.

        Args:
            output: Name of the output.
            feed: The feed of the step.
            array: The output.
        """
        given = next((pair.input for pair in self.carry if pair.output == output), "")
        if not given:
            return WHOLE
        found = state_parts(feed[given], array, self.new(feed))
        for axis in self.grown.get(given, ()):
            before = feed[given].shape[axis] if feed[given].ndim == array.ndim else 0
            if found == WHOLE and 0 < before < array.shape[axis]:
                head = (slice(None),) * axis
                return StatePart(NEW, (*head, slice(before, None))), StatePart(OLD, (*head, slice(0, before)))
        return found

    def state(self, outputs: Arrays, feed: Arrays) -> dict[str, np.ndarray]:
        """Return the carried outputs by the names of the inputs that they become.

        An output that is empty leaves the input as it is: merged decoders give cross-attention caches only once.

        Args:
            outputs: Outputs of a step.
            feed: The feed.
        """
        given = {pair.input: np.asarray(outputs[pair.output]) for pair in self.carry}
        return {name: array if array.size else feed[name] for name, array in given.items()}

    def held(self, feed: Arrays) -> int:
        """Return how many rows the caches of a feed hold; 0 where none grows."""
        grown = ((feed[name], axes[0]) for name, axes in self.grown.items() if axes and name in feed)
        return next((array.shape[axis] for array, axis in grown if array.ndim > axis), 0)

    def new(self, feed: Arrays) -> int:
        """Return how many tokens a feed has for each row of the batch; 0 for models without."""
        ids = feed[self.tokens] if self.tokens else np.zeros((1, 0))
        return int(ids.shape[-1]) if ids.ndim > 1 else 1

    def readings(self) -> Iterator["StepRoles"]:
        """Yield other readings of the masks, those that change least first."""
        names = (*self.masks, *self.seen)
        own = tuple("seen" if n in self.seen else "windowed" if n in self.windowed else "grown" for n in names)
        ways = itertools.product(("grown", "seen", "windowed"), repeat=min(len(names), MOST_MASKS))
        for way in sorted(ways, key=lambda way: sum(map(str.__ne__, way, own))):
            if way != own:
                read = dict(zip(names, (*way, *own[len(way) :]), strict=True))
                seen = tuple(name for name in names if read[name] == "seen")
                yield dataclasses.replace(
                    self,
                    masks=tuple(name for name in names if name not in seen),
                    seen=seen,
                    windowed=tuple(name for name in names if read[name] == "windowed"),
                )


def step_roles(
    inputs: Sequence[ValueSpec], outputs: Sequence[ValueSpec], carry: Sequence[Carry], *, logits: str = ""
) -> StepRoles:
    """Return the roles of inputs and outputs.

    Args:
        inputs: The model's inputs.
        outputs: Outputs of the model.
        carry: Pairs of an output and the input that receives it in the next step.
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
    carried, specs = {pair.input for pair in carry}, {spec.name: spec for spec in inputs}
    free = [spec for spec in inputs if spec.name not in carried]
    whole = [spec for spec in free if spec.dtype is not None and spec.dtype.is_integer]
    masked = [spec for spec in free if _MASK.search(spec.name.lower())]
    positions = tuple(spec.name for spec in whole if _POSITIONS.search(spec.name.lower()))
    known_otherwise = {*positions, *(spec.name for spec in masked)}
    ids = [s.name for s in whole if _TOKENS.search(s.name.lower()) and s.name not in known_otherwise]
    decoded = ids if len(ids) == 1 else [name for name in ids if "decoder" in name.lower()]
    tokens = decoded[0] if len(decoded) == 1 else ""
    others = [spec for spec in free if spec.name not in known_otherwise and spec.name != tokens]
    seen = tuple(spec.name for spec in masked if _is_of_another(spec, others))
    masks = tuple(spec.name for spec in masked if spec.name not in seen)
    scores = [name for name in known if _LOGITS.search(name.lower())]
    batch = ((specs[tokens].shape or ()) if tokens else ())[:1]
    grown = {pair.input: grown_axes(known[pair.output], specs[pair.input], batch) for pair in carry}
    sizes = {name: (specs[name].shape or (None,))[-1] for name in masks if carry and not any(grown.values())}
    flags = [s.name for s in free if s.dtype is DType.BOOL and _BRANCH.search(s.name.lower())]
    beams = [spec.name for spec in whole if _BEAMS.search(spec.name.lower())]
    return StepRoles(
        tuple(carry),
        tokens,
        masks,
        seen=seen,
        positions=positions,
        logits=logits or (scores[0] if len(scores) == 1 else ""),
        grown=grown,
        sized={name: size for name, size in sizes.items() if isinstance(size, int)},
        branch=flags[0] if len(flags) == 1 else "",
        beams=beams[0] if len(beams) == 1 else "",
    )


def _is_of_another(mask: ValueSpec, others: Sequence[ValueSpec]) -> bool:
    """Return whether a mask hides positions of another input: by its name, or by an open axis of the same name."""
    length = (mask.shape or (None,))[-1]
    named = any(length in (spec.shape or ())[1:] for spec in others)
    return bool(_ELSEWHERE.search(mask.name.lower())) or (isinstance(length, str) and named)


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
        roles: Roles of the inputs.
        feed: The feed of this step.
        state: Carried values by input, see `StepRoles.state`.
        tokens: The next ids, ``[batch]`` or ``[batch, several]``; None where the next step has no new ones.

    Raises:
        DataError: When a cache of a fixed size is full (``steps-cache-full``).
    """
    made = {**feed, **state}
    if roles.branch:
        made[roles.branch] = np.ones_like(feed[roles.branch])
    if tokens is None or not roles.tokens:
        return made
    ids = np.asarray(tokens, feed[roles.tokens].dtype).reshape(len(tokens), -1)
    if feed[roles.tokens].ndim == 1:  # one token a step, [batch]
        ids = ids[:, -1]
    made[roles.tokens] = np.concatenate([feed[roles.tokens], ids], axis=-1) if roles.regrows else ids
    count = roles.new(made) - (roles.new(feed) if roles.regrows else 0)
    for name in roles.masks:
        if name in roles.sized:
            made[name] = _filled(name, feed[name], count)
            continue
        made[name] = _longer(feed[name], count, rows=1 if roles.carry else 0)
        if name in roles.windowed:
            made[name] = made[name][..., -(roles.held(made) + count) :]
    for name in roles.positions:
        new = _counted_on(feed[name], count)
        made[name] = np.concatenate([feed[name], new], axis=-1) if roles.regrows else new
    return made


def beginning(roles: StepRoles, given: Arrays, made_up: Arrays) -> dict[str, np.ndarray]:
    """Return the feed of the first step.

    Args:
        roles: Roles of the inputs.
        given: Values from the user, by input; inputs with a rule may be missing.
        made_up: Sensible values of all inputs, in the shapes that the first step has.

    States begin empty, or as zeros; masks show everything; positions count the shown ones, or all, from 0.
    """
    first = {**made_up, **given}
    batch, length = (len(first[roles.tokens]) if roles.tokens else 0), roles.new(first)
    for pair in roles.carry:
        if pair.input not in given:
            first[pair.input] = np.zeros_like(made_up[pair.input])
    past = roles.held(first)
    for name in (*roles.masks, *roles.seen):
        if name not in given and roles.tokens and first[name].ndim == 2:
            size = first[name].shape[-1] if name in roles.seen else past + length
            shown = np.ones((batch, size), first[name].dtype)
            first[name] = _hidden_beyond(shown, roles.sized.get(name, size))
    shown_to = next((first[name] for name in roles.masks if name in given and name not in roles.sized), None)
    for name in roles.positions:
        if name not in given and first[name].ndim and length:
            first[name] = _counted(first[name], past, length, shown_to)
    if roles.branch and roles.branch not in given:
        first[roles.branch] = np.full_like(first[roles.branch], any(pair.input in given for pair in roles.carry))
    if roles.beams and roles.beams not in given:
        first[roles.beams] = np.arange(first[roles.beams].size, dtype=first[roles.beams].dtype)
    return first


def _counted(positions: np.ndarray, past: int, length: int, shown: np.ndarray | None) -> np.ndarray:
    """Return the positions of new tokens: of each row those that its mask shows, as batches of other lengths need it.

    Args:
        positions: An array of the type and axes wanted, ``[..., any]``.
        past: Positions before.
        length: New ones.
        shown: A given mask ``[batch, past + length]``, 1 where a position counts; None where all do.
    """
    if shown is not None and positions.ndim == 2 and shown.ndim == 2 and shown.shape[-1] == past + length:
        counted = np.maximum(np.cumsum(shown != 0, axis=-1) - 1, 0)[:, past:]
    else:
        counted = np.broadcast_to(np.arange(past, past + length), (*positions.shape[:-1], length))
    return np.array(counted, positions.dtype)


def _longer(mask: np.ndarray, count: int, *, rows: int) -> np.ndarray:
    """Return a mask with more positions, each shown like the last one to itself.

    Args:
        mask: ``[batch, length]``, or ``[..., queries, length]`` whose last query sees itself.
        count: How many positions more.
        rows: 1 where the queries of the next step are the new positions alone; else all queries stay.
    """
    if mask.ndim > 2 and rows:
        mask = mask[..., -1:, :]
    return np.concatenate([mask, np.repeat(mask[..., -1:], count, axis=-1)], axis=-1)


def _hidden_beyond(shown: np.ndarray, size: int) -> np.ndarray:
    """Return a mask ``[batch, size]`` that shows only the first positions; longer ones are unchanged."""
    return np.pad(shown, ((0, 0), (0, max(0, size - shown.shape[-1]))))


def _filled(name: str, mask: np.ndarray, count: int) -> np.ndarray:
    """Return a mask of a fixed size with more positions shown, behind the last one that is.

    Args:
        name: The input.
        mask: ``[batch, size]``, or ``[..., queries, size]``, where the last query counts; the largest values are
            visible.
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
