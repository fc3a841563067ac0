"""From an engine's name to an engine: the built-in ones by table, those of other packages by entry point.

Built-in engines resolve without any package metadata, and an installed package cannot take over their names. Modules
are imported only on demand, so that naming one engine never costs the import of another.
"""

import contextlib
import dataclasses
import functools
import importlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import cast

from tensortriage.engines.base import Availability, Engine, Limits
from tensortriage.engines.capabilities import ArrangesFiles, ReportsPrecision, RunsFiles, RunsOnHardware
from tensortriage.engines.cpu_features import processor
from tensortriage.engines.spec import EngineSpec, Hardware
from tensortriage.errors import EngineMissing, TriageError, UsageError, did_you_mean
from tensortriage.values.dtype import Precision
from tensortriage.values.files import content_digest
from tensortriage.values.registered import OWN, EntryPoint, registered
from tensortriage_worker.silence import APART

GROUP = "tensortriage.engines"
"""Entry-point group under which other packages register engine classes."""

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "onnxruntime": "tensortriage.engines.onnxruntime.in_place:EmbeddedOnnxRuntime",
        "float64": "tensortriage.engines.float64.engine:Float64Engine",
        "emulate": "tensortriage.engines.emulate:EmulateEngine",
        "script": "tensortriage.engines.script:ScriptEngine",
    }
)
"""Engines of this package: name to ``module:class``."""


def is_foreign(name: str) -> bool:
    """Return whether an engine is of another author: a script, or one that another distribution registers."""
    if name in BUILT_IN:
        return name == "script"
    point = registered(GROUP).get(name)
    return point is None or point.distribution != OWN


def create(spec: EngineSpec, *, limits: Limits | None = None) -> Engine:
    """Return the engine that a spec names; its options are read later, by ``Engine.compile``.

    Args:
        spec: Engine name and options.
        limits: Bounds on builds and runs of engines that work in their own process; None for the defaults.

    Raises:
        UsageError: For an unknown name (slug ``engine-unknown``).
        EngineMissing: When the class behind a known name cannot be imported or constructed (slug ``engine-broken``).
    """
    limits = limits or Limits()
    factory = _resolve(spec)
    try:
        return factory(limits=limits)
    except TriageError:
        raise
    except Exception as error:  # third-party constructors may raise anything
        raise _broken(spec.name, error) from error


@dataclasses.dataclass(frozen=True)
class ResolvedEngine:
    """The meaning of an engine spec in this process, resolved once.

    Attributes:
        spec: The spec as the user wrote it.
        engine: The engine, without bounds on builds and runs; for questions about options.
    """

    spec: EngineSpec
    engine: Engine

    @functools.cached_property
    def precision(self) -> Precision:
        """The number format that the engine computes in with these options; fp32 when it reports none."""
        if isinstance(self.engine, ReportsPrecision):
            return Precision.parse(self.engine.precision(self.spec.options))
        return Precision.parse(self.spec.options.get("precision", "fp32"))

    @functools.cached_property
    def hardware(self) -> Hardware:
        """The class of hardware: from the spec, else from the engine; `Hardware.ANY` where neither knows."""
        if self.spec.hardware or not isinstance(self.engine, RunsOnHardware):
            return Hardware(self.spec.hardware or Hardware.ANY)
        return Hardware(self.engine.hardware(self.spec.options))

    @property
    def known_as(self) -> str:
        """Engine name; empty if the user overrode the hardware class."""
        return "" if self.spec.hardware else self.spec.name

    @property
    def on_gpu(self) -> bool:
        """Whether it is known to compute on a GPU."""
        return self.hardware is Hardware.GPU

    @property
    def arranges_file(self) -> bool:
        """Whether it runs a file of another tool, which may have renamed and rearranged the model's tensors."""
        return isinstance(self.engine, ArrangesFiles) and self.engine.arranges(self.spec.options)

    @property
    def builder(self) -> EngineSpec:
        """The engine that builds a model in place of the file it is given; itself where it runs none."""
        own = self.engine.building(self.spec.options) if isinstance(self.engine, RunsFiles) else None
        return self.spec if own is None else self.spec.with_options(own)

    @property
    def file(self) -> Path:
        """The file in the spec, as an absolute path."""
        return Path(self.spec.options["file"]).expanduser().absolute()

    @property
    def identity(self) -> str:
        """Identity of the engine for caching: its spec, its version, the packages of its worker, its file as it is.

        Further code that the file loads shows only when it runs: see `tensortriage.runs.identity.engine_code`. A worker
        that does not start has no packages here; its absence is an error where it is needed.
        """
        from tensortriage.engines.process.interpreters import packages_digest

        available, options = self.engine.availability(), self.spec.options
        identity = f"{self.spec} {available.version} {available.device} {processor()}"
        if "worker" in options or "file" in options:
            with contextlib.suppress(EngineMissing):
                identity += f" {packages_digest(options.get('worker', ''))}"
        if "file" in options:
            identity += " " + (content_digest(self.file) or "unreadable")
        return identity


_resolved: dict[str, ResolvedEngine] = {}


def resolve(spec: EngineSpec) -> ResolvedEngine:
    """Return the resolved engine of a spec.

    Raises:
        TriageError: As `create`.
    """
    key = str(spec)
    if key not in _resolved:
        _resolved[key] = ResolvedEngine(spec, create(spec))
    return _resolved[key]


def known() -> tuple[str, ...]:
    """Return every engine name that a spec may use: built-in ones first, then registered ones by name."""
    return (*BUILT_IN, *_registered())


def availabilities() -> Mapping[str, Availability]:
    """Return for every known engine whether it can be used here; an engine that fails to answer is not usable."""
    return {name: _availability(name) for name in known()}


def _availability(name: str) -> Availability:
    try:
        return resolve(EngineSpec(name)).engine.availability()
    except TriageError as error:
        return Availability(usable=False, reason=error.message, cure=error.cure)
    except Exception as error:  # "never raises" is a promise that third-party engines may break
        return Availability(usable=False, reason=_one_line(error))


def _resolve(spec: EngineSpec) -> Callable[..., Engine]:
    name = spec.name
    if os.environ.get(APART):  # this process has crashed before
        from tensortriage.engines import apart

        if name in apart.IN_PROCESS:
            return apart.engine_class(name)
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        try:
            return cast(Callable[..., Engine], getattr(importlib.import_module(module), attribute))
        except ImportError as error:
            raise _broken(name, error) from error
    points = _registered()
    if name in points:
        try:
            return cast(Callable[..., Engine], points[name].load())
        except Exception as error:  # importing a third-party module may raise anything
            raise _broken(name, error) from error
    raise _unknown(name, (*BUILT_IN, *points))


def _registered() -> Mapping[str, EntryPoint]:
    return {name: point for name, point in registered(GROUP).items() if name not in BUILT_IN}


def _unknown(name: str, names: tuple[str, ...]) -> UsageError:
    cure = f"{did_you_mean(name, names)} known engines: {', '.join(names)}".lstrip()
    return UsageError(f"no engine is called '{name}'", slug="engine-unknown", cure=cure)


def _broken(name: str, error: Exception) -> EngineMissing:
    return EngineMissing(
        f"engine '{name}' cannot be loaded: {_one_line(error)}",
        slug="engine-broken",
        cure=f"reinstall the package that provides '{name}'",
    )


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
