"""The two runs of a claim on an engine, in one session after each other, as in deployment."""

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.api import EngineSpec, Feed, Model
from tensortriage.envelope.sdk import (
    ROUNDED_ONCE,
    BuiltSession,
    Lab,
    ObservedBuild,
    ObservedStreams,
    difference,
    resolve,
    within_limit,
)
from tensortriage.sdk import Experiment
from tensortriage_steps.consistency.relations import LAID_OUT, ClaimKind, EqualityClaim

Outputs = Mapping[str, np.ndarray]

THREADS = (1, 3)
"""Numbers of threads besides the one that is set: none to share with, and one that divides no power of two."""


STREAM_RUNS, FEW_STREAM_RUNS = 30, 5
"""Runs of each stream; few in passing. Threads take turns so often that the first ones overlap already."""


class ClaimRuns:
    """Runs one model on one engine as claims have it.

    Args:
        lab: The lab that asks engines.
        model: The model.
        target: The engine.
        apart: Whether to take slow measures: long streams, another process as one, and fewer CPUs where there is no
            other way to use fewer threads.
    """

    def __init__(self, lab: Lab, model: Model, target: EngineSpec, *, apart: bool = True) -> None:
        self._apart, self._runs = apart, STREAM_RUNS if apart else FEW_STREAM_RUNS
        self._lab, self._model, self._target = lab, model, target
        self._known: dict[str, Outputs] = {}
        self._rights: dict[str, Outputs] = {}
        self._streams: dict[frozenset[str], Sequence[tuple[Feed, Sequence[Outputs]]]] = {}
        self.history: list[Feed] = []

    @functools.cached_property
    def built(self) -> BuiltSession:
        """The session's description of itself."""
        experiment = Experiment(engine=self._target, model=self._model, feed=None, observed=ObservedBuild())
        return self._lab.answer(experiment).built

    def other_threads(self) -> dict[str, EngineSpec]:
        """Return the engine with other numbers of threads, if an option sets them."""
        target = self._target
        known = {*resolve(target).engine.options, *self.built.own_options}
        options = [("threads", str(number)) for number in THREADS if "threads" in known]
        if not options and "cpus" in known and self._apart:
            options = [("cpus", "1")]
        return {
            f"{key}={value}": target.with_options({**target.options, key: value})
            for key, value in options
            if target.options.get(key) != value
        }

    def of(self, feed: Feed) -> Outputs:
        """Return the outputs of a feed, which is run once."""
        if feed.name not in self._known:
            self._known[feed.name] = self.again(feed)
        return self._known[feed.name]

    def again(self, feed: Feed) -> Outputs:
        """Return the outputs of one more run."""
        self.history.append(feed)
        return self._lab.outputs(
            self._target, self._model, feed, repetition=None, what=f"running {self._target} on {feed.name}"
        )

    def right(self, claim: EqualityClaim) -> Outputs:
        """Return the outputs of the right run of a claim, which is made once; of several, those farthest from the left.

        Raises:
            EngineError: When the engine fails.
        """
        if claim.question not in self._rights:
            self._rights[claim.question] = self._right(claim)
        return self._rights[claim.question]

    def _right(self, claim: EqualityClaim) -> Outputs:
        left = claim.left
        if claim.kind is ClaimKind.AGAIN:
            return self.again(left)
        if claim.engine is not None:
            try:
                return self._lab.outputs(
                    claim.engine, self._model, left, repetition=None, what=f"running {claim.engine} on {left.name}"
                )
            finally:
                self._lab.drop(claim.engine, self._model)
        if claim.kind in LAID_OUT:
            layout = LAID_OUT[claim.kind]
            feeds = (*([claim.beside] if claim.beside else []), left, left)
            if claim.kind is not ClaimKind.KEPT:
                return self._laid_out(left, layout)
            runs = [self._laid_out(feed, layout) for feed in feeds]
            return self._farthest(left, runs[-2:])
        if claim.kind is ClaimKind.STREAMS and claim.beside is not None:
            return self._beside(left, claim.beside)
        return self.of(claim.right)

    def replayed(self, claim: EqualityClaim, history: Sequence[Feed]) -> tuple[Outputs, Outputs]:
        """Return the outputs of both runs of a claim, in a session that ran the same before; few are held at once."""
        if claim.kind.whole and claim.kind is not ClaimKind.AGAIN:
            return self.of(claim.left), self.right(claim)
        kept: dict[str, Outputs] = {}
        for feed in history if history else (claim.left, claim.right):
            found = self._lab.outputs(self._target, self._model, feed, repetition=None)
            if feed.name in (claim.left.name, claim.right.name):
                kept.setdefault(feed.name, found)
                last = found
        return kept[claim.left.name], last if claim.kind is ClaimKind.AGAIN else kept[claim.right.name]

    def alone(self, feed: Feed) -> Outputs:
        """Return the outputs of a feed in a session that has run nothing else."""
        with self._lab.session(self._target, self._model, sequence=True) as ask:
            return ask(feed)

    def _laid_out(self, feed: Feed, layout: str) -> Outputs:
        return self._lab.outputs(self._target, self._model, feed, layout=layout, repetition=None)

    def _farthest(self, feed: Feed, runs: Sequence[Outputs]) -> Outputs:
        first = self.of(feed)
        return max(runs, key=lambda run: max((difference(first[name], run[name]) for name in first), default=0.0))

    def _beside(self, feed: Feed, other: Feed) -> Outputs:
        """Return the first feed's results in two streams that run at once; both are known once either is requested.

        Raises:
            BuildsDiffer: When another stream's session, which is another build, differs by itself already.
        """
        names = frozenset((feed.name, other.name))
        if names not in self._streams:
            self._lab.progress(f"running {self._target} in two streams at once")
            with self._lab.session(self._target, self._model, sequence=True) as ask:
                alone = [(fed, ask(fed)) for fed in (feed, other)]
                equal = all(_alike(self.of(fed), outputs) for fed, outputs in alone)
                streams = ObservedStreams((feed, other), self._runs, self._apart)
                found = ask.of(observed=streams).streams if equal else ()
            self._streams[names] = found if found and _alike(self.of(other), found[1][1][0]) else ()
        if not self._streams[names]:
            raise BuildsDiffer
        return self._farthest(
            feed, [run for fed, runs in self._streams[names] if fed.name == feed.name for run in runs]
        )


class BuildsDiffer(Exception):
    """Streams, which are builds of their own, cannot show whether they meet."""


def _alike(left: Outputs, right: Outputs) -> bool:
    """Return whether two builds are as near as builds that order sums otherwise."""
    return all(within_limit(difference(left[name], right[name]), ROUNDED_ONCE) for name in left)
