"""ONNX Runtime: the embedded default engine, as reference (optimizations off) and as target (all levels and providers).

Tensors cross the border without a copy both ways (`tensortriage.engines.onnxruntime.ort_values`). The memory arena is
off: with it a session keeps the memory of all outputs it ever gave (1 GB for a model with every value marked), and its
first run is slower. Idle threads sleep: by default they spin between operators and after a run, a fifth to a third of
its cost. ONNX Runtime's own log is silenced, since every failure arrives as a typed error.
"""

import contextlib
import ctypes
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tensortriage.engines.base import Availability, Limits, Plan
from tensortriage.engines.capabilities import ChecksOptions, ReportsPrecision, RunsFiles, RunsOnHardware, VariesBuilds
from tensortriage.engines.feed_checks import (
    build_failed,
    checked_feed,
    closed,
    one_line,
    run_failed,
)
from tensortriage.engines.onnxruntime.file_types import file_precision
from tensortriage.engines.onnxruntime.optimizer_passes import InSteps
from tensortriage.engines.onnxruntime.ort_values import feed_with_strings, to_array, to_ort_value
from tensortriage.engines.onnxruntime.plugin_providers import in_a_worker
from tensortriage.engines.onnxruntime.settings import (
    CONVERTED,
    PRECISIONS,
    UNOPTIMIZED,
    SessionSettings,
    hardware_of,
    nominal_precision,
    read_settings,
)
from tensortriage.engines.options import read_options
from tensortriage.engines.process.given_files import FILE, without_file
from tensortriage.engines.process.interpreters import WORKER_OPTION
from tensortriage.errors import BuildFailed, EngineMissing, EngineOutOfMemory, ModelError, TriageError
from tensortriage.values.dtype import DType, Precision
from tensortriage.values.spec import ValueSpec
from tensortriage_worker.onnxruntime.session_options import SILENT, session_options
from tensortriage_worker.onnxruntime.values import reason

if TYPE_CHECKING:
    from tensortriage.engines.onnxruntime.elsewhere import ElsewhereSession
    from tensortriage.model.model import Model
    from tensortriage.model.model_message import InPlace

NAME = "ONNX Runtime"
_TYPE_NAMES = {f"tensor({d.name.lower()})": d for d in DType}
BUILD_LOG_LEVEL = SILENT
"""Severity from which a build logs to standard error; `optimizer_passes` lowers it in a process of its own."""
_WEIGHTS = "session.model_external_initializers_file_folder_path"
_AS_THEY_ARE = "session.disable_prepacking"


class OnnxRuntimeEngine(InSteps, ReportsPrecision, RunsOnHardware, VariesBuilds, ChecksOptions, RunsFiles):
    """The engine ``onnxruntime``, in this process or, with ``worker``, ``ep``, ``file``, in a worker under `Limits`."""

    name: ClassVar[str] = "onnxruntime"
    options: ClassVar[Mapping[str, str]] = {
        "optimization": "graph optimization level: none, basic, extended, layout or all (default all)",
        "precision": "fp32; fp16 or bf16 convert the model before it runs; tf32 needs a CUDA provider",
        "providers": "execution providers, partial names joined with +: cpu, cuda, tensorrt, ... (default cpu)",
        "provider_option.KEY": "option of the first provider, e.g. provider_option.device_id=1",
        "threads": "threads within one operator (default: all cores)",
        "inter_threads": "operators run at a time (default 1)",
        "deterministic": "true for deterministic kernels (default false)",
        "disabled_optimizers": "graph transformers left out, joined with +, e.g. GeluFusionL2",
        "config.KEY": "session config entry, e.g. config.session.disable_prepacking=1",
        "custom_ops": "shared library with custom operators",
        "ep": "execution provider from a plugin library, in a worker: its name, e.g. qnn, or the library's path",
        "ep_name": "name to register the library of ep under (default: the name in its package, or the file's name)",
        "ep_option.KEY": "option of the provider ep, e.g. ep_option.soc_model=60",
        "fallback": "allow (default) or refuse: whether nodes that the provider ep does not take may run on the CPU",
        "file": "precompiled or optimized model (EPContext, .ort), to run instead of a whole model; "
        "judged in fp16 or bf16 where it holds such numbers",
        "worker": WORKER_OPTION,
    }

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()

    def availability(self) -> Availability:
        """Return whether ONNX Runtime can be imported, which version it is and which devices its providers drive."""
        try:
            ort = library()
        except EngineMissing as error:
            return Availability(usable=False, reason=error.message, cure=error.cure)
        names = [name.removesuffix("ExecutionProvider") for name in ort.get_available_providers()]
        return Availability(
            usable=True, version=ort.__version__, device=", ".join(name for name in names if name != "Azure")
        )

    def precision(self, options: Mapping[str, str]) -> str:
        """Return the precision word for these options.

        ONNX Runtime's CUDA and TensorRT providers use TF32 for float32 by default. With ``precision=fp16`` on the CPU
        provider weights and inputs are float16, but most kernels compute in float32.
        """
        return nominal_precision(read_options(options, self.options))

    def hardware(self, options: Mapping[str, str]) -> str:
        """Return the class of the requested providers; see `settings.hardware_of`."""
        return hardware_of(read_options(options, self.options))

    def builds_vary(self, options: Mapping[str, str]) -> bool:
        """Return whether two builds may differ: CPU kernels are chosen by rule, other providers may time theirs."""
        return "ep" in options or options.get("providers", "cpu").casefold() not in ("cpu", "cpuexecutionprovider")

    def building(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return the options without a given file, which shows its outputs only, in its format; see `RunsFiles`."""
        left = without_file(options)
        if left is None or "precision" in left or (file_format := file_precision(options[FILE])) is None:
            return left
        return {**left, "precision": file_format.value}

    def check(self, options: Mapping[str, str]) -> None:
        """Start the worker that options name, with its provider; see `ChecksOptions`."""
        given = read_options(options, self.options)
        nominal_precision(given)
        if in_a_worker(given):
            from tensortriage.engines.onnxruntime.elsewhere import Elsewhere

            Elsewhere(self.limits).probe(given)

    def compile(self, model: Path, options: Mapping[str, str]) -> "OnnxRuntimeSession | ElsewhereSession":
        """Build a session.

        Raises:
            UsageError: For an unknown option or option value.
            EngineMissing: When ONNX Runtime or a requested provider is not usable here.
            BuildFailed: When ONNX Runtime refuses the model, with its reason; also for inputs and outputs that are no
                tensors (sequences, optionals, maps), and where a provider from a plugin takes nothing of it.
            EngineError: Another of its kinds where it works in a process of its own.
        """
        given = read_options(options, self.options)
        if in_a_worker(given):
            from tensortriage.engines.onnxruntime.elsewhere import Elsewhere

            return Elsewhere(self.limits).compile(model, given, _converted)
        precision = given.precision("precision", PRECISIONS, Precision.FP32)
        settings = read_settings(given, library())
        if precision not in CONVERTED:
            return OnnxRuntimeSession(model, settings)
        from tensortriage.model.mixed_precision.convert_precision import convert

        try:
            return open_rewritten(
                model, settings, lambda original, specs: convert(original, precision, specs=specs), engine=self.name
            )
        except BuildFailed as error:
            if "Could not find an implementation" in error.message:
                error.cure = (
                    f"this provider cannot compute in {precision.value}; emulate:precision={precision.value} can"
                )
            raise


def _converted(model: "Model", precision: Precision) -> "Model":
    from tensortriage.engines.onnxruntime.told_types import known_specs
    from tensortriage.model.mixed_precision.convert_precision import convert

    specs = known_specs(model, lambda path: OnnxRuntimeSession(path, UNOPTIMIZED).outputs)
    return convert(model, precision, specs=specs)


class OnnxRuntimeSession:
    """A model built by ONNX Runtime.

    Args:
        model: The ONNX file, or a message with the directory of its external data.
        settings: How to build it.
        folder: Temporary directory that holds the file, removed on close; None when the file is the user's.
        original: File that the model was made from, whose nodes `plan` names; None when it is the model itself.

    Raises:
        EngineMissing: When ONNX Runtime or a provider is not usable here.
        BuildFailed: When the model is refused.
    """

    def __init__(
        self,
        model: "Path | InPlace",
        settings: SessionSettings,
        *,
        folder: tempfile.TemporaryDirectory[str] | None = None,
        original: Path | None = None,
    ) -> None:
        self._model = model
        self._original = original or model
        self._settings = settings
        self._folder = folder
        self._session: Any = _build(model, settings)
        self.inputs: Sequence[ValueSpec] = tuple(_spec(arg, "input") for arg in self._session.get_inputs())
        self.outputs: Sequence[ValueSpec] = tuple(_spec(arg, "output") for arg in self._session.get_outputs())

    def run(self, feed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run once; outputs own their memory and stay valid after `close`.

        Raises:
            DataError: When the feed does not fit the inputs.
            RunFailed: When a kernel fails, or the session is closed.
            EngineOutOfMemory: When an allocation fails.
        """
        if self._session is None:
            raise closed(NAME)
        arrays = checked_feed(feed, self.inputs)
        names = [spec.name for spec in self.outputs]
        options = library().RunOptions()
        options.log_severity_level = SILENT
        try:
            if any(spec.dtype is DType.STRING for spec in self.inputs):
                return dict(
                    zip(names, self._session.run(names, feed_with_strings(library(), arrays), options), strict=True)
                )
            values = {name: to_ort_value(library(), array) for name, array in arrays.items()}
            results = self._session.run_with_ort_values(names, values, options)
            fed = {value.data_ptr() for value in values.values()}
            return {name: to_array(value, fed) for name, value in zip(names, results, strict=True)}
        except Exception as error:
            raise _translated(error, run_failed(NAME, reason(error))) from error

    def plan(self) -> Plan | None:
        """Return the optimized graph, each kernel with the original nodes fused into it.

        Costs one more build: ONNX Runtime shows its graph only by writing a file. None for a model that is in no file.

        Raises:
            RunFailed: After `close`.
        """
        if self._session is None:
            raise closed(NAME)
        if not isinstance(self._original, Path):
            return None
        from tensortriage.engines.onnxruntime.node_map import fused_regions
        from tensortriage.model.model import Model

        with tempfile.TemporaryDirectory(prefix="triage-onnxruntime-") as folder:
            optimized = Path(folder) / "optimized.onnx"
            _build(self._model, self._settings, save_to=optimized)
            try:
                return Plan(fused_regions(Model.of_file(self._original), Model.load(optimized)))
            except TriageError:
                return None

    def close(self) -> None:
        """Release the session, its temporary files, and the heap that its runs left free."""
        if self._session is None:
            return
        self._session = None
        if self._folder is not None:
            self._folder.cleanup()
        _trim_heap()


def open_rewritten(
    model: Path,
    settings: SessionSettings,
    rewrite: Callable[["Model", Mapping[str, ValueSpec]], "Model"],
    *,
    engine: str,
) -> OnnxRuntimeSession:
    """Return a session on a rewritten copy of a model, which lives in a temporary directory until the session closes.

    Args:
        model: The user's file; `OnnxRuntimeSession.plan` speaks of its nodes.
        settings: How to build the copy.
        rewrite: From the model and its value specs to the copy.
        engine: Name for messages.

    Raises:
        BuildFailed: When the file is no model, cannot be rewritten, or its copy is refused.
    """
    from tensortriage.engines.onnxruntime.told_types import known_specs
    from tensortriage.model.model import Model

    folder = tempfile.TemporaryDirectory(prefix=f"triage-{engine}-")
    try:
        original = Model.of_file(model)
        specs = known_specs(original, lambda path: OnnxRuntimeSession(path, settings).outputs)
        path = rewrite(original, specs).save(Path(folder.name) / "model.onnx")
        return OnnxRuntimeSession(path, settings, folder=folder, original=model)
    except BaseException as error:
        folder.cleanup()
        if isinstance(error, ModelError):
            raise build_failed(engine, error.message, cure=error.cure) from error
        raise


def library() -> Any:
    """Return the onnxruntime module, its global log silenced.

    Raises:
        EngineMissing: When it cannot be imported.
    """
    try:
        import onnxruntime
    except Exception as error:  # besides ImportError, a broken shared library may raise anything
        raise EngineMissing(
            f"ONNX Runtime cannot be imported: {one_line(error)}",
            slug="engine-not-installed",
            cure="pip install onnxruntime",
        ) from error
    onnxruntime.set_default_logger_severity(SILENT)
    onnxruntime.disable_telemetry_events()  # `silence` came too late if the caller had imported it before us
    return onnxruntime


def _build(model: "Path | InPlace", settings: SessionSettings, *, save_to: Path | None = None) -> Any:
    ort = library()
    try:
        mapped = {} if isinstance(model, Path) else {_WEIGHTS: str(model.folder), _AS_THEY_ARE: "1"}
        place = str(save_to or "")
        options = session_options(ort, settings.words(), config=mapped, save_to=place, log_level=BUILD_LOG_LEVEL)
        session = ort.InferenceSession(
            str(model) if isinstance(model, Path) else model.message,
            options,
            providers=[(name, dict(own)) for name, own in settings.providers],
            disabled_optimizers=list(settings.disabled_optimizers) or None,
            enable_fallback=0,
        )
    except Exception as error:
        raise _translated(error, build_failed(NAME, reason(error))) from error
    started = session.get_providers()
    absent = [name for name, _ in settings.providers if name not in started]
    if absent:
        raise EngineMissing(
            f"ONNX Runtime could not start {absent[0]}",
            slug="provider-missing",
            cure="check the device, its driver and the libraries this provider needs",
        )
    return session


def _spec(arg: Any, role: str) -> ValueSpec:
    if arg.type not in _TYPE_NAMES:
        raise BuildFailed(
            f"{role} '{arg.name}' is {arg.type}, not a tensor",
            slug="value-not-a-tensor",
            cure="cut the model before it, e.g. with triage surgeon extract",
        )
    shape = tuple(dim if isinstance(dim, str) or (dim is not None and dim >= 0) else None for dim in arg.shape)
    return ValueSpec(arg.name, _TYPE_NAMES[arg.type], shape or None)  # it calls an unknown rank [], as that of a scalar


def _translated(error: Exception, otherwise: TriageError) -> TriageError:
    if isinstance(error, TriageError):
        return error
    if isinstance(error, MemoryError) or re.search(r"Failed to allocate memory|bad_alloc|out of memory", str(error)):
        return EngineOutOfMemory(
            f"{NAME} ran out of memory: {one_line(reason(error))}",
            slug="engine-out-of-memory",
            cure="use a smaller input",
        )
    return otherwise


def _trim_heap() -> None:
    """Give the heap's free pages back to the system where the C library can (glibc keeps them otherwise)."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
