"""A task metric: how good outputs are, by their labels; a function of the user's, or one that a package registers.

It takes outputs and feed, and, where it has parameters for them, the labels that came with the feed and the reference's
outputs; see `tensortriage_worker.function_adapter.takes`. It returns a number, larger for better outputs, or one for
each row of the feed, which makes an interval out of a single batch.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from tensortriage.engines.base import Limits
from tensortriage.errors import DataError, TriageError, UsageError, did_you_mean
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import LABEL_NAMES, Feed, feed_digest
from tensortriage.runs.check_cache import digest
from tensortriage.runs.scripts import METRIC, Arrays, ScriptFunction
from tensortriage.values.registered import registered
from tensortriage_worker.function_adapter import numbers, takes

GROUP = "tensortriage.metrics"
"""Entry-point group of functions of outputs, feed, labels and the reference's outputs that are metrics by name."""

Labels = np.ndarray | Mapping[str, np.ndarray] | None


@frozen_dataclass
class TaskMetric:
    """A metric, and how it was named.

    Attributes:
        words: The name, for people; a script's, or that of a function.
        identity: Its identity in caches: a script's content is part of it.
        takes: Arguments of the function after outputs and feed, see `function_adapter.takes`.
        function: The metric; it may return one number, or one per row.
    """

    words: str
    identity: str
    takes: tuple[str, ...]
    function: Callable[..., Any]

    @classmethod
    def of(cls, given: object, limits: Limits | None = None) -> Self:
        """Return the metric that is meant.

        Args:
            given: ``FILE.py[:FUNCTION]``, the name of a registered one, with ``:OUTPUT`` where it is to look at that
                output alone, or a function.
            limits: Bounds on a script's calls.

        Raises:
            TypeError: For anything else.
            UsageError: When there is none of that name (``metric-unknown``).
        """
        if isinstance(given, cls):
            return given
        if callable(given):
            name = getattr(given, "__name__", type(given).__name__)
            code = getattr(given, "__code__", None)
            own = [code.co_code.hex(), repr(code.co_consts)] if code is not None else []
            return cls(name, digest(name, own), takes(given), given)
        if not isinstance(given, str) or not given:
            raise TypeError("give a function of outputs and feed, FILE.py:FUNCTION, or the name of a metric")
        name, _, output = given.partition(":")
        if (point := registered(GROUP).get(name)) is not None:
            function = point.load()
            words = ("labels=", "reference")
            return cls(given, given, words, partial(_of_output, function, output) if output else function)
        if not name.endswith(".py"):
            known = registered(GROUP)
            others = f"give FILE.py:FUNCTION, or one of {', '.join(known)}"
            raise UsageError(
                f"there is no metric '{name}'", slug="metric-unknown", cure=did_you_mean(name, known, otherwise=others)
            )
        script = ScriptFunction(given, METRIC, limits)
        return cls(given, digest(given, Path(script.path).read_text()), script.takes, script.numbers)

    def scores(self, outputs: Arrays, feed: Feed, reference: Arrays) -> tuple[float, ...]:
        """Return the score of a sample's outputs: one number, or one for each row.

        Args:
            outputs: The judged outputs.
            feed: The sample's inputs, with its labels.
            reference: The reference's outputs.

        Raises:
            DataError: When it takes labels and there are none (``metric-labels-missing``), or it fails.
        """
        more = [
            dict(reference) if word.startswith("reference") else self._labels(feed, needed=not word.endswith("="))
            for word in self.takes
        ]
        try:
            return tuple(numbers(self.function(dict(outputs), dict(feed.tensors), *more)))
        except TriageError:
            raise
        except Exception as error:  # whatever a function of somebody else's raises
            raise DataError(
                f"the metric {self.words} fails on {feed.name}: {type(error).__name__}: {error}",
                slug="metric-failed",
                cure="it is called with outputs and feed, and with labels and the reference's outputs if it takes them",
            ) from error

    def mean(self, samples: Iterable[tuple[Arrays, Feed, Arrays]]) -> float:
        """Return the mean score of samples, each given as for `scores`, over all their rows."""
        found = [score for each in samples for score in self.scores(*each)]
        return sum(found) / len(found)

    def identity_on(self, feeds: Iterable[Feed]) -> str:
        """Return a digest of the metric and of the labels that it is given with feeds."""
        reads_labels = any(word.startswith("labels") for word in self.takes)
        labels = [feed_digest(labels_by_name(feed)) for feed in feeds] if reads_labels else []
        return digest(self.identity, labels)

    def check(self, feed: Feed) -> None:
        """Refuse a feed without labels where they are needed, before anything runs.

        Raises:
            DataError: Then (``metric-labels-missing``).
        """
        if "labels" in self.takes:
            self._labels(feed, needed=True)

    def _labels(self, feed: Feed, *, needed: bool) -> Labels:
        """Return the labels of a feed: the array, several by name, or None where there is none."""
        found = labels_by_name(feed)
        if len(found) > 1:
            return found
        if not found and needed:
            raise DataError(
                f"the metric {self.words} takes labels, and {feed.name} has none",
                slug="metric-labels-missing",
                cure="save them with the inputs, as an array of another name (np.savez(FILE, image=..., label=...)), "
                "or let the loader yield (inputs, labels)",
            )
        return next(iter(found.values()), None)


def labels_by_name(feed: Feed) -> dict[str, np.ndarray]:
    """Return the labels among a feed's extra arrays: those with a usual name, else all."""
    usual = [name for name in feed.labels if name.lower() in LABEL_NAMES]
    return {name: np.asarray(feed.labels[name]) for name in usual or feed.labels}


def _of_output(
    function: Callable[..., Any], output: str, outputs: Arrays, feed: Arrays, labels: Labels, reference: Arrays
) -> Any:
    """Call a registered metric with one of the outputs alone."""
    if output not in outputs:
        raise DataError(
            f"there is no output '{output}'", slug="metric-unknown", cure=f"name one of: {', '.join(outputs)}"
        )
    return function({output: outputs[output]}, feed, labels, {output: reference[output]})
