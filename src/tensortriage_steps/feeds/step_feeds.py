"""The feeds of all steps: the first one, and the rule by which each follows from the results of the one before."""

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensortriage.api import EngineError, Feed, FeedRequest, Model, TriageError
from tensortriage.envelope.sdk import Origin, ScriptFunction, check_feed, feeds, random_feeds
from tensortriage.sdk import DataError, UsageError
from tensortriage_steps.feeds.carried import Carry, carried, unpaired
from tensortriage_steps.feeds.next_feed import Arrays, Run, StepRoles, beginning, following, next_tokens, step_roles
from tensortriage_steps.request import StepsRequest
from tensortriage_steps.steps_report import STEPS

REFERENCE, TARGET = "the reference", "the target"
"""Names of the runs on own states, in addition to the healthy evaluations, which have names of their own."""

_ONE_TOKEN = (
    "the reference takes one token at a time, though the model leaves the length open: as when it was exported with "
    "one example token; export it with two to run prompts"
)


class StepFeeds:
    """Makes the feeds of a model that is run step by step.

    Args:
        request: The command's request.
        model: The model.

    Attributes:
        roles: Roles of the inputs and outputs.
        left: Outputs that may be inputs of the next step by type and shape, but not by name, and were not requested.
        steps: How many steps there are.
        first: The first feed.
        origin: Whether it was given or made up.
        notes: Inputs whose role differs from their name.

    Raises:
        UsageError: When nothing leads from one step to the next, or possible pairs are not named so
            (``steps-nothing-carried``), or ``--carry`` is wrong.
        DataError: When the inputs do not fit, or are too few (``steps-too-few``).
    """

    def __init__(self, request: StepsRequest, model: Model) -> None:
        self._model = model
        self.roles = step_roles(
            model.inputs, model.outputs, carried(model.outputs, model.inputs, request.carry), logits=request.logits
        )
        self.left = () if request.carry or request.between else _left(model, self.roles)
        if self.left and self.roles.regrows:
            raise _unnamed(self.left)
        self._script, self._limits = request.between, request.limits
        self._scripts: dict[str, ScriptFunction] = {}
        self._between = self._script_of(REFERENCE) if request.between else None
        if not (self.roles.carry or self.roles.generates or self._between):
            raise _nothing_carried(model)
        self._given = _samples(request.feeding, model, self.roles)
        count = len(self._given)
        self.steps = request.steps or (count if count > 1 else STEPS)
        if 1 < count < self.steps and not self.roles.generates:
            raise DataError(
                f"the inputs hold {count} samples, not one for each of {self.steps} steps",
                slug="steps-too-few",
                cure=f"give more samples, or --steps {count}",
            )
        self.origin = self._given[0].origin if count else Origin.RANDOM
        self._draws: list[Arrays] = []
        self._made_up = self._make_up(request.feeding)
        self._beginning = (self._given[0].tensors if count else {}, next(self._made_up))
        self.first = self._checked(beginning(self.roles, *self._beginning))
        self.notes: list[str] = []

    def close(self) -> None:
        """End the processes of the script."""
        for script in self._scripts.values():
            script.close()

    @property
    def scripted(self) -> bool:
        """Whether a script makes the feeds, which may depend on its earlier ones."""
        return self._between is not None

    @property
    def keeps_states(self) -> bool:
        """Whether the results of one step reach the engine's next one, other than by tokens."""
        return bool(self.roles.carry or self._between)

    def taken(self, step: int, before: tuple[Arrays, Arrays] | None, feed: Arrays, run: Run) -> tuple[Arrays, Arrays]:
        """Run a feed; if an engine refuses it, with its masks read otherwise, and so from then on.

        A prompt that was made up is cut to one token at last: exporters fix the length where one was the example.

        Args:
            step: The number of the step.
            before: Feed and outputs of the step before; None for the first.
            feed: The feed.
            run: The engine.

        Returns:
            The feed that was run, and its outputs.

        Raises:
            EngineError: When the engine runs none; that of the feed.
        """
        try:
            return feed, run(feed)
        except EngineError:
            named, tried = self.roles, {_sizes(feed)}
            for reading in named.readings():
                self.roles = reading
                with contextlib.suppress(TriageError):
                    other = self._again(step, before)
                    if _sizes(other) not in tried:
                        tried.add(_sizes(other))
                        outputs = run(other)
                        self.notes.append(_read(named, reading))
                        return other, outputs
            self.roles = named
            if before is None and self._shortened():
                with contextlib.suppress(EngineError):
                    found = self.taken(step, before, self._again(step, before), run)
                    self.notes.append(_ONE_TOKEN)
                    return found
            raise

    def _shortened(self) -> bool:
        """Cut the prompt to one token, and return whether that makes another one of our own."""
        given, made_up = self._beginning
        tokens = made_up.get(self.roles.tokens)
        if tokens is None or self.roles.tokens in given or tokens.shape[-1] < 2:
            return False
        self._beginning = given, {**made_up, self.roles.tokens: tokens[..., :1]}
        return True

    def _again(self, step: int, before: tuple[Arrays, Arrays] | None) -> dict[str, np.ndarray]:
        if before is not None:
            return self.after(step - 1, *before)
        self.first = self._checked(beginning(self.roles, *self._beginning))
        return self.first

    def after(
        self, step: int, feed: Arrays, outputs: Arrays, tokens: np.ndarray | None = None
    ) -> dict[str, np.ndarray]:
        """Return the feed that follows from a step.

        Args:
            step: The number of the step.
            feed: The feed.
            outputs: An engine's outputs of that step.
            tokens: The next tokens, if they are not those of the largest scores.
        """
        roles = self.roles
        given = self._given[step + 1].tensors if step + 1 < len(self._given) else {}
        chosen = given.get(roles.tokens) if roles.tokens else None
        if chosen is None and roles.generates:
            chosen = next_tokens(outputs[roles.logits]) if tokens is None else tokens
        made = following(roles, feed, roles.state(outputs, feed), chosen)
        made |= {name: array for name, array in given.items() if name not in {pair.input for pair in roles.carry}}
        if not roles.tokens and not self._given and self._between is None:
            made |= self._drawn(step)
        if self._between is not None:
            made |= self._between.arrays(outputs, feed, np.asarray(step))
        return self._checked(made)

    def own(self, who: str, step: int, feed: Arrays, outputs: Arrays, right: Arrays) -> dict[str, np.ndarray]:
        """Return the feed that follows from a step of an engine on its own states: the reference's in all but these.

        Args:
            who: Name of the engine or evaluation: each has a process of the script, which may keep a state of its own.
            step: The number of the step.
            feed: The engine's feed.
            outputs: Its outputs.
            right: The reference's next feed.
        """
        if self._between is None:
            return self.own_states(right, outputs, feed)
        made = {**self.own_states(right, outputs, feed), **self._script_of(who).arrays(outputs, feed, np.asarray(step))}
        return self._checked(made | {name: right[name] for name in self.roles.told})

    def own_states(self, right: Arrays, outputs: Arrays, feed: Arrays) -> dict[str, np.ndarray]:
        """Return a feed with the states that follow from a step: its outputs, and its former feed."""
        return {**right, **self.roles.state(outputs, feed)}

    def length(self, feed: Arrays) -> int:
        """Return how many positions there are so far; 0 for models without tokens."""
        return self.roles.new(feed) + self.roles.held(feed) if self.roles.tokens else 0

    def _script_of(self, who: str) -> ScriptFunction:
        if who not in self._scripts:
            self._scripts[who] = ScriptFunction(self._script, "next_feed", self._limits)
        return self._scripts[who]

    def _drawn(self, step: int) -> dict[str, np.ndarray]:
        """Return new numbers for the inputs that nothing is carried to, the same for every engine."""
        while len(self._draws) <= step:
            self._draws.append(next(self._made_up))
        carried_to = {pair.input for pair in self.roles.carry}
        return {name: array for name, array in self._draws[step].items() if name not in carried_to}

    def _make_up(self, feeding: FeedRequest) -> Iterator[Arrays]:
        """Yield sensible values of all inputs, step by step, in the shapes of the first step."""
        shapes: dict[str, tuple[int | str | None, ...]] = dict(feeding.shapes)
        for name, axes in self.roles.grown.items():
            spec = next(spec for spec in self._model.inputs if spec.name == name)
            if name not in shapes and spec.shape is not None:
                shapes[name] = tuple(0 if axis in axes else size for axis, size in enumerate(spec.shape))
        if self._given:
            shapes |= {name: array.shape for name, array in self._given[0].tensors.items()}
        for feed in random_feeds(
            self._model,
            seed=feeding.seed or 0,
            iterations=self.steps + 1,
            value_ranges=feeding.value_ranges,
            shapes=shapes,
        ):
            yield feed.tensors

    def _checked(self, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        known = [spec.name for spec in self._model.inputs]
        unknown = [name for name in tensors if name not in known]
        if unknown:
            raise UsageError(
                f"--between gives '{unknown[0]}', which is not an input of the model",
                slug="between-unknown-input",
                cure=f"return a dict of inputs: {', '.join(known[:12])}",
            )
        return dict(check_feed(Feed("step", tensors, Origin.REAL), self._model.inputs).tensors)


def _samples(request: FeedRequest, model: Model, roles: StepRoles) -> Sequence[Feed]:
    """Return the user's inputs; samples may lack states, and masks and positions with a rule."""
    if not (request.paths or request.script):
        return ()
    states = frozenset(pair.input for pair in roles.carry)
    names = sorted(set(roles.told) - {roles.tokens}) if roles.tokens else []
    subsets = (each for count in range(len(names) + 1) for each in itertools.combinations(names, count))
    wanted = dict.fromkeys((frozenset[str](), *(states.union(each) for each in subsets)))
    for without in wanted:  # given values count, so that the rules decide as little as possible
        try:
            return tuple(feeds(dataclasses.replace(request, without=without), model))
        except DataError as error:
            if without == states.union(names) or error.slug not in ("feed-input-missing", "feed-input-unknown"):
                raise
    return ()


def _left(model: Model, roles: StepRoles) -> tuple[Carry, ...]:
    """Return possible states without a telling name."""
    known = [name for pair in roles.carry for name in (pair.output, pair.input)]
    return unpaired(model.outputs, model.inputs, (*known, *roles.told, roles.logits))


def _sizes(feed: Arrays) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((name, np.shape(array)) for name, array in feed.items())


def _read(own: StepRoles, other: StepRoles) -> str:
    """Return a note on masks that are read otherwise."""
    ways = dict.fromkeys(other.masks, "grows with the sequence")
    ways |= dict.fromkeys(other.windowed, "is as long as the caches")
    ways |= dict.fromkeys(other.seen, "stays unchanged")
    moved = [n for n in ways if (n in own.seen, n in own.windowed) != (n in other.seen, n in other.windowed)]
    return "the reference runs no other reading: " + ", ".join(f"'{name}' {ways[name]}" for name in moved)


def _unnamed(left: tuple[Carry, ...]) -> UsageError:
    pair = left[0]
    return UsageError(
        f"no output is named like an input, but '{pair.output}' has type and shape of '{pair.input}': "
        "whether it is carried is unknown",
        slug="steps-nothing-carried",
        cure=f"name the carried values: --carry '{pair.output}={pair.input}', with one * on both sides for several; "
        "--carry none if nothing is",
    )


def _nothing_carried(model: Model) -> UsageError:
    outputs = ", ".join(spec.name for spec in model.outputs[:8])
    inputs = ", ".join(spec.name for spec in model.inputs[:8])
    return UsageError(
        f"nothing leads from one step to the next: no output ({outputs}) is named like an input ({inputs}), and there "
        "are no logits with token ids",
        slug="steps-nothing-carried",
        cure="name pairs with --carry 'OUTPUT=INPUT', or a script that makes the next feed with --between FILE.py",
    )
