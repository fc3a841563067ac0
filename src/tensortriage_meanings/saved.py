"""Outputs that a program saved: does it interpret an operator otherwise than the model defines it?"""

import math
from collections.abc import Callable, Mapping

from tensortriage.diagnose.sdk import Feed, Model
from tensortriage_meanings.rung import searched
from tensortriage_meanings.search import Tensors, Unexplained
from tensortriage_meanings.subject import Disputed, Disputer, DisputingSide


def understood_otherwise(
    model: Model,
    feed: Feed,
    theirs: Tensors,
    *,
    run: Callable[[Model], Tensors],
    limits: Callable[[Model, Tensors], Mapping[str, float] | None],
    seconds: float = math.inf,
) -> str:
    """Return the operator that the program interprets otherwise, with advice; empty where none is known.

    Args:
        model: The network.
        feed: The program's inputs.
        theirs: The saved outputs.
        run: Computes these outputs of a changed model; raises a TriageError where it cannot be run.
        limits: The judge's limits of a changed model's outputs, by name, if the saved ones are within; else None.
        seconds: How long at most.
    """
    who = Disputer("the program that saved them", DisputingSide.TARGET)
    about = Disputed(Unexplained(model, run, theirs, limits, feed.tensors), feed, who, True, next(iter(theirs)))
    return searched(about, seconds=seconds).sentence
