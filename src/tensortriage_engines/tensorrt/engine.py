"""TensorRT and TensorRT-RTX, in a worker process: options and formats here, the library in `tensortriage_worker`.

A number format is reached in one of two ways, by the release's abilities. Releases with weak typing (8.5 to 10) have a
flag per format and let the builder choose layer by layer; kept nodes are constrained to float32. Releases without it
(11, RTX), or ``typing=strong``, get the model converted, with the same nodes kept, and build it as typed.
"""

import ctypes
import dataclasses
import functools
import importlib.metadata
import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tensortriage.engines.sdk import (
    Availability,
    BuildFailed,
    BuildsFiles,
    ChecksOptions,
    Choice,
    EngineMissing,
    IsolatedEngine,
    IsolatedSession,
    KeepsEngines,
    Limits,
    ModelError,
    ModelTerms,
    Observes,
    OffersLadder,
    PinsTactics,
    Precision,
    ReportsPrecision,
    RunsGivenEngines,
    RunsOnHardware,
    TakesFeeds,
    TellsPlan,
    VariesBuilds,
    read_options,
)
from tensortriage_engines.tensorrt.build_inputs import (
    Prepared,
    converting,
    is_quantized,
    no_weak,
    open_inputs,
    shape_inputs,
)
from tensortriage_engines.tensorrt.engine_cache import Shelf, replace_file
from tensortriage_engines.tensorrt.options import (
    AUTO,
    FILES,
    MIXED,
    OPTIONS,
    BuildSettings,
    Range,
    ladder,
    read_settings,
)
from tensortriage_engines.tensorrt.plan import in_terms_of_onnx, shown_value
from tensortriage_engines.tensorrt.session import TensorRtSession
from tensortriage_engines.tensorrt.worker.library import DEVICE, INSTALL, LIBRARIES
from tensortriage_engines.tensorrt.worker.tactics import FORMAT

if TYPE_CHECKING:
    from tensortriage.engines.sdk import Model

ADAPTER = "tensortriage_engines.tensorrt.worker.adapter"
"""The half of it that runs where TensorRT is."""
_FORMATS = ("fp16", "bf16", "fp8", "int8")
_DRIVER = "libcuda.so.1"
_PROBED: dict[tuple[tuple[str, str], ...], Mapping[str, Any]] = {}
"""Features of a release and a device, by the options that choose them: queried once per process."""


class TensorRtEngine(
    ReportsPrecision, RunsOnHardware, VariesBuilds, ChecksOptions, TellsPlan, OffersLadder, Observes, PinsTactics,
    BuildsFiles, TakesFeeds, RunsGivenEngines, KeepsEngines,
):  # fmt: skip
    """The engine ``tensorrt``."""

    name: ClassVar[str] = "tensorrt"
    options: ClassVar[Mapping[str, str]] = OPTIONS

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._isolated = IsolatedEngine(ADAPTER, title="TensorRT", limits=self.limits)
        self._shelf: Shelf | None = None

    def availability(self) -> Availability:
        """Return whether TensorRT is installed for this interpreter and there is a driver; nothing is started."""
        installed = next((name for name in LIBRARIES if _is_installed(name)), "")
        if not installed:
            return Availability(usable=False, reason="TensorRT is not installed", cure=INSTALL)
        try:
            ctypes.CDLL(_DRIVER)
        except OSError:
            return Availability(
                usable=False,
                version=_version(installed),
                reason="there is no NVIDIA driver: TensorRT"
                + (
                    "-RTX builds and parses here (convert, inspect capability), and does not run"
                    if "rtx" in installed
                    else " is installed, and does not run"
                ),
                cure=DEVICE,
            )
        return Availability(usable=True, version=_version(installed), device="CUDA")

    def precision(self, options: Mapping[str, str]) -> str:
        """Return the precision word these options make TensorRT compute in; for ``mixed`` the widest, fp32.

        Without an option it is tf32, which TensorRT uses for float32 on its own.

        Raises:
            UsageError: For an unknown option or option value.
        """
        word = read_settings(read_options(options, self.options)).precision
        if word == AUTO:
            return Precision.TF32.value
        return Precision.FP32.value if word == MIXED else Precision.parse(word).value

    def hardware(self, options: Mapping[str, str]) -> str:
        """Return ``gpu``."""
        return "gpu"

    def check(self, options: Mapping[str, str]) -> None:
        """Ask the worker whether there is a device, and this release has the precision; see `ChecksOptions`.

        Raises:
            EngineMissing: When it cannot run here (``device-missing``).
            UsageError: When the release lacks weak typing in the precision (``typing-unavailable``).
        """
        settings = read_settings(read_options(options, self.options))
        found = self._features(settings)
        if not found["device"]:
            raise EngineMissing(f"TensorRT cannot run here: {found['reason']}", slug="device-missing", cure=DEVICE)
        if settings.typing == "weak" and settings.precision in _FORMATS and settings.precision not in found["weak"]:
            raise no_weak(settings.precision)

    def features(self, options: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the features of the release and the device behind these options; starts a worker the first time.

        Raises:
            EngineMissing: When TensorRT or a device is missing there.
        """
        settings = read_settings(read_options(options, self.options))
        return self._features(settings)

    def compile(self, model: Path, options: Mapping[str, str]) -> TensorRtSession:
        """Build an ONNX file in a worker, or load the engine that option ``load_engine`` names.

        Raises:
            UsageError: For an unknown option or option value, or a model that cannot be built in this format.
            EngineMissing: When TensorRT, a device, or a requested feature is not available here.
            EngineError: When the build fails, crashes, hangs or runs out of memory.
        """
        from tensortriage.engines.sdk import Model

        settings = read_settings(read_options(options, self.options))
        model = model.absolute()
        try:
            loaded = Model.load(model)
        except ModelError as error:
            raise BuildFailed(
                f"the model cannot be read: {error.message}", slug="build-failed", cure=error.cure
            ) from error
        graph = loaded.graph
        return TensorRtSession(
            functools.partial(self._build, loaded, model, settings),
            inputs=loaded.inputs,
            outputs=loaded.outputs,
            open_inputs=open_inputs(loaded, settings),
            shape_inputs=shape_inputs(loaded, settings),
            value_of=lambda name: shown_value(name, graph),
        )

    def recording(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Return options with which sessions report their tactics."""
        return {**options, "record_tactics": "true"}

    def pinning(self, options: Mapping[str, str], record: Path) -> Mapping[str, str]:
        """Return options with which a build makes, and reports, the choices of a ``tensortriage.tactics/1`` file."""
        return {**options, "record_tactics": "true", "load_tactics": str(record.absolute())}

    def saving(self, options: Mapping[str, str], path: Path) -> Mapping[str, str]:
        """Return options with which a build also writes its engine to a file."""
        return {**options, "save_engine": str(path.absolute())}

    def builds_vary(self, options: Mapping[str, str]) -> bool:
        """Return whether two builds may differ: tactics are timed again for each, unless an engine is loaded."""
        return "load_engine" not in options

    def without_file(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return options without ``load_engine``; see `tensortriage.engines.capabilities.RunsGivenEngines`."""
        left = {key: value for key, value in options.items() if key != "load_engine"}
        return left if len(left) < len(options) else None

    def tells_plan(self, options: Mapping[str, str]) -> bool:
        """Return True: sessions report their plan at once, from the engine inspector."""
        return True

    def ladder(self, options: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Return fp32 without optimizations first, then with them, then the options as they are.

        Levels of optimization are left out where the release, which is known by then, has none (8.5).
        """
        known = _PROBED.get(_place(options))
        return ladder(options, levels=known is None or bool(known["opt_level"]))

    def observing(self, options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return options with which inner values are shown: those that fusion leaves (10.12 and later), else all.

        None for releases without a debug listener (8.5), and where the options set the way to observe.
        """
        if "observe" in options or "load_engine" in options:
            return None
        features = self.features(options)
        word = "unfused" if features["unfused_debug"] else "debug" if features["mark_debug"] else ""
        return {**options, "observe": word} if word else None

    def build_only(self, model: Path, options: Mapping[str, str]) -> Mapping[str, Any]:
        """Build without running, and write the files that the options name; return the adapter's report.

        Raises:
            TriageError: As for `compile`.
        """
        from tensortriage.engines.sdk import Model

        settings = read_settings(read_options(options, self.options))
        loaded = Model.load(model.absolute())
        with self._prepared(loaded, model.absolute(), settings, {}) as (path, words):
            info, blobs = self._isolated.answer("build", path, words, files=_files(words))
        _write(settings, info, lambda name: blobs[name].data)
        return {**info, "trtexec": converting(model.absolute(), settings, words) + info["trtexec"]}

    def wants_feeds(self, options: Mapping[str, str], model: Path) -> str:
        """Return ``calibration_feeds`` where int8 is requested, and neither options nor quantizers give scales."""
        from tensortriage.engines.sdk import Model

        scaled = {"calibration_cache", "calibration_feeds", "load_engine"} & options.keys()
        if options.get("precision") != "int8" or scaled or is_quantized(Model.load(model)):
            return ""
        return "calibration_feeds"

    def _features(self, settings: BuildSettings) -> Mapping[str, Any]:
        key = _place(settings.words)
        if key not in _PROBED:
            _PROBED[key] = self._isolated.probe(dict(key))
        return _PROBED[key]

    def keep_in(self, folder: Path, *, engines: bool) -> None:
        """Keep timings and perhaps engines in a folder; see `tensortriage.engines.capabilities.KeepsEngines`."""
        self._shelf = Shelf(folder, engines=engines)

    def _build(
        self, loaded: "Model", model: Path, settings: BuildSettings, ranges: Mapping[str, Range]
    ) -> IsolatedSession:
        terms = ModelTerms(
            declared=lambda _: (loaded.inputs, loaded.outputs),
            translate=lambda plan, _: in_terms_of_onnx(plan, model),
        )

        def opened(path: Path, words: Mapping[str, str]) -> IsolatedSession:
            return self._isolated.compile(path, words, files=_files(words), terms=terms)

        with self._prepared(loaded, model, settings, ranges) as (path, words):
            shelf, key = self._shelf, ""
            if shelf is not None and not settings.save:
                key = shelf.key(loaded, words, self._features(settings))
                kept = shelf.find(key) if key else None
                if kept is not None and (session := _taken(opened, path, words, *kept)) is not None:
                    return session
            if shelf is not None and key:
                timings = shelf.timing_cache(self._features(settings))
                words |= {"timing_cache": str(timings) if timings.is_file() else "", "timing_cache_optional": "true"}
            session = opened(path, words)
        if "trtexec" in session.info:
            command = converting(model, settings, words) + session.info["trtexec"]
            session.info = {**session.info, "trtexec": command}

        def fetch(name: str) -> memoryview:
            return session.answer(name)[1][name].data

        try:
            _write(settings, session.info, fetch)
            if shelf is not None and key:
                if shelf.engines:
                    shelf.put(key, fetch("engine"), session.info)
                replace_file(shelf.timing_cache(self._features(settings)), fetch("timing_cache"))
        except BaseException:
            session.close()
            raise
        return session

    def _prepared(
        self, loaded: "Model", model: Path, settings: BuildSettings, ranges: Mapping[str, Range]
    ) -> "Prepared":
        return Prepared(loaded, model, settings, ranges, self._features)


def _place(words: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the options that choose release and device."""
    return tuple(sorted((key, words[key]) for key in ("worker", "library", "device") if key in words))


def _taken(
    opened: Callable[[Path, Mapping[str, str]], IsolatedSession],
    path: Path,
    words: Mapping[str, str],
    engine: Path,
    info: Mapping[str, Any],
) -> IsolatedSession | None:
    """Return a session on a cached engine; None when TensorRT no longer accepts it."""
    try:
        session = opened(path, {**words, "load_engine": str(engine)})
    except BuildFailed:
        return None
    session.info = {**info, **{key: value for key, value in session.info.items() if key in ("pid", "built")}}
    return session


def _files(words: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(key for key in FILES if words.get(key))


def _write(settings: BuildSettings, info: Mapping[str, Any], fetch: Callable[[str], memoryview]) -> None:
    """Write the files that the options name."""
    wanted = {"engine": settings.save.get("save_engine"), "timing_cache": settings.save.get("timing_cache")}
    for name, path in wanted.items():
        if path is not None and info.get("built"):
            replace_file(path, fetch(name))
    tactics = settings.save.get("save_tactics")
    if tactics is not None and "tactics" in info:
        replace_file(tactics, json.dumps({"format": FORMAT, "engine": "tensorrt", "choices": _choices(info)}).encode())
    calibration = settings.save.get("save_calibration")
    if calibration is not None and "calibration_cache" in info:
        replace_file(calibration, info["calibration_cache"].encode("latin-1"))


def _choices(info: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the choices of a build with the fields that a file of tactics has."""
    fields = [field.name for field in dataclasses.fields(Choice)]
    return [{name: row[name] for name in fields if name in row} for row in info["tactics"]]


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # ValueError: a half-initialised module of that name
        return False


def _version(name: str) -> str:
    for package in importlib.metadata.packages_distributions().get(name, ()):
        return importlib.metadata.version(package)
    return ""
