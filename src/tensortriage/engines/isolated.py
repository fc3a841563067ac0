"""An engine in a process of its own: whatever becomes of it is an answer, and this process goes on.

`IsolatedEngine` is what engine modules build on: it knows an adapter's name (see `tensortriage_worker.adapter`) and
turns everything that can happen over there into this package's errors. A session owns its worker until it is closed,
so a crash ends one session and no other. Tensors travel as shard files (see `tensortriage_worker.exchange`), and what
`IsolatedSession.run` returns is mapped from files that are already unlinked: no copy, no lifetime to think about.
"""

import contextlib
import os
import signal
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tensortriage.engines.base import Limits, Plan, Region
from tensortriage.engines.feeding import MAX_REASON, build_failed, checked_feed, closed, one_line, run_failed
from tensortriage.engines.workers import Worker, WorkerDied, WorkerTimeout, check_interpreter, give_back, lease
from tensortriage.errors import (
    BuildFailed,
    DataError,
    EngineCrashed,
    EngineError,
    EngineHung,
    EngineMissing,
    EngineOutOfMemory,
    ModelError,
    RunFailed,
    StoreError,
    TriageError,
    UsageError,
)
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage_worker import exchange, shards

WORKER_OPTION = "interpreter that runs the engine, e.g. worker=/path/to/python (default: this one)"
CLOSE_SECONDS = 10.0
RETIRED_BYTES = 1 << 30
"""An engine process that holds more than this after its session is closed is not reused."""

_ERRORS: dict[str, type[TriageError]] = {
    "usage": UsageError,
    "missing": EngineMissing,
    "build": BuildFailed,
    "run": RunFailed,
    "memory": EngineOutOfMemory,
} | {
    kind.__name__: kind
    for kind in (
        BuildFailed,
        RunFailed,
        EngineMissing,
        EngineOutOfMemory,
        UsageError,
        ModelError,
        DataError,
        StoreError,
    )
}
_DOING = {"probe": "starting", "compile": "building the model", "run": "running", "plan": "telling its plan"}
_LAST_WORDS = 6
_RAW_KINDS = "ui"


class IsolatedEngine:
    """An adapter of the worker package, run in a process of its own.

    Args:
        adapter: Name of the adapter.
        title: What messages call the engine.
        limits: Bounds on time and memory.
    """

    def __init__(self, adapter: str, *, title: str, limits: Limits) -> None:
        self.adapter = adapter
        self.title = title
        self.limits = limits

    def probe(self, options: Mapping[str, str]) -> Mapping[str, Any]:
        """Return what the adapter tells about this place: version, device, precision.

        Raises:
            EngineMissing: When it cannot be used here.
            EngineError: When it fails in another way.
        """
        worker, rest = self._lease(options, affinity="")
        call = _Call(worker, self.title, self.limits)
        try:
            answer = call.ask("probe", adapter=self.adapter, options=rest)
        finally:
            give_back(worker)
        info: Mapping[str, Any] = answer["info"]
        return info

    def compile(
        self,
        model: Path,
        options: Mapping[str, str],
        *,
        affinity: str = "",
        declared: Callable[[Path], tuple[Sequence[ValueSpec], Sequence[ValueSpec]]] | None = None,
        translate: Callable[[Plan, Path], Plan] = lambda plan, _: plan,
    ) -> "IsolatedSession":
        """Build a model in a worker.

        Args:
            model: ONNX file.
            options: Options for the adapter, already checked; ``worker`` names the interpreter.
            affinity: A worker is reused only by compiles of the same affinity.
            declared: Finds input and output specs where the adapter's session does not tell them.
            translate: Turns the adapter's plan, given the model, into the one to show.

        Raises:
            EngineMissing: When the worker or the engine cannot be used here.
            UsageError: For option values that only the engine can judge.
            EngineError: When the build fails, crashes, hangs or runs out of memory.
        """
        worker, rest = self._lease(options, affinity=affinity)
        call = _Call(worker, self.title, self.limits)
        try:
            model = model.absolute()
            answer = call.ask("compile", adapter=self.adapter, model=str(model), options=rest)
            inputs, outputs = _specs(answer["inputs"]), _specs(answer["outputs"])
            if declared is not None and (inputs is None or outputs is None):
                known_inputs, known_outputs = declared(model)
                inputs = known_inputs if inputs is None else inputs
                outputs = known_outputs if outputs is None else outputs
        except BaseException:
            give_back(worker)
            raise
        return IsolatedSession(
            call, inputs=inputs or (), outputs=outputs or (), info=answer["info"], plan=lambda p: translate(p, model)
        )

    def _lease(self, options: Mapping[str, str], *, affinity: str) -> tuple[Worker, dict[str, str]]:
        rest = dict(options)
        word = rest.pop("worker", "")
        return lease(check_interpreter(word) if word else sys.executable, f"{self.adapter} {affinity}"), rest


class IsolatedSession:
    """A model built in a worker; made by `IsolatedEngine.compile`.

    Attributes:
        inputs: What `run` must be fed.
        outputs: What it returns.
        info: What the adapter tells about the build, e.g. the effective ``precision``.
        pid: Process id of the engine, on its host.
    """

    def __init__(
        self,
        call: "_Call",
        *,
        inputs: Sequence[ValueSpec],
        outputs: Sequence[ValueSpec],
        info: Mapping[str, Any],
        plan: Callable[[Plan], Plan],
    ) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.info = info
        self.pid: int = call.worker.hello["pid"]
        self._title = call.title
        self._call: _Call | None = call
        self._translate = plan
        self._finalizer = weakref.finalize(self, call.worker.close)

    def run(self, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run once; the arrays returned are read-only and stay valid after `close`.

        Raises:
            DataError: When the feed does not fit the inputs.
            StoreError: When neither shared memory nor the temporary folder has room for it (``exchange-full``).
            EngineError: When the run fails, crashes, hangs or runs out of memory, or its outputs are not those of the
                model. After a crash, a hang or memory trouble the session is of no more use.
        """
        call = self._open()
        arrays = checked_feed(feed, self.inputs)
        paths: list[str] = []
        try:
            paths = exchange.put(call.worker.folders, (exchange.Item(name, array) for name, array in arrays.items()))
            answer = call.ask("run", shards=paths, folders=call.worker.folders)
            items = list(exchange.take(answer["shards"]))
        except exchange.NoRoom as error:
            raise StoreError(
                f"{call.title} cannot be fed: {error}",
                slug="exchange-full",
                cure="free memory in /dev/shm, or set TMPDIR to a folder with room",
            ) from error
        except shards.ShardError as error:
            raise _wrong_outputs(call.title, str(error)) from error
        finally:
            for path in paths:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
        return _named_outputs(items, self.outputs, title=call.title, raw=not call.worker.hello["ml_dtypes"])

    def plan(self) -> Plan | None:
        """Return what the engine really runs, or None when it cannot tell."""
        answer = self._open().ask("plan")
        if answer["plan"] is None:
            return None
        return self._translate(Plan(tuple(Region(**{**row, "nodes": tuple(row["nodes"])}) for row in answer["plan"])))

    def close(self) -> None:
        """Let the worker go; calling it twice is harmless."""
        call, self._call = self._call, None
        if call is None:
            return
        self._finalizer.detach()
        if call.worker.alive:
            with contextlib.suppress(TriageError):
                held = call.ask("close", seconds=CLOSE_SECONDS)["resident_bytes"]
                if held > min(RETIRED_BYTES, (call.limits.memory_bytes or RETIRED_BYTES) // 2):
                    call.worker.kill("it holds too much memory")
        give_back(call.worker)

    def _open(self) -> "_Call":
        if self._call is None:
            raise closed(self._title)
        return self._call


class _Call:
    """The conversation about one model with one engine process, and what its silences mean."""

    def __init__(self, worker: Worker, title: str, limits: Limits) -> None:
        self.worker = worker
        self.title = title
        self.limits = limits
        self._ended = ""

    def ask(self, operation: str, *, seconds: float | None = None, **fields: Any) -> dict[str, Any]:
        """Ask the engine process to do something; every way of not doing it is an error of its own."""
        if self._ended:
            raise EngineCrashed(
                f"the {self.title} session is over: {self._ended}", slug="session-dead", cure="compile the model again"
            )
        if seconds is None:
            seconds = self.limits.build_seconds if operation in ("compile", "probe") else self.limits.run_seconds
        try:
            answer = self.worker.ask(
                {"op": operation, **fields}, seconds=seconds, memory_bytes=self.limits.memory_bytes
            )
        except WorkerTimeout:
            self._ended = "it hung"
            raise EngineHung(
                f"{self.title} was still {_DOING[operation]} after {seconds:g} s",
                slug="engine-hung",
                cure="raise --timeout if it may need longer",
            ) from None
        except WorkerDied as error:
            self._ended = "its process died"
            raise self._obituary(error.death, operation) from None
        if "error" in answer:
            raise self._failure(answer["error"], operation)
        return answer

    def _obituary(self, death: Mapping[str, Any], operation: str) -> EngineError:
        doing, tail, limit = _DOING.get(operation, operation), str(death["tail"]), self.limits.memory_bytes
        if death["cause"] == "memory" and limit is not None:
            return _out_of_memory(f"{self.title} needed more than {limit >> 20} MB while {doing}")
        if death.get("oom_killed") or ("bad_alloc" in tail and death["code"] == -signal.SIGABRT):
            return _out_of_memory(f"{self.title} ran out of memory while {doing}")
        words = _last_words(tail)
        return EngineCrashed(
            f"{self.title} crashed while {doing}: {_ending(death)}" + (f"; its last words: {words}" if words else ""),
            slug="engine-crashed",
            cure="compile again for a fresh process; triage debug reduce finds the smallest model that crashes it",
        )

    def _failure(self, error: Mapping[str, str], operation: str) -> TriageError:
        kind, message, slug, cure = (error[field] for field in ("kind", "message", "slug", "cure"))
        if kind == "memory":
            self._ended = "it ran out of memory"
            self.worker.kill(self._ended)
            return _out_of_memory(f"{self.title} ran out of memory while {_DOING[operation]}: {one_line(message)}")
        if slug:
            return _ERRORS[kind](one_line(message), slug=slug, cure=cure)
        if _ERRORS[kind] is BuildFailed:
            return build_failed(self.title, message)
        return run_failed(self.title, message)


def _out_of_memory(message: str) -> EngineOutOfMemory:
    return EngineOutOfMemory(
        message, slug="engine-out-of-memory", cure="raise --memory-limit, or use a smaller model or input"
    )


def _ending(death: Mapping[str, Any]) -> str:
    code = death["code"]
    if code is None:
        return str(death["cause"])
    if code >= 0:
        return f"its process ended with exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def _last_words(tail: str) -> str:
    """Return the telling lines of a log's end on one line: those about a fatal error, else the last ones."""
    lines = [" ".join(line.split()) for line in tail.splitlines()]
    lines = [line for line in lines if line and not line.startswith("Extension modules:")]
    fatal = next((index for index, line in enumerate(lines) if line.startswith("Fatal Python error")), None)
    if fatal is None:
        return " | ".join(lines[-_LAST_WORDS:])[-MAX_REASON:]
    return " | ".join(lines[max(0, fatal - 2) : fatal + 3])[:MAX_REASON]


def _specs(rows: Sequence[Mapping[str, Any]] | None) -> Sequence[ValueSpec] | None:
    if rows is None:
        return None
    return tuple(
        ValueSpec(
            row["name"],
            None if row["dtype"] is None else DType.parse(row["dtype"]),
            None if row["shape"] is None else tuple(row["shape"]),
        )
        for row in rows
    )


def _named_outputs(
    items: Sequence[exchange.Item], outputs: Sequence[ValueSpec], *, title: str, raw: bool
) -> dict[str, np.ndarray]:
    """Return results in the order and dtypes that the model declares.

    Args:
        items: What came back.
        outputs: What the model declares.
        title: What to call the engine.
        raw: Whether the worker had no ml_dtypes, so that e.g. bfloat16 may come as uint16.

    Raises:
        RunFailed: When an output is missing, unknown or of a type that does not widen exactly to the declared one.
    """
    found = {item.name: item.array for item in items}
    missing = [spec.name for spec in outputs if spec.name not in found]
    unknown = sorted(found.keys() - {spec.name for spec in outputs})
    if missing or unknown:
        parts = [f"{word} {', '.join(map(repr, names[:5]))}" for word, names in
                 (("lacks", missing), ("has unknown", unknown)) if names]  # fmt: skip
        raise _wrong_outputs(title, "the result " + " and ".join(parts))
    return {spec.name: _typed(found[spec.name], spec, title=title, raw=raw) for spec in outputs}


def _typed(array: np.ndarray, spec: ValueSpec, *, title: str, raw: bool) -> np.ndarray:
    declared, given = spec.dtype, DType.from_numpy(array.dtype)
    if declared is None or given is declared:
        return array
    wanted = declared.numpy
    if raw and wanted.kind == "V" and array.dtype.kind in _RAW_KINDS and array.dtype.itemsize == wanted.itemsize:
        return array.view(wanted)
    widens = given.is_float is declared.is_float and DType.STRING not in (given, declared)
    if widens and np.can_cast(array.dtype, wanted, "safe"):
        return array.astype(wanted)
    raise _wrong_outputs(title, f"output '{spec.name}' is {given.label}, the model declares {declared.label}")


def _wrong_outputs(title: str, what: str) -> RunFailed:
    return RunFailed(
        f"{title} returned something else than the model's outputs: {what}",
        slug="engine-outputs-wrong",
        cure="return one array per model output, by its name, in the dtype the model declares",
    )
