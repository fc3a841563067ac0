"""From an engine's name to an engine: the built-in ones by table, third-party ones by entry point.

Built-in engines resolve without any package metadata (a source checkout, a zip, a frozen app) and their modules are
imported only when asked for, so that naming one engine never costs the import of another. The metadata scan happens
only for names the table does not know. A built-in name cannot be taken over by an installed package.
"""

import importlib
import importlib.metadata
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

from tensortriage.engines.base import Availability, Engine, Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineMissing, TriageError, UsageError, did_you_mean
from tensortriage_worker.silence import APART

GROUP = "tensortriage.engines"
"""Entry-point group under which third-party packages register engine classes."""

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "onnxruntime": "tensortriage.engines.onnxruntime.engine:OnnxRuntimeEngine",
        "reference": "tensortriage.engines.reference.engine:ReferenceEngine",
        "emulate": "tensortriage.engines.emulate:EmulateEngine",
        "openvino": "tensortriage.engines.openvino:OpenVinoEngine",
        "tensorrt": "tensortriage.engines.tensorrt.engine:TensorRtEngine",
        "litert": "tensortriage.engines.litert:LiteRtEngine",
        "mnn": "tensortriage.engines.mnn:MnnEngine",
        "ncnn": "tensortriage.engines.ncnn:NcnnEngine",
        "rknn": "tensortriage.engines.rknn.engine:RknnEngine",
        "iree": "tensortriage.engines.iree:IreeEngine",
        "tvm": "tensortriage.engines.tvm:TvmEngine",
        "torch": "tensortriage.engines.torch.engine:TorchEngine",
        "script": "tensortriage.engines.script:ScriptEngine",
    }
)
"""Engines of this package: name to ``module:class``."""


def is_foreign(name: str) -> bool:
    """Say whether an engine was written by somebody else: a script, or one that another package registers."""
    return name == "script" or name not in BUILT_IN


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
    factory = _resolve(spec.name)
    try:
        return factory(limits=limits)
    except TriageError:
        raise
    except Exception as error:  # third-party constructors may raise anything
        raise _broken(spec.name, error) from error


def known() -> tuple[str, ...]:
    """Return every engine name that a spec may use: built-in ones first, then registered ones by name."""
    return (*BUILT_IN, *sorted(_registered()))


def availabilities() -> Mapping[str, Availability]:
    """Return for every known engine whether it can be used here; an engine that fails to answer is not usable."""
    return {name: _availability(name) for name in known()}


def _availability(name: str) -> Availability:
    try:
        return create(EngineSpec(name)).availability()
    except TriageError as error:
        return Availability(usable=False, reason=error.message, cure=error.cure)
    except Exception as error:  # "never raises" is a promise that third-party engines may break
        return Availability(usable=False, reason=_one_line(error))


def _resolve(name: str) -> Callable[..., Engine]:
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
    registered = _registered()
    if name in registered:
        try:
            return cast(Callable[..., Engine], registered[name].load())
        except Exception as error:  # importing a third-party module may raise anything
            raise _broken(name, error) from error
    raise _unknown(name, (*BUILT_IN, *sorted(registered)))


def _registered() -> Mapping[str, importlib.metadata.EntryPoint]:
    found = importlib.metadata.entry_points(group=GROUP)
    return {point.name: point for point in found if point.name not in BUILT_IN}


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
