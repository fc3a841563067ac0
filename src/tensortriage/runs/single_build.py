"""One more build: a model compiled anew, run, and described, so that builds can be compared."""

import dataclasses
import time
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.engines.base import Choice, Limits, Plan, TellsTactics
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.outcome import OK, Outcome
from tensortriage.runs.runner import Runner, Tally
from tensortriage.runs.workspace import Workspace


@dataclasses.dataclass(frozen=True, slots=True)
class Built:
    """What came of a build.

    Attributes:
        outcome: How it ended; the rest is empty unless it is ok.
        outputs: By feed and output.
        choices: What the engine says it chose.
        plan: What it really runs; None when it cannot tell.
        seconds: Wall time of build and runs.
    """

    outcome: Outcome
    outputs: Mapping[str, Mapping[str, np.ndarray]] = dataclasses.field(default_factory=dict)
    choices: tuple[Choice, ...] = ()
    plan: Plan | None = None
    seconds: float = 0.0


def build_once(
    spec: EngineSpec,
    model: Model,
    feeds: Sequence[Feed],
    *,
    workspace: Workspace,
    limits: Limits | None = None,
    tally: Tally | None = None,
) -> Built:
    """Build a model in a session of its own, run it on every feed, and let it go.

    Args:
        spec: Engine and options.
        model: What to build.
        feeds: What to run; none to build only.
        workspace: For the model's file.
        limits: For isolated engines.
        tally: Where to count.
    """
    started = time.perf_counter()
    try:
        with Runner(spec, model, workspace=workspace, limits=limits, tally=tally, fresh=True) as runner:
            session = runner.build()
            choices = tuple(session.tactics()) if isinstance(session, TellsTactics) else ()
            outputs = {feed.name: dict(runner.run(feed)) for feed in feeds}
            plan = runner.plan()
    except EngineError as error:
        return Built(Outcome.of(error), seconds=time.perf_counter() - started)
    return Built(OK, outputs, choices, plan, time.perf_counter() - started)
