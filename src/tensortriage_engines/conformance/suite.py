"""The conformance suite: the properties of an engine that TensorTriage relies on, as checks for anyone's engine.

Everything is tested through the public engine interface and compared with closed formulas, so an engine passes because
it is right, not because it agrees with another one. All checks run before the suite reports: one failure does not hide
the next.
"""

import dataclasses
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np

from tensortriage.engines.sdk import (
    HARDWARE,
    Availability,
    BuildFailed,
    DataError,
    DeclaredCapability,
    DType,
    Engine,
    EngineError,
    EngineHung,
    Plan,
    Precision,
    ReportsPrecision,
    RunFailed,
    RunsOnHardware,
    Session,
    TriageError,
    UsageError,
    ValueSpec,
)
from tensortriage_engines.conformance.models import Example, Tensors, examples

TOLERANCE = 0.05
"""Largest deviation from a whole-number answer; an engine that is right is much closer in every format."""


@dataclasses.dataclass(frozen=True, slots=True)
class ConformanceReport:
    """Result of a conforming engine.

    Attributes:
        engine: Name of the engine.
        version: Version of its library.
        passed: Names of the checks it passed.
        refused: Optional models that it refused, with its reason.
    """

    engine: str
    version: str
    passed: tuple[str, ...]
    refused: Mapping[str, str]


def check_engine_conformance(engine: Engine, options: Mapping[str, str] | None = None) -> ConformanceReport:
    """Run the suite over an engine.

    Args:
        engine: The engine, usable on this machine.
        options: Options for every compile, e.g. a precision that it requires.

    Returns:
        The checks that it passed, and the optional models that it refused.

    Raises:
        DoesNotConform: An AssertionError whose message lists every failed check with its observation.
        AssertionError: When the engine is not usable here.
    """
    availability = _availability(engine, options or {})
    passed: list[str] = []
    refused: dict[str, str] = {}
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="triage-conformance-") as folder:
        suite = _Suite(engine, dict(options or {}), Path(folder))
        for name, check in suite.checks():
            try:
                check()
            except _Refused as refusal:
                refused[name] = str(refusal)
            except EngineHung as error:  # every further check would wait as long
                failures.append(f"{name}: {error}; later checks were skipped")
                break
            except AssertionError as failure:
                failures.append(f"{name}: {failure}")
            except Exception as error:
                failures.append(f"{name}: unexpected {type(error).__name__}: {error}")
            else:
                passed.append(name)
    report = ConformanceReport(engine.name, availability.version, tuple(passed), refused)
    if failures:
        raise DoesNotConform(report, failures)
    return report


class DoesNotConform(AssertionError):
    """An engine failed checks.

    Args:
        report: Checks that the engine passed and refused as well.
        failures: The failed checks, with observations.
    """

    def __init__(self, report: ConformanceReport, failures: Sequence[str]) -> None:
        super().__init__(f"engine '{report.engine}' does not conform:\n  " + "\n  ".join(failures))
        self.report = report


class _Refused(Exception):
    """An engine refused an optional model, which it may."""


def _availability(engine: Engine, options: Mapping[str, str]) -> Availability:
    try:
        availability = engine.availability()
    except Exception as error:
        raise AssertionError(f"availability() raised {type(error).__name__}: {error}; it must never raise") from error
    _require(isinstance(availability, Availability), f"availability() returned {availability!r}")
    elsewhere = "worker" in options  # another Python is queried when it is started
    _require(availability.usable or elsewhere, f"engine '{engine.name}' is not usable here: {availability.reason}")
    return availability


class _Suite:
    def __init__(self, engine: Engine, options: Mapping[str, str], folder: Path) -> None:
        self.engine = engine
        self.options = options
        self.folder = folder
        self.examples = {example.name: example for example in examples()}
        self.paths = {name: example.save(folder) for name, example in self.examples.items()}

    def checks(self) -> list[tuple[str, Callable[[], None]]]:
        models = [(f"model {name}", lambda e=example: self.model(e)) for name, example in self.examples.items()]
        return [
            ("description", self.description),
            *models,
            ("runs repeat", self.repeat),
            ("feeds of any layout", self.layouts),
            ("sessions at once", self.sessions_at_once),
            ("bad feeds", self.bad_feeds),
            ("unknown option", self.unknown_option),
            ("unreadable models", self.unreadable),
            ("close", self.close),
            ("plan", self.plan),
        ]

    def compile(self, name: str) -> Session:
        given = dict(self.options)
        session = self.engine.compile(self.paths[name], given)
        _check_declared(session)
        _require(given == self.options, "compile changed the options it was given")
        return session

    def description(self) -> None:
        """The name, the option help and the precision words appear on the command line."""
        _require(isinstance(self.engine.name, str) and bool(self.engine.name), "name is empty")
        for word, text in self.engine.options.items():
            _require(bool(word) and bool(text) and "\n" not in text, f"option {word!r} needs one line of help")
        if isinstance(self.engine, ReportsPrecision):
            Precision.parse(self.engine.precision(self.options))
        if isinstance(self.engine, RunsOnHardware):
            word = self.engine.hardware(self.options)
            _require(word in HARDWARE, f"hardware() is {word!r}, not one of {', '.join(HARDWARE)}")
        _check_declared(self.engine)

    def model(self, example: Example) -> None:
        """Names, types, shapes and numbers of one example; optional ones may be refused."""
        try:
            session = self.compile(example.name)
        except BuildFailed as error:
            _require(not example.core, f"refused a model that every engine must support: {error}")
            _require(bool(error.message.strip()), "refused without a reason")
            raise _Refused(error.message) from error
        with closing(session):
            _check_specs(session, example)
            for feed in example.feeds:
                _check_answer(self.run(session, example, feed), example, feed, session)

    def run(self, session: Session, example: Example, feed: Tensors) -> Tensors:
        given = {name: array.copy() for name, array in feed.items()}
        try:
            outputs = session.run(given)
        except RunFailed as error:
            _require(not example.core, f"failed to run a model that every engine must support: {error}")
            raise _Refused(error.message) from error
        for name, array in feed.items():
            _require(bool(np.all(array == given[name])), f"run changed the input '{name}'")
        return outputs

    def repeat(self) -> None:
        """A second run gives the same bits, and no run touches the results of an earlier one."""
        example = self.examples["mlp"]
        with closing(self.compile("mlp")) as session:
            first = session.run(example.feeds[0])["y"]
            kept = first.copy()
            other = session.run(example.feeds[1])["y"].copy()
            _require(np.array_equal(first, kept), "a later run changed an output that an earlier run returned")
            again = session.run(example.feeds[0])["y"].copy()
        _require(np.array_equal(again, kept), "the same feed gave another result")
        _require(not np.array_equal(other, kept), "another feed gave the same result")

    def layouts(self) -> None:
        """Read-only, strided and Fortran-ordered arrays are as good as any."""
        example = self.examples["mlp"]
        x = example.feeds[0]["x"]
        strided = np.repeat(x, 2, axis=1)[:, ::2]
        frozen = x.copy()
        frozen.flags.writeable = False
        with closing(self.compile("mlp")) as session:
            for array in (strided, frozen, np.asfortranarray(x)):
                feed = {"x": array}
                _check_answer(session.run(feed), example, feed, session)

    def sessions_at_once(self) -> None:
        """Sessions do not disturb each other, and closing one leaves the others alone."""
        names = ("mlp", "conv", "mlp")
        with ExitStack() as stack:
            sessions = [stack.enter_context(closing(self.compile(name))) for name in names]
            for _ in range(2):
                for name, session in zip(names, sessions, strict=True):
                    example = self.examples[name]
                    _check_answer(session.run(example.feeds[0]), example, example.feeds[0], session)
            sessions[0].close()
            example = self.examples["mlp"]
            _check_answer(sessions[2].run(example.feeds[1]), example, example.feeds[1], sessions[2])

    def bad_feeds(self) -> None:
        """A feed that does not fit is a typed error, and the session works on."""
        example = self.examples["mlp"]
        x = example.feeds[0]["x"]
        bad: dict[str, Tensors] = {
            "a missing input": {},
            "an unknown input": {"x": x, "not an input": x},
            "another element type": {"x": x.astype(np.int64)},
            "another rank": {"x": x[0]},
            "another shape": {"x": np.concatenate([x, x], axis=1)},
        }
        with closing(self.compile("mlp")) as session:
            for what, feed in bad.items():
                _must_raise((EngineError, UsageError, DataError), f"a feed with {what}", session.run, feed)
            _check_answer(session.run(example.feeds[0]), example, example.feeds[0], session)

    def unknown_option(self) -> None:
        """An option word that the engine does not know is refused, not ignored."""
        given = {**self.options, "no_such_option": "1"}
        _must_raise((UsageError,), "an unknown option", self.engine.compile, self.paths["mlp"], given)

    def unreadable(self) -> None:
        """Files that are no models are refused."""
        whole = self.paths["mlp"].read_bytes()
        contents = {"no model": b"this is not ONNX", "empty": b"", "truncated": whole[: len(whole) // 2]}
        for what, content in contents.items():
            path = self.folder / f"{what.replace(' ', '-')}.onnx"
            path.write_bytes(content)
            _must_raise((BuildFailed,), f"a file that is {what}", self.engine.compile, path, dict(self.options))
        absent = self.folder / "absent.onnx"
        _must_raise((BuildFailed,), "a file that does not exist", self.engine.compile, absent, dict(self.options))

    def close(self) -> None:
        """Closing twice is harmless; a closed session refuses to run; outputs outlive it."""
        example = self.examples["mlp"]
        with closing(self.compile("mlp")) as session:
            outputs = session.run(example.feeds[0])
            session.close()
        _check_answer(outputs, example, example.feeds[0], session)
        _must_raise((EngineError,), "running a closed session", session.run, example.feeds[0])

    def plan(self) -> None:
        """A plan names nodes of the model that was given (or their output values), or is None."""
        for name in ("mlp", "conv"):
            with closing(self.compile(name)) as session:
                plan = session.plan()
            if plan is not None:
                _check_plan(plan, self.examples[name])


def _has(thing: object, name: str) -> bool:
    """Whether something has a method, or a property, which is not evaluated: that may build."""
    return isinstance(getattr(type(thing), name, None), property) or callable(getattr(thing, name, None))


def _check_declared(thing: object) -> None:
    for capability in DeclaredCapability.__subclasses__():
        offered = all(_has(thing, name) for name in capability.__abstractmethods__)
        _require(
            not offered or isinstance(thing, capability),
            f"{type(thing).__name__} has {', '.join(sorted(capability.__abstractmethods__))}, which are never called: "
            f"it does not inherit from {capability.__name__}",
        )


def _check_specs(session: Session, example: Example) -> None:
    graph = example.proto.graph
    for role, found, declared in (("inputs", session.inputs, graph.input), ("outputs", session.outputs, graph.output)):
        names = [value.name for value in declared]
        _require([spec.name for spec in found] == names, f"{role} are {[s.name for s in found]}, not {names}")
        for spec, value in zip(found, declared, strict=True):
            dtype = DType(value.type.tensor_type.elem_type)
            wider = role == "outputs" and dtype.is_float and spec.dtype is DType.DOUBLE
            _require(spec.dtype is dtype or wider, f"{role}: '{spec.name}' is {spec.dtype}, not {dtype}")
            rank = len(value.type.tensor_type.shape.dim)
            _require(spec.shape is None or len(spec.shape) == rank, f"{role}: '{spec.name}' has shape {spec.shape}")


def _check_answer(outputs: Tensors, example: Example, feed: Tensors, session: Session) -> None:
    expected = example.expected(feed)
    _require(set(outputs) == set(expected), f"run returned {sorted(outputs)}, not {sorted(expected)}")
    specs: dict[str, ValueSpec] = {spec.name: spec for spec in session.outputs}
    for name, right in expected.items():
        found = outputs[name]
        _require(isinstance(found, np.ndarray), f"output '{name}' is {type(found).__name__}, not a numpy array")
        dtype, declared = DType.from_numpy(found.dtype), specs[name].dtype
        if dtype is DType.FLOAT and declared in (DType.FLOAT16, DType.BFLOAT16):  # it computes in no such format
            raise _Refused(f"output '{name}' is {dtype.label}, the model declares {declared.label}")
        kinds = {found.dtype.kind, declared.numpy.kind if declared else ""}
        narrower = declared and kinds <= set("iu") and np.can_cast(found.dtype, declared.numpy)
        _require(
            dtype is declared or bool(narrower),
            f"output '{name}' is {dtype.label}, session.outputs declares another type",
        )
        _require(found.shape == right.shape, f"output '{name}' has shape {found.shape}, not {right.shape}")
        _require(_close(found, np.asarray(right)), f"output '{name}' is {found.tolist()}, not {right.tolist()}")


def _close(found: np.ndarray, right: np.ndarray) -> bool:
    if right.dtype.kind in "OU":
        return [str(word) for word in found.ravel()] == [str(word) for word in right.ravel()]
    if DType.from_numpy(right.dtype).is_float:
        difference = np.abs(found.astype(np.float64) - right.astype(np.float64))
        return bool(np.all(difference <= TOLERANCE))
    return bool(np.all(found == right))


def _check_plan(plan: Plan, example: Example) -> None:
    known = {name for node in example.proto.graph.node for name in (node.name, *node.output)}
    for region in plan.regions:
        strangers = [name for name in region.nodes if name not in known]
        _require(not strangers, f"region '{region.name}' of the plan names {strangers}, which the model does not have")
    named = {name for region in plan.regions for name in region.nodes}
    _require(bool(named), "the plan names no node of the model; return None when the engine does not know")


def _must_raise(kinds: tuple[type[TriageError], ...], what: str, call: Callable[..., object], *args: object) -> None:
    wanted = " or ".join(kind.__name__ for kind in kinds)
    try:
        call(*args)
    except EngineHung:
        raise
    except kinds as error:
        _require("\n" not in error.message and bool(error.message), f"the message for {what} is not one line")
        return
    except Exception as error:
        raise AssertionError(f"{what} raised {type(error).__name__} ({error}), not {wanted}") from error
    raise AssertionError(f"{what} was accepted; it must raise {wanted}")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)
