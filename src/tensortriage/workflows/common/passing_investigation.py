"""An investigation in passing, for commands that seldom need one: all of it is imported with this module."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.question import Question
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.case import Case
from tensortriage.values.store import MemoryStore


@contextlib.contextmanager
def passing_investigation(
    folder: Path,
    model: Model,
    feed: Feed,
    *,
    reference: EngineSpec,
    target: EngineSpec,
    golden: Mapping[str, np.ndarray] | None = None,
) -> Iterator[Investigation]:
    """Give an investigation of a model on one feed.

    Args:
        folder: Where its case is kept as long as the command runs.
        model: The model.
        feed: The feed.
        reference: The engine taken as right.
        target: The engine under suspicion.
        golden: All of the reference's values that are asked for; None where the reference is to be asked.
    """
    question = Question(model=model, feeds=[feed], reference=reference, target=target)
    with Case(folder) as case:
        inv = Investigation(question, case, golden={} if golden is None else {feed.name: MemoryStore(golden)})
        try:
            yield inv
        finally:
            inv.close()
