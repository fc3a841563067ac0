"""The proof that an edited model computes the same: run before and after, name the pass that broke it.

Both are run on ONNX Runtime without optimizations, on the user's feeds or on made-up data. An output may move by the
difference between two healthy fp32 engines (its noise floor), no more. Where nothing can be proven (an operator that
the engine lacks, results that differ from run to run) the proof gives the reason instead.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NoReturn

import numpy as np

from tensortriage.compare.judgement.judgement import Basis, Judgement
from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.metrics.tensor_metrics import measure_many
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.errors import EngineError, EngineMissing, ModelError, TriageError, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed, origin_of
from tensortriage.model.io.lazy_weights import Hollow, absent_weights
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import select_outputs
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.feeds.trial import feeds_that_run
from tensortriage.runs.lab import Lab
from tensortriage.values.dtype import DType
from tensortriage.values.text import error_size
from tensortriage.workflows.common.judged import HealthyJudge
from tensortriage.workflows.edits.requests import ProofRequest, Verify

MOST_FEEDS = 8
LARGE_BYTES = 2 << 30
"""Weights beyond which a model is run only on request: running takes as much memory."""

Arrays = Mapping[str, np.ndarray]


@frozen_dataclass
class EditStage:
    """A model as one pass left it.

    Attributes:
        name: Name of the pass; the first stage is the loaded model.
        model: The model.
    """

    name: str
    model: Model


@frozen_dataclass
class OutputProof:
    """The largest move of one output over all feeds.

    Attributes:
        name: The output.
        relative_rms_error: Its error relative to the RMS of the former output; share of unequal elements for integers,
            booleans and strings.
        limit: The allowed move.
        ratio: The error relative to the limit.
    """

    name: str
    relative_rms_error: float
    limit: str
    ratio: float


@frozen_dataclass
class Proof:
    """The proof of an edit.

    Attributes:
        verified: Whether the edited model was run and compared.
        reason: Why not, when it was not.
        engine: The engine that ran the edited model.
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


class Moves:
    """The largest moves of outputs over all feeds."""

    def __init__(self) -> None:
        self._worst: dict[str, OutputProof] = {}

    def add(self, name: str, error: float, judgement: Judgement) -> None:
        """Take an output on one feed."""
        if name not in self._worst or error > self._worst[name].relative_rms_error:
            self._worst[name] = OutputProof(name, error, judgement.limit, judgement.ratio)

    def proof(self, engine: EngineSpec, feeds: Sequence[Feed]) -> Proof:
        """Return the proof that they amount to."""
        names = tuple(feed.name for feed in feeds)
        return Proof(True, "", str(engine), names, origin_of(feeds), tuple(self._worst.values()))


class Unprovable(Exception):
    """Nothing can be proven; the message gives the reason."""

    def accept(self, what: str, *, insists: bool) -> Proof:
        """Return the proof with that reason.

        Raises:
            UsageError: When a proof was required (``verify-impossible``).
        """
        if insists:
            raise UsageError(
                f"the {what} cannot be verified: {self}",
                slug="verify-impossible",
                cure="give data with --load-inputs, or write the model without verification: --no-verify",
            ) from self
        return Proof(False, str(self))


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
        return Proof(False, "not requested")
    try:
        check_weights(stages[0].model, large=request.verify is not Verify.AUTO)
        with Lab(in_place=True) as lab:
            return _Proving(stages, request, lab).go()
    except Unprovable as error:
        return error.accept("edit", insists=request.verify is Verify.ALWAYS)


def weight_bytes(model: Model) -> int:
    """Return the size of all initializers of the main graph in bytes; those that were stripped have none."""
    tensors = [value.const_value for value in model.ir.graph.initializers.values()]
    return sum(int(tensor.nbytes) for tensor in tensors if tensor is not None and not isinstance(tensor, Hollow))


def check_weights(model: Model, *, large: bool) -> None:
    """Refuse to run a model whose weights are missing, or are many.

    Args:
        model: The model.
        large: Whether many are run as well.

    Raises:
        Unprovable: Then.
    """
    if absent_weights(model.ir):
        raise Unprovable("external data are ignored")
    nbytes = weight_bytes(model)
    if nbytes > LARGE_BYTES and not large:
        raise Unprovable(f"{nbytes / 1e9:.1f} GB of weights take long to run; --verify does it anyway")


@contextlib.contextmanager
def made_up_or_fitting(feeding: FeedRequest) -> Iterator[None]:
    """Raise an error for faults of the user's own data; data that cannot be made up prove nothing.

    Raises:
        Unprovable: For the latter.
    """
    try:
        yield
    except TriageError as error:
        if feeding.paths or feeding.script:
            raise
        raise Unprovable(f"no data can be made up: {error.message}") from error


class _Proving:
    """One proof in progress."""

    def __init__(self, stages: Sequence[EditStage], request: ProofRequest, lab: Lab) -> None:
        self._stages = stages
        self._request = request
        self._lab = lab
        last = stages[-1].model
        self._outputs = tuple(o.name for o in last.outputs) if request.outputs is None else tuple(request.outputs)
        self._before = _with_outputs(stages[0].model, self._outputs)
        self._feeds = self._take_feeds(last if _input_types(last) == _input_types(self._before) else self._before)
        floors = HealthyJudge(self._before, reference=PLAIN, target=PLAIN, lab=lab)
        self._judge = request.judge(self._before) if request.judge else floors

    def go(self) -> Proof:
        """Run, compare, and return the proof."""
        golden = self._golden()
        found, engine = self._found(golden)
        moves = Moves()
        for feed, before, after in zip(self._feeds, golden, found, strict=True):
            for name, (error, judgement) in self._compare(feed, before, after).items():
                if not judgement.within:
                    self._refuse(feed, before, name, error, judgement)
                moves.add(name, error, judgement)
        return moves.proof(engine, self._feeds)

    def _take_feeds(self, model: Model) -> list[Feed]:
        with made_up_or_fitting(self._request.feeding):
            request = dataclasses.replace(self._request.feeding, most=MOST_FEEDS)
            return list(feeds_that_run(request, model, self._lab, option="--load-inputs", nan_will_do=True))

    def _golden(self) -> list[Arrays]:
        if _sizes_differ(self._before, self._stages[-1].model):
            raise Unprovable("its inputs now have other sizes, which the original model does not accept")
        try:
            golden = self._run(PLAIN, self._before)
        except (EngineError, EngineMissing) as error:
            raise Unprovable(f"the model does not run as it is: {error.message}") from error
        if self._outputs and all(_all_lost(arrays) for arrays in golden):
            raise Unprovable("every output is NaN or Inf on these data")
        return golden

    def _found(self, golden: Sequence[Arrays]) -> tuple[list[Arrays], EngineSpec]:
        """Return the edited model's outputs, and the engine that ran it."""
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
        with self._lab.session(engine, model, sequence=True) as run:
            return [run(_fitted(feed, model)) for feed in self._feeds]

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
        with self._lab.session(PLAIN, self._before, sequence=True) as run:
            run(_fitted(feed, self._before))  # a new session draws the numbers that the first one drew
            again = run(_fitted(feed, self._before))
        if not all(judged.within for _, judged in self._compare(feed, before, again).values()):
            raise Unprovable("the results of the model differ from run to run")
        culprit = self._first(lambda model: self._moves(feed, before, model))
        raise ModelError(
            f"the pass '{culprit}' moves output '{name}' by {error_size(error)} (relative RMS on {feed.name}); "
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
    """Return whether a size of an input that was a number is another number now."""
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
    """Return whether all outputs, at least one of them not empty, hold nothing but NaN and Inf."""
    floats = [array for array in arrays.values() if array.dtype.kind not in "biuUSO" and array.size]
    if len(floats) < len([array for array in arrays.values() if array.size]) or not floats:
        return False
    return not any(
        np.isfinite(array.astype(np.complex64 if array.dtype.kind == "c" else np.float32)).any() for array in floats
    )
