"""PyTorch: options and names here, the network in `tensortriage_torch.worker`, in an interpreter that has PyTorch.

``torch:FILE.pt2`` or ``torch:FILE.py:FUNCTION``. The ONNX file that is "built" only selects the values; the numbers are
the network's own, eager or compiled. So PyTorch is the truth about an exported file, or, compiled, an engine under
suspicion.
"""

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tensortriage.engines.sdk import (
    WORKER_OPTION,
    AnswersQuestions,
    Availability,
    BoundsRuns,
    BuildFailed,
    ChecksOptions,
    DType,
    IsolatedEngine,
    IsolatedSession,
    KnowsSomeValues,
    Limits,
    Model,
    ModelTerms,
    Observes,
    OffersLadder,
    Options,
    Plan,
    Precision,
    ReportsPrecision,
    RunFailed,
    RunsNetworks,
    RunsOnHardware,
    ShowsValues,
    TriageError,
    UsageError,
    ValueSpec,
    installed,
    noted_outputs,
    read_options,
)
from tensortriage_torch.network import TorchNetwork

ADAPTER = "tensortriage_torch.worker.adapter"
"""The half of it that runs where PyTorch is."""
DOUBLE = "fp64"
LEVELS = ("eager", "aot_eager", "inductor-unfused", "inductor")
"""Levels of ``torch.compile``, from none to full."""

_PRECISIONS = (Precision.FP32, Precision.FP16, Precision.BF16)
_CHANGED = "before::"  # prefix of the original value of a replaced one


class TorchEngine(ReportsPrecision, RunsOnHardware, RunsNetworks, ChecksOptions, OffersLadder, Observes):
    """The engine ``torch``."""

    name: ClassVar[str] = "torch"
    options: ClassVar[Mapping[str, str]] = {
        "file": "FILE.pt2 of torch.export.save, or a Python file (written after the colon)",
        "attribute": "its function that returns the module, or (module, example_inputs) (written after a second colon)",
        "device": "where it runs: cpu (default), cuda, ...",
        "dtype": "fp32, fp64, fp16 or bf16: type of weights and floating point inputs (default: as they are)",
        "compile": "eager (default), or a backend of torch.compile: aot_eager, inductor-unfused, inductor",
        "worker": WORKER_OPTION,
    }

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._isolated = IsolatedEngine(ADAPTER, title="PyTorch", limits=self.limits)

    def availability(self) -> Availability:
        """Return whether this interpreter has PyTorch; nothing is imported or started."""
        return installed("torch", "PyTorch", "pip install torch, or name a Python that has it: worker=/path/to/python")

    def precision(self, options: Mapping[str, str]) -> str:
        """Return the precision word of these options; fp32 for fp64, which is at least as good.

        Off the CPU, a network in float32 computes as PyTorch's own settings prescribe, once the user's file has run:
        they are read back. TF32 where they cannot be, since cuDNN uses it by default.
        """
        settings = _settings(read_options(options, self.options))
        word = str(settings.get("dtype", ""))
        if word == DOUBLE or self.hardware(options) == "cpu":
            return Precision.FP32.value if word in ("", DOUBLE) else word
        if word not in ("", Precision.FP32.value):
            return word
        try:
            answer, _ = self._isolated.answer(
                "precision", Path(settings["file"]), settings, affinity=_affinity(settings)
            )
        except TriageError:
            return Precision.TF32.value
        return str(answer["precision"])

    def hardware(self, options: Mapping[str, str]) -> str:
        """Return the class of the device, where it is one of the two that everybody has."""
        return {"cpu": "cpu", "cuda": "gpu"}.get(options.get("device", "cpu").partition(":")[0].lower(), "any")

    def check(self, options: Mapping[str, str]) -> None:
        """Ask the worker for PyTorch and the device; see `ChecksOptions`."""
        settings = _settings(read_options(options, self.options))
        self._isolated.probe(settings, affinity=_affinity(settings))

    def ladder(self, options: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Return the levels of compilation up to the requested one, eager first."""
        requested = options.get("compile", LEVELS[0]).strip().lower()
        lower = LEVELS[: LEVELS.index(requested)] if requested in LEVELS else ()
        return [*((f"compile={level}", {**options, "compile": level}) for level in lower), ("as given", dict(options))]

    def observing(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return the options for eager mode, which shows inner values; None for compiled networks, which show none."""
        return dict(options) if options.get("compile", LEVELS[0]).strip().lower() == LEVELS[0] else None

    def as_written(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Return options of the network as the user wrote it: not compiled, nor in another format."""
        return {word: value for word, value in options.items() if word not in ("dtype", "compile")}

    def export(self, options: Mapping[str, str], folder: Path, *, exporter: str) -> tuple[Path, Path]:
        """Write the ONNX model of the network, made in a worker, and the inputs it was exported with.

        Args:
            options: As for `compile`; the function that they name gives example inputs.
            folder: The folder to write to; it is made.
            exporter: One of `tensortriage_torch.export.EXPORTERS`.

        Raises:
            UsageError: When the network gives no example inputs, or lives on another machine.
            BuildFailed: When the exporter refuses the network.
            DataError: When the model takes another number of inputs than there are examples (``torch-inputs``).
        """
        from tensortriage_torch.export import saved_inputs

        folder.mkdir(exist_ok=True)
        path = folder / "model.onnx"
        return path, saved_inputs(path, self.export_file(options, path, exporter=exporter))

    def small_network(self, folder: Path) -> tuple[Mapping[str, str], Mapping[str, np.ndarray], np.ndarray]:
        """Write a network into a folder; see `tensortriage.engines.sdk.RunsNetworks`."""
        from tensortriage_torch.export import small_network

        return small_network(folder)

    def export_file(self, options: Mapping[str, str], path: Path, *, exporter: str) -> Sequence[np.ndarray]:
        """Write the ONNX model alone; return the example inputs, in the model's order. Errors as for `export`."""
        settings = _settings(read_options(options, self.options))
        if settings.get("worker", "").startswith("ssh://"):
            raise UsageError(
                "a network on another machine cannot be exported from here",
                slug="torch-export",
                cure="export it there, and give the ONNX file",
            )
        file = Path(settings["file"])
        words = {**settings, "to": str(path.absolute()), "exporter": exporter}
        _, examples = self._isolated.answer("export", file, words, affinity=_affinity(settings))
        return [examples[str(place)] for place in range(len(examples))]

    def compile(self, model: Path, options: Mapping[str, str]) -> "TorchSession":
        """Load the network in a worker, to answer for an ONNX file that was exported from it.

        Raises:
            UsageError: For an unknown option or value, a missing file, or a function that returns something else.
            EngineMissing: When there is no PyTorch.
            BuildFailed: When the ONNX file is a part of a network, or was changed (``torch-model-changed``).
            EngineError: When the user's code raises, crashes or hangs.
        """
        settings = _settings(read_options(options, self.options))
        loaded = Model.load(model)
        own = [spec.name for spec in loaded.outputs]
        network = noted_outputs(loaded.ir.graph.metadata_props, own)
        if not network or any(value.startswith(_CHANGED) for value in loaded.graph.values):
            raise BuildFailed(
                "the engine torch runs whole networks, and this model is a part of one or computes something else",
                slug="torch-model-changed",
                cure="use it on the whole model only",
            )
        names = {"inputs": [spec.name for spec in loaded.inputs], "outputs": network}
        if narrow := [spec.name for spec in loaded.outputs if spec.dtype is DType.BFLOAT16]:
            names["bfloat16"] = narrow
        session = self._isolated.compile(
            model,
            {**settings, "names": json.dumps(names)},
            affinity=_affinity(settings),
            files=("file",),
            terms=ModelTerms(lambda _: (loaded.inputs, _outputs(loaded, network))),
        )
        if settings["compile"] != LEVELS[0]:  # a compiled network is compiled anew for another shape, in a run
            return TorchSession(session, loaded, network, least_seconds=self.limits.build_seconds)
        return TorchSession(session, loaded, network)


class TorchSession(BoundsRuns, ShowsValues, KnowsSomeValues, AnswersQuestions):
    """A network that answers for an ONNX model; made by `TorchEngine.compile`.

    Attributes:
        inputs: Inputs of a run.
        outputs: Outputs of a run: those of the ONNX model, marked inner values among them.
        info: ``version`` of PyTorch, and whether a module is in ``training`` mode.
    """

    observation = "hooks"
    """Source of inner values."""

    def __init__(
        self, session: IsolatedSession, model: Model, network: Sequence[str], *, least_seconds: float = 0.0
    ) -> None:
        self.inputs: Sequence[ValueSpec] = session.inputs
        self.outputs: Sequence[ValueSpec] = model.outputs
        self.info = session.info
        self.reason = ""
        self._session, self._network, self._about = session, frozenset(network), TorchNetwork(model, session.answer)
        self._least_seconds = least_seconds
        if least_seconds:
            session.allow(least_seconds)

    def run(self, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run once; the model's marked inner values are looked up by the exporter's metadata.

        Raises:
            RunFailed: When a marked value cannot be identified in the network (``engine-value-unknown``).
            EngineError: As for `IsolatedSession.run`.
        """
        found = self.run_known(feed)
        if missing := [spec.name for spec in self.outputs if spec.name not in found]:
            why = f": {self.reason}" if self.reason else ""
            raise RunFailed(
                f"'{missing[0]}' ({len(missing)} in all) is not known to be a value of the network{why}",
                slug="engine-value-unknown",
                cure="compare the model's outputs, or module outputs by their path",
            )
        return found

    def run_known(self, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run once and return those of the outputs, marked inner values among them, that the network is known to have.

        Raises:
            EngineError: As for `IsolatedSession.run`.
        """
        wanted = [spec.name for spec in self.outputs]
        found = dict(self._session.run(feed)) if self._network.intersection(wanted) else {}
        if inner := [name for name in wanted if name not in found]:
            found |= dict(self.captured(feed, inner))
        return {name: found[name] for name in wanted if name in found}

    def captured(self, feed: Mapping[str, np.ndarray], values: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
        """Run once and yield ``(value name, array)`` for those of the wanted values that the network is known to have.

        Raises:
            EngineError: As for `IsolatedSession.run`.
        """
        about = self._about.about(functools.partial(self.query, feed=feed))
        yield from about.captured(values)
        self.reason = about.reason or self.reason

    def query(
        self, question: str, feed: Mapping[str, np.ndarray] | None = None, **arguments: Any
    ) -> tuple[Mapping[str, Any], Mapping[str, np.ndarray]]:
        """Answer questions of `tensortriage_torch.network.TorchNetwork`; errors as for `IsolatedSession.run`."""
        return self._session.answer(question, feed, **arguments)

    def plan(self) -> Plan | None:
        """Return None: PyTorch reports no plan."""
        return None

    def allow(self, run_seconds: float) -> None:
        """Limit later runs to the given seconds, but never below the time of a build, if the network is compiled."""
        self._session.allow(max(run_seconds, self._least_seconds))

    def close(self) -> None:
        """Let the worker go; calling it twice is harmless."""
        self._session.close()


def _affinity(settings: Mapping[str, str]) -> str:
    """Return the affinity of a worker: a function's settings for its compiler must reach no other network."""
    return " ".join(settings.get(key, "") for key in ("file", "attribute", "compile"))


def _outputs(model: Model, network: Sequence[str]) -> tuple[ValueSpec, ...]:
    known = {spec.name: spec for spec in model.outputs}
    return tuple(known.get(name, ValueSpec(name, None, None)) for name in network)


def _settings(options: Options) -> dict[str, Any]:
    """Return the options in the words of the adapter.

    Raises:
        UsageError: For a file that is not there, or values that are not understood.
    """
    settings = {key: options.text(key) for key in ("attribute", "device", "worker") if key in options}
    file = Path(options.text("file")).expanduser().absolute()
    if not file.is_file():
        raise UsageError(
            f"{file} does not exist", slug="script-missing", cure="write torch:FILE.pt2 or torch:FILE.py:FUNCTION"
        )
    if file.suffix != ".pt2" and "attribute" not in settings:
        raise UsageError(
            f"torch:{file.name} names no function", slug="torch-function", cure=f"write torch:{file.name}:FUNCTION"
        )
    settings["file"] = str(file)
    settings["compile"] = options.word("compile", LEVELS)
    if "dtype" in options:
        word = options.text("dtype").strip().lower()
        settings["dtype"] = word if word == DOUBLE else options.precision("dtype", _PRECISIONS).value
    return settings
