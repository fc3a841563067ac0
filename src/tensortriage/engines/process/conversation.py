"""Talking to an engine process about one model, and the meaning of its answers and silences.

A conversation holds a worker for itself, from the first question until `end`. Whatever happens over there arrives here
as an error of this package: a refusal, a crash with the last words of the process, a hang, a lack of memory. After the
process has died a conversation is over; the next one starts another process.
"""

import contextlib
import re
import signal
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tensortriage.engines.base import Limits
from tensortriage.engines.feed_checks import MAX_REASON, build_failed, one_line, run_failed
from tensortriage.engines.process.answers import fault_of
from tensortriage.engines.process.control_group import group_memory
from tensortriage.engines.process.workers import Worker, WorkerDied, WorkerTimeout, give_back
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
from tensortriage.values.text import larger_limit
from tensortriage_worker.exchange import Item
from tensortriage_worker.shards import ShardError

CLOSE_SECONDS = 10.0
RETIRED_BYTES = 1 << 30
"""An engine process that holds so much more, after its model is closed, than it held after its first is not reused."""
LIBRARIES_BYTES = 3 << 30
"""Memory that a process may hold after its first model: CUDA and TensorRT keep 2 GB, and take four seconds to load."""

_ERRORS: dict[str, type[TriageError]] = {
    "usage": UsageError,
    "missing": EngineMissing,
    "build": BuildFailed,
    "run": RunFailed,
    "data": DataError,
    "NoRoom": StoreError,
} | {
    error.__name__: error
    for error in (BuildFailed, RunFailed, EngineMissing, EngineOutOfMemory, UsageError, ModelError, DataError)
}
_DOING = {
    "probe": "starting", "compile": "building the model", "run": "running", "streams": "running two streams",
    "plan": "reporting its plan", "answer": "answering", "close": "closing the model",
}  # fmt: skip
_LAST_WORDS = 6
_SLUG = re.compile("[a-z0-9]+(-[a-z0-9]+)*")
"""An exception of a user's script may have an attribute ``slug`` with another meaning."""
NO_CURE = "the log of the engine, or of the script, may have details"


class Conversation:
    """Questions to one engine process.

    Args:
        worker: Leased for this conversation, which gives it back.
        title: The engine's name in messages.
        limits: Bounds on time and memory of every answer.
    """

    def __init__(self, worker: Worker, title: str, limits: Limits) -> None:
        self.worker = worker
        self.title = title
        self.limits = limits
        self._delivered: list[str] = []
        self._built = False
        self._over = ""

    def deliver(self, path: Path) -> str:
        """Return where the engine process finds an ONNX file or a script.

        Raises:
            StoreError: When the worker's machine has no room for it.
            EngineCrashed: When the connection breaks.
        """
        with self._told("compile"):
            self._delivered.append(self.worker.transport.deliver(path))
        return self._delivered[-1]

    def deliver_file(self, path: Path) -> str:
        """Return where the engine process finds a file that is no model.

        Raises:
            StoreError: When the worker's machine has no room for it.
            EngineCrashed: When the connection breaks.
        """
        with self._told("compile"):
            self._delivered.append(self.worker.transport.deliver_file(path))
        return self._delivered[-1]

    def ask(self, operation: str, *, seconds: float | None = None, **fields: Any) -> dict[str, Any]:
        """Ask the engine process to do something and return its answer.

        Args:
            operation: ``probe``, ``compile``, ``run``, ``plan``, ``answer`` or ``close``.
            seconds: Longest wait; None for the limits' own.
            fields: Parameters of the operation, JSON types only.

        Raises:
            TriageError: For every way of not doing it, one of its kinds.
        """
        if seconds is None:
            seconds = self.limits.build_seconds if operation in ("compile", "probe") else self.limits.longest_run()
        with self._told(operation, seconds):
            answer = self.worker.ask(
                {"op": operation, **fields}, seconds=seconds, memory_bytes=self.limits.memory_bytes
            )
            if fault := fault_of(answer, operation):
                raise self.worker.distrusted(fault)
        if "error" in answer:
            raise self._failure(answer["error"], operation)
        self._built |= operation == "compile"
        return answer

    def run(self, items: Iterable[Item], *, layout: str = "") -> list[Item]:
        """Pass inputs to the engine, run it once, and return its outputs.

        Args:
            items: The inputs.
            layout: How they are to lie in memory there; see `tensortriage_worker.feeding`.

        Raises:
            StoreError: When there is no room for the inputs or the outputs.
            RunFailed: When the engine fails, or its outputs are no shard.
            EngineError: When it crashes, hangs or runs out of memory.
        """
        return self._exchange("run", items, layout=layout)[1]

    def streams(self, items: Iterable[Item], runs: int) -> list[Item]:
        """Let the engine run two feeds at once so often, each in a session of its own; names as the worker has them.

        Raises:
            TriageError: As `run`, and for a second build that fails.
        """
        seconds = self.limits.build_seconds + runs * self.limits.longest_run()
        return self._exchange("streams", items, seconds=seconds, runs=runs)[1]

    def query(
        self, question: str, items: Iterable[Item] = (), *, seconds: float | None = None, **fields: Any
    ) -> tuple[Mapping[str, Any], dict[str, np.ndarray]]:
        """Put a question of the adapter's own; return the answer, and arrays by name.

        Raises:
            TriageError: As for `ask` and `run`.
        """
        answer, found = self._exchange("answer", items, seconds=seconds, question=question, **fields)
        return answer["info"], {item.name: item.array for item in found}

    def _exchange(self, operation: str, items: Iterable[Item], **fields: Any) -> tuple[Mapping[str, Any], list[Item]]:
        transport = self.worker.transport
        paths: list[str] = []
        try:
            with self._told("run"):
                paths = transport.put(items)
            answer = self.ask(operation, shards=paths, folders=self.worker.folders, **fields)
            paths = []
            with self._told("run"):
                return answer, list(transport.take(answer["shards"]))
        except (ShardError, FileNotFoundError) as error:
            raise wrong_outputs(self.title, str(error)) from error
        finally:
            with contextlib.suppress(WorkerDied):
                transport.discard(paths)

    def end(self) -> None:
        """Close the model over there and let the worker go."""
        if self.worker.alive:
            with contextlib.suppress(TriageError):
                seconds = min(CLOSE_SECONDS, self.limits.longest_run())
                held = self.ask("close", seconds=seconds)["resident_bytes"]
                if self._built and self.worker.own_bytes is None:
                    self.worker.own_bytes = min(held, LIBRARIES_BYTES)
                most = RETIRED_BYTES + (self.worker.own_bytes or 0)
                limit = self.limits.memory_bytes
                if held > (most if limit is None else min(most, limit // 2)):
                    self.worker.kill("it uses too much memory")
        with contextlib.suppress(WorkerDied):
            for path in self._delivered:
                self.worker.transport.withdraw(path)
        give_back(self.worker)

    @contextlib.contextmanager
    def _told(self, operation: str, seconds: float = 0.0) -> Iterator[None]:
        """Turn the end of the process into an error, and remember it."""
        if self._over:
            raise EngineCrashed(
                f"the {self.title} session has ended: {self._over}", slug="session-dead", cure="compile the model again"
            )
        try:
            yield
        except WorkerTimeout:
            self._over = "it hung"
            raise EngineHung(
                f"{self.title} was still {_DOING[operation]} after {seconds:g} s",
                slug="engine-hung",
                cure="raise --timeout if it needs longer",
            ) from None
        except WorkerDied as error:
            self._over = "its process died"
            raise self._obituary(error.death, operation) from None
        except KeyboardInterrupt:  # in the middle of an exchange, whose rest would be read as the next answer
            self._over = "it was interrupted"
            self.worker.close()
            raise

    def _obituary(self, death: Mapping[str, Any], operation: str) -> EngineError:
        doing, tail, limit = _DOING.get(operation, operation), str(death["tail"]), self.limits.memory_bytes
        if death["cause"] == "memory" and limit is not None:
            return EngineOutOfMemory(
                f"{self.title} needed more than the {limit >> 20} MB of --memory-limit while {doing}",
                slug="memory-limit-reached",  # LIMIT_REACHED of engines.base
                cure=f"try --memory-limit {larger_limit(limit)}, or a smaller model or input",
            )
        if death.get("oom_killed") or ("bad_alloc" in tail and death["code"] == -signal.SIGABRT):
            group = None if self.worker.interpreter.startswith("ssh://") else group_memory()
            if group is None:
                return _out_of_memory(f"{self.title} ran out of memory while {doing}")
            message = f"{self.title} was killed while {doing}: its control group may hold {group.limit >> 20} MB"
            return EngineOutOfMemory(message, slug="engine-out-of-memory", cure=group.cure)
        words = _last_words(tail)
        return EngineCrashed(
            f"{self.title} crashed while {doing}: {_ending(death)}" + (f"; it last printed: {words}" if words else ""),
            slug="engine-crashed",
            cure="compile again for a fresh process; triage debug reduce finds the smallest model that crashes it",
        )

    def _failure(self, error: Mapping[str, str], operation: str) -> TriageError:
        kind, message, slug, cure = (error[field] for field in ("kind", "message", "slug", "cure"))
        if kind == "memory":
            self._over = "it ran out of memory"
            self.worker.kill(self._over)
            return _out_of_memory(f"{self.title} ran out of memory while {_DOING[operation]}: {one_line(message)}")
        if kind == "adapter":
            return EngineMissing(
                f"the adapter of {self.title} does not know what is installed for {self.worker.interpreter}: "
                f"{one_line(message)}",
                slug="adapter",
                cure="install a release that it knows (triage engines install NAME), and report this: no model is at "
                "fault",
            )
        if _SLUG.fullmatch(slug):
            return _ERRORS.get(kind, RunFailed)(one_line(message), slug=slug, cure=one_line(cure) or NO_CURE)
        if kind == "build":
            return build_failed(self.title, message)
        return run_failed(self.title, message)


def wrong_outputs(title: str, what: str) -> RunFailed:
    """Return the error for results that are not the model's outputs."""
    return RunFailed(
        f"{title} returned other values than the model's outputs: {what}",
        slug="engine-outputs-wrong",
        cure="return one array per model output, by its name, in the dtype the model declares",
    )


def _out_of_memory(message: str) -> EngineOutOfMemory:
    return EngineOutOfMemory(
        message, slug="engine-out-of-memory", cure="raise --memory-limit, or use a smaller model or input"
    )


def _ending(death: Mapping[str, Any]) -> str:
    code = death["code"]
    if code is None:
        return str(death["cause"]) or "its process ended"
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
