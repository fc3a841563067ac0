"""The proof that an edited model still computes what it computed: run before and after, name the pass that broke it.

Both are run on ONNX Runtime without optimizations, on the user's feeds or on made-up data. An output may move by what
two healthy fp32 engines may differ by (its noise floor), no more. Where nothing can be proven (an operator that the
engine lacks, results that differ from run to run) the proof says so instead.
"""

import dataclasses
import enum
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, Protocol

import numpy as np

from tensortriage.compare.judgement.judgement import Basis, Judgement
from tensortriage.compare.judgement.relative_error import error_of, say
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure_many
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.errors import EngineError, EngineMissing, ModelError, TriageError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.io.missing_weights import absent_weights
from tensortriage.model.io.serialize import Hollow
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import select_outputs
from tensortriage.runs.feeds.feed_request import FeedRequest, feeds
from tensortriage.runs.runner import Runner
from tensortriage.runs.workspace import Workspace
from tensortriage.values.dtype import DType
from tensortriage.workflows.common.noise_floor_judge import FloorJudge

MOST_FEEDS = 8
IGNORED = "external data are ignored"
LARGE_BYTES = 2 << 30
"""Weights beyond which a model is not run unless asked to: running takes as much memory."""

Arrays = Mapping[str, np.ndarray]


class Verify(enum.Enum):
    """Whether an edit is proven: when possible, always (else it is an error), or never."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclasses.dataclass(frozen=True, slots=True)
class EditStage:
    """A model as one pass left it.

    Attributes:
        name: What the pass is called; the first stage is what was loaded.
        model: The model.
    """

    name: str
    model: Model


@dataclasses.dataclass(frozen=True, slots=True)
class OutputProof:
    """How far one output moved, at most over all feeds.

    Attributes:
        name: The output.
        relative_rms_error: Its error relative to the RMS of what was computed before; share of unequal elements for
            integers, booleans and strings.
        limit: What was allowed.
        ratio: The error relative to what was allowed.
    """

    name: str
    relative_rms_error: float
    limit: str
    ratio: float


@dataclasses.dataclass(frozen=True, slots=True)
class Proof:
    """What was proven.

    Attributes:
        verified: Whether the edited model was run and compared.
        reason: Why not, when it was not.
        engine: What ran the edited model.
        feeds: Names of the feeds.
        inputs: ``real`` or ``random``; empty when nothing was run.
        outputs: One entry per compared output.
    """

    verified: bool
    reason: str = ""
    engine: str = ""
    feeds: tuple[str, ...] = ()
    inputs: str = ""
    outputs: tuple[OutputProof, ...] = ()


class EditJudge(Protocol):
    """Decides how far outputs may move."""

    def judge(self, feed: Feed, metrics: Mapping[str, Metrics], references: Arrays) -> Mapping[str, Judgement]:
        """Judge outputs of one feed; see `tensortriage.workflows.common.noise_floor_judge.FloorJudge`."""
        ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProofRequest:
    """How to prove an edit.

    Attributes:
        verify: Whether to.
        feeding: Where the samples come from; at most 8 are used.
        outputs: The outputs that must not move; None for all. With none, only that the edited model runs is proven.
        engines: What may run the edited model, the first that can.
        judge: Makes the judge of an edit from the model before it and a place for its files; by default fp32 floors.
    """

    verify: Verify = Verify.AUTO
    feeding: FeedRequest = dataclasses.field(default_factory=FeedRequest)
    outputs: Sequence[str] | None = None
    engines: Sequence[EngineSpec] = (PLAIN,)
    judge: Callable[[Model, Workspace], EditJudge] | None = None


class _Unprovable(Exception):
    """Nothing can be proven; the message says why."""


def prove(stages: Sequence[EditStage], request: ProofRequest) -> Proof:
    """Compare the last stage with the first.

    Args:
        stages: At least two; all but the first and last are only run to find the pass that broke the model.
        request: How.

    Raises:
        ModelError: When an output moved or the edited model does not run (``verify-failed``); it names the pass.
        UsageError: When nothing can be proven but the request insists (``verify-impossible``).
        DataError: When the user's own feeds do not fit the model.
    """
    if request.verify is Verify.NEVER:
        return Proof(False, "not asked for")
    try:
        if absent_weights(stages[0].model.ir):
            raise _Unprovable(IGNORED)
        if request.verify is Verify.AUTO:
            _check_size(stages[0].model)
        with Workspace() as workspace:
            return _Proving(stages, request, workspace).go()
    except _Unprovable as error:
        if request.verify is Verify.ALWAYS:
            raise UsageError(
                f"the edit cannot be verified: {error}",
                slug="verify-impossible",
                cure="give data with --load-inputs, or write the model without verification: --no-verify",
            ) from error
        return Proof(False, str(error))


def weight_bytes(model: Model) -> int:
    """Return the size of all initializers of the main graph in bytes; those that were stripped have none."""
    tensors = [value.const_value for value in model.ir.graph.initializers.values()]
    return sum(int(tensor.nbytes) for tensor in tensors if tensor is not None and not isinstance(tensor, Hollow))


def _check_size(model: Model) -> None:
    nbytes = weight_bytes(model)
    if nbytes > LARGE_BYTES:
        raise _Unprovable(f"{nbytes / 1e9:.1f} GB of weights are much to run; --verify does it all the same")


class _Proving:
    """One proof in progress."""

    def __init__(self, stages: Sequence[EditStage], request: ProofRequest, workspace: Workspace) -> None:
        self._stages = stages
        self._request = request
        self._workspace = workspace
        last = stages[-1].model
        self._outputs = tuple(o.name for o in last.outputs) if request.outputs is None else tuple(request.outputs)
        self._before = _with_outputs(stages[0].model, self._outputs)
        self._feeds = self._take_feeds(last if _input_types(last) == _input_types(self._before) else self._before)
        self._judge = request.judge(self._before, workspace) if request.judge else self._floors(self._before)

    def go(self) -> Proof:
        """Run, compare, and return the proof."""
        golden = self._golden()
        found, engine = self._found(golden)
        moved: dict[str, OutputProof] = {}
        for feed, before, after in zip(self._feeds, golden, found, strict=True):
            for name, (error, judgement) in self._compare(feed, before, after).items():
                if not judgement.within:
                    self._refuse(feed, before, name, error, judgement)
                if name not in moved or error > moved[name].relative_rms_error:
                    moved[name] = OutputProof(name, error, judgement.limit, judgement.ratio)
        origins = {feed.origin.value for feed in self._feeds}
        return Proof(
            True, "", str(engine), tuple(feed.name for feed in self._feeds),
            "real" if "real" in origins else "random", tuple(moved.values()),
        )  # fmt: skip

    def _floors(self, before: Model) -> EditJudge:
        return FloorJudge(before, reference=PLAIN, target=PLAIN, folder=self._workspace.folder)

    def _take_feeds(self, model: Model) -> list[Feed]:
        given = self._request.feeding
        made_up = not (given.paths or given.script)
        try:
            return list(itertools.islice(feeds(given, model), MOST_FEEDS))
        except TriageError as error:
            if not made_up:
                raise
            raise _Unprovable(f"no data can be made up: {error.message}") from error

    def _golden(self) -> list[Arrays]:
        if _sizes_differ(self._before, self._stages[-1].model):
            raise _Unprovable("its inputs have other sizes now, which the model before does not take")
        try:
            golden = self._run(PLAIN, self._before)
        except (EngineError, EngineMissing) as error:
            raise _Unprovable(f"the model does not run as it is: {error.message}") from error
        if self._outputs and all(_all_lost(arrays) for arrays in golden):
            raise _Unprovable("every output is NaN or Inf on these data")
        return golden

    def _found(self, golden: Sequence[Arrays]) -> tuple[list[Arrays], EngineSpec]:
        """Return what the edited model gives, and the engine that ran it."""
        refusal: EngineError | None = None
        for engine in self._request.engines:
            try:
                return self._run(engine, self._stages[-1].model), engine
            except EngineError as error:
                refusal = refusal or error
        assert refusal is not None
        culprit = self._first(lambda model: self._fails(model))
        raise ModelError(
            f"after the pass '{culprit}' the model no longer runs: {refusal.message}",
            slug="verify-failed",
            cure=f"leave out '{culprit}', or write the model without verification: --no-verify",
        ) from refusal

    def _run(self, engine: EngineSpec, model: Model) -> list[Arrays]:
        """Run a model on every feed."""
        with Runner(engine, model, workspace=self._workspace, in_place=True) as runner:
            return [dict(runner.run(_fitted(feed, model))) for feed in self._feeds]

    def _fails(self, model: Model) -> bool:
        try:
            self._run(self._request.engines[0], model)
        except EngineError:
            return True
        return False

    def _compare(self, feed: Feed, before: Arrays, after: Arrays) -> Mapping[str, tuple[float, Judgement]]:
        """Return error and judgement per output."""
        judged: dict[str, tuple[float, Judgement]] = {}
        pairs = []
        for name in self._outputs:
            if name not in after:
                judged[name] = (float("inf"), Judgement(False, "the output must exist", float("inf"), Basis.EQUALITY))
            elif before[name].shape != after[name].shape:
                shapes = f"the shape {list(before[name].shape)}, not {list(after[name].shape)}"
                judged[name] = (float("inf"), Judgement(False, shapes, float("inf"), Basis.EQUALITY))
            else:
                pairs.append((name, before[name], after[name]))
        metrics = dict(measure_many(pairs))
        for name, judgement in self._judge.judge(feed, metrics, before).items():
            judged[name] = (error_of(metrics[name]), judgement)
        return judged

    def _refuse(self, feed: Feed, before: Arrays, name: str, error: float, judgement: Judgement) -> NoReturn:
        """Raise for an output that moved, unless it moves from run to run as well."""
        self._feeds = [feed]
        with Runner(PLAIN, self._before, workspace=self._workspace, in_place=True) as runner:
            runner.run(_fitted(feed, self._before))  # a new session draws the numbers that the first one drew
            again = dict(runner.run(_fitted(feed, self._before)))
        if not all(judged.within for _, judged in self._compare(feed, before, again).values()):
            raise _Unprovable("the results of the model differ from run to run")
        culprit = self._first(lambda model: self._moves(feed, before, model))
        raise ModelError(
            f"the pass '{culprit}' moves output '{name}' by {say(error)} (relative RMS on {feed.name}); "
            f"allowed is {judgement.limit}",
            slug="verify-failed",
            cure=f"leave out '{culprit}', or write the model without verification: --no-verify",
        )

    def _moves(self, feed: Feed, before: Arrays, model: Model) -> bool:
        try:
            (after,) = self._run(self._request.engines[0], model)
        except EngineError:
            return True
        shared = {name: after[name] for name in self._outputs if name in after}
        return any(not judged.within for name, (_, judged) in self._compare(feed, before, shared).items())

    def _first(self, is_broken: Callable[[Model], bool]) -> str:
        """Return the name of the first pass after which a model is broken."""
        for stage in self._stages[1:-1]:
            if is_broken(_with_outputs(stage.model, self._outputs)):
                return stage.name
        return self._stages[-1].name


def _input_types(model: Model) -> Mapping[str, DType | None]:
    return {spec.name: spec.dtype for spec in model.inputs}


def _sizes_differ(before: Model, after: Model) -> bool:
    """Whether a size of an input that was a number is another number now."""
    shapes = {spec.name: spec.shape for spec in before.inputs}
    for spec in after.inputs:
        old, new = shapes.get(spec.name), spec.shape
        if old is None or new is None:
            continue
        pairs = zip(old, new, strict=False)
        if len(old) != len(new) or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
            return True
    return False


def _fitted(feed: Feed, model: Model) -> Arrays:
    """Return a feed for a model that may have fewer inputs, or floating-point inputs of another width."""
    fitted: dict[str, np.ndarray] = {}
    for spec in model.inputs:
        array = feed.tensors[spec.name]
        is_float = spec.dtype is not None and spec.dtype.is_float
        with np.errstate(over="ignore"):
            fitted[spec.name] = array.astype(spec.dtype.numpy) if is_float and spec.dtype is not None else array
    return fitted


def _with_outputs(model: Model, outputs: Sequence[str]) -> Model:
    """Return the model with these outputs; itself when it has them or when there are none."""
    return (
        model
        if not outputs or [spec.name for spec in model.outputs] == list(outputs)
        else select_outputs(model, outputs)
    )


def _all_lost(arrays: Arrays) -> bool:
    """Whether there is nothing but NaN and Inf in all outputs, of which at least one is not empty."""
    floats = [array for array in arrays.values() if array.dtype.kind not in "biuUSO" and array.size]
    if len(floats) < len([array for array in arrays.values() if array.size]) or not floats:
        return False
    return not any(
        np.isfinite(array.astype(np.complex64 if array.dtype.kind == "c" else np.float32)).any() for array in floats
    )
