"""An engine in a process of its own: any end of that process is an answer, and this process goes on.

`IsolatedEngine` is the base of engine modules: it knows an adapter's name (see `tensortriage_worker.adapter`), and its
sessions are as good as those of an engine in this process. A session holds its worker until it is closed, so a crash
ends one session and no other. The results of `IsolatedSession.run` are mapped from files that are already unlinked: no
copy, no lifetime to think about.
"""

import dataclasses
import importlib.metadata
import importlib.util
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tensortriage.engines.base import Availability, Choice, Limits, Plan, Region
from tensortriage.engines.feed_checks import checked_feed, closed
from tensortriage.engines.process.asked_builds import AskedBuild, told
from tensortriage.engines.process.conversation import Conversation, wrong_outputs
from tensortriage.engines.process.gpus import own_gpus
from tensortriage.engines.process.interpreters import check_interpreter
from tensortriage.engines.process.model_terms import AS_REPORTED, ModelTerms, SessionEnds
from tensortriage.engines.process.workers import lease
from tensortriage.engines.session_capabilities import BoundsRuns, FedOtherwise, TellsTactics
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage_worker.exchange import Item
from tensortriage_worker.feeding import HELD, LAYOUTS, STRIDED

_RAW_KINDS = "ui"


def installed(package: str, title: str, cure: str) -> Availability:
    """Return whether this interpreter, the worker's unless another is named, has a package; nothing is imported."""
    try:
        if importlib.util.find_spec(package) is not None:
            return Availability(usable=True, version=importlib.metadata.version(package), device="CPU")
    except (ImportError, ValueError):  # ValueError: a half-initialised module of that name
        pass
    return Availability(usable=False, reason=f"{title} is not installed", cure=cure)


class IsolatedEngine:
    """An adapter, run in a process of its own.

    Args:
        adapter: Name of one of the worker package's, or the whole name of a module of another; its package travels too.
        title: The engine's name in messages.
        limits: Bounds on time and memory.
    """

    def __init__(self, adapter: str, *, title: str, limits: Limits) -> None:
        self.adapter = adapter
        self.title = title
        self.limits = limits

    def probe(self, options: Mapping[str, str], *, affinity: str = "") -> Mapping[str, Any]:
        """Return the adapter's report about this place: version, device, precision.

        Args:
            options: Options for the adapter, already checked.
            affinity: Affinity of the compiles whose worker may answer.

        Raises:
            EngineMissing: When it cannot be used here.
            EngineError: When it fails in another way.
        """
        conversation, rest = self._begin(options, affinity=affinity)
        try:
            info: Mapping[str, Any] = conversation.ask("probe", adapter=self.adapter, options=rest)["info"]
        finally:
            conversation.end()
        return info

    def answer(
        self,
        question: str,
        model: Path,
        options: Mapping[str, str],
        *,
        affinity: str = "",
        files: Sequence[str] = (),
    ) -> tuple[Mapping[str, Any], Mapping[str, np.ndarray]]:
        """Put the adapter a question of its own about a model; return the answer, and arrays (bytes as uint8).

        Args:
            question: One that the adapter knows.
            model: ONNX file.
            options: Options for the adapter, already checked.
            affinity: Affinity of the compiles whose worker may answer.
            files: Options whose values are files that the worker needs.

        Raises:
            TriageError: As for `compile`.
        """
        conversation, rest = self._begin(options, affinity=affinity)
        try:
            rest |= {key: conversation.deliver_file(Path(rest[key])) for key in files}
            there = conversation.deliver(model.absolute())
            return conversation.query(
                question, seconds=self.limits.build_seconds, adapter=self.adapter, model=there, options=rest
            )
        finally:
            conversation.end()

    def compile(
        self,
        model: Path,
        options: Mapping[str, str],
        *,
        affinity: str = "",
        files: Sequence[str] = (),
        terms: ModelTerms = AS_REPORTED,
    ) -> "IsolatedSession":
        """Build a model in a worker.

        Args:
            model: ONNX file.
            options: Options for the adapter, already checked; ``worker`` names the interpreter.
            affinity: A worker is reused only by compiles of the same affinity.
            files: Options whose values are files that the worker needs.
            terms: How the adapter's report is put in the terms of the model.

        Raises:
            EngineMissing: When the worker or the engine cannot be used here.
            UsageError: For option values that only the engine can judge.
            StoreError: When the worker's machine has no room for the model.
            EngineError: When the build fails, crashes, hangs or runs out of memory.
        """
        conversation, rest = self._begin(options, affinity=affinity)
        build = told(AskedBuild(self.adapter, model.absolute(), dict(rest), files))
        try:
            model = model.absolute()
            there = conversation.deliver(model)
            rest |= {key: conversation.deliver_file(Path(rest[key])) for key in files}
            answer = conversation.ask("compile", adapter=self.adapter, model=there, options=rest)
            ends = terms.ends(model, answer)
            build.fed_as, build.info = ends.fed_as, answer["info"]
        except BaseException:
            conversation.end()
            raise
        return IsolatedSession(conversation, ends, answer["info"], lambda plan: terms.translate(plan, model))

    def _begin(self, options: Mapping[str, str], *, affinity: str) -> tuple[Conversation, dict[str, str]]:
        rest, word = {key: value for key, value in options.items() if key != "worker"}, options.get("worker", "")
        interpreter = check_interpreter(word) if word else sys.executable
        affinity, file = f"{self.adapter} {affinity} {own_gpus()}", rest.get("file", "")
        worker = lease(interpreter, affinity, self.adapter.rpartition(".")[0], file=file)
        return Conversation(worker, self.title, self.limits), rest


class IsolatedSession(BoundsRuns, FedOtherwise, TellsTactics):
    """A model built in a worker; made by `IsolatedEngine.compile`.

    Attributes:
        inputs: Inputs of a run.
        outputs: Outputs of a run.
        held: How inputs and outputs are the model's, where they are those of a given file.
        info: Report of the adapter about the build, e.g. the effective ``precision``.
        pid: Process id of the engine, on its machine.
    """

    def __init__(
        self,
        conversation: Conversation,
        ends: SessionEnds,
        info: Mapping[str, Any],
        translate: Callable[[Plan], Plan],
    ) -> None:
        self.inputs, self.outputs = ends.inputs, ends.outputs
        self._fed_as, self.held = ends.fed_as, ends.held
        self.info = info
        self.pid: int = conversation.worker.hello["pid"]
        self._title = conversation.title
        self._raw = not conversation.worker.hello.get("ml_dtypes")
        self._conversation: Conversation | None = conversation
        self._translate = translate
        self._finalizer = weakref.finalize(self, conversation.worker.close)

    def run(self, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run once; the arrays returned are read-only and stay valid after `close`.

        Raises:
            DataError: When the feed does not fit the inputs.
            StoreError: When neither shared memory nor the temporary folder has room for it (``exchange-full``).
            EngineError: When the run fails, crashes, hangs or runs out of memory, or its outputs are not those of the
                model. After a crash, a hang or memory trouble the session is of no more use.
        """
        return self.run_laid_out(feed, "")

    @property
    def layouts(self) -> Sequence[str]:
        """Memory layouts for inputs; without strides, and results that are kept, where the adapter copies arrays."""
        return [layout for layout in (*LAYOUTS, HELD) if layout not in (STRIDED, HELD) or self.info.get("strided")]

    @property
    def own_options(self) -> Sequence[str]:
        """Words of options that a script's engine declares."""
        return tuple(self.info.get("own_options", ()))

    def run_laid_out(self, feed: Mapping[str, np.ndarray], layout: str) -> Mapping[str, np.ndarray]:
        """Run once from memory that lies as one of `layouts`; see `FedOtherwise`."""
        conversation = self._open()
        return self._named(conversation.run(self._items(feed), layout=layout))

    def streams(
        self, feeds: Sequence[Mapping[str, np.ndarray]], runs: int
    ) -> Sequence[Sequence[Mapping[str, np.ndarray]]]:
        """Run two feeds at once, each in a session of its own in that process; see `FedOtherwise`."""
        arrays = [self._items(feed) for feed in feeds]
        items = [item._replace(name=f"{number}/{item.name}") for number, feed in enumerate(arrays) for item in feed]
        found: dict[tuple[str, str], list[Item]] = {}
        for item in self._open().streams(items, runs):
            number, at, name = item.name.split("/", 2)
            found.setdefault((number, at), []).append(item._replace(name=name))
        return [
            [self._named(found[key]) for key in sorted(found) if key[0] == str(number)] for number in range(len(feeds))
        ]

    def answer(
        self, question: str, feed: Mapping[str, np.ndarray] | None = None, **arguments: Any
    ) -> tuple[Mapping[str, Any], Mapping[str, np.ndarray]]:
        """Put the adapter's session a question of its own; return the answer, and arrays (bytes as uint8).

        Raises:
            TriageError: As for `run`.
        """
        items = [] if feed is None else self._items(feed)
        return self._open().query(question, items, arguments=arguments)

    def _items(self, feed: Mapping[str, np.ndarray]) -> list[Item]:
        """Return a feed, checked, as the engine or the given file takes it, without dropped inputs."""
        arrays = self.held.feed(feed) if self.held else checked_feed(feed, self.inputs)
        return [Item(self._fed_as[name], array) for name, array in arrays.items() if name in self._fed_as]

    def allow(self, run_seconds: float) -> None:
        """Limit later runs to the given seconds; a longer one counts as a hang."""
        conversation = self._open()
        conversation.limits = dataclasses.replace(conversation.limits, run_seconds=run_seconds)

    def plan(self) -> Plan | None:
        """Return the plan that the engine really runs, or None when it reports none."""
        rows = self._open().ask("plan")["plan"]
        if rows is None:
            return None
        return self._translate(Plan(tuple(_region(row) for row in rows)))

    def tactics(self) -> Sequence[Choice]:
        """Return the choices of the engine while building, as the adapter reported them; empty without a report."""
        return tuple(_choice(row) for row in self.info.get("tactics", ()))

    def close(self) -> None:
        """Release the worker; calling it twice is harmless."""
        conversation, self._conversation = self._conversation, None
        if conversation is not None:
            self._finalizer.detach()
            conversation.end()

    def _open(self) -> Conversation:
        if self._conversation is None:
            raise closed(self._title)
        return self._conversation

    def _named(self, results: Sequence[Item]) -> dict[str, np.ndarray]:
        """Return results in the model's order and the engine's types, or raise an error."""
        found = {item.name: item.array for item in results}
        missing = [spec.name for spec in self.outputs if spec.name not in found]
        unknown = sorted(found.keys() - {spec.name for spec in self.outputs})
        reported = [
            f"{word} {', '.join(map(repr, names[:5]))}"
            for word, names in (("lacks", missing), ("has unknown", unknown))
            if names
        ]
        if reported:
            raise wrong_outputs(self._title, "the result " + " and ".join(reported))
        typed = {spec.name: self._typed(found[spec.name], spec) for spec in self.outputs}
        return dict(self.held.results(typed)) if self.held else typed

    def _typed(self, array: np.ndarray, spec: ValueSpec) -> np.ndarray:
        declared, given = spec.dtype, DType.from_numpy(array.dtype)
        if declared is None or given is declared:
            return array
        wanted = declared.numpy
        same_size = array.dtype.kind in _RAW_KINDS and array.dtype.itemsize == wanted.itemsize
        if self._raw and wanted.kind == "V" and same_size:  # a worker without ml_dtypes has bfloat16 as uint16
            return array.view(wanted)
        if DType.STRING in (given, declared):
            problem = f"output '{spec.name}' is {given.label}, the model declares {declared.label}"
            raise wrong_outputs(self._title, problem)
        return array  # another type is for the judge: its bytes may be right, and equal numbers are told of


def _choice(row: Mapping[str, Any]) -> Choice:
    inputs, outputs, nodes = (tuple(map(str, row.get(field, ()))) for field in ("inputs", "outputs", "nodes"))
    return Choice(
        layer=str(row["layer"]),
        tactic=str(row["tactic"]),
        implementation=str(row.get("implementation", "")),
        inputs=inputs,
        outputs=outputs,
        nodes=nodes,
        milliseconds=row.get("milliseconds"),
        key=str(row.get("key", "")),
    )


def _region(row: Mapping[str, Any]) -> Region:
    nodes, inputs, outputs = (tuple(row.get(key, ())) for key in ("nodes", "inputs", "outputs"))
    kind, precision, implementation = (str(row.get(key, "")) for key in ("kind", "precision", "implementation"))
    return Region(str(row["name"]), nodes, kind, precision, implementation, inputs, outputs)
