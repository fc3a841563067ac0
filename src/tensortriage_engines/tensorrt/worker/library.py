"""Finding TensorRT, and the features of this release: by testing attributes, never by its version number.

Two libraries share one programming interface: TensorRT (``tensorrt``) and TensorRT-RTX (``tensorrt_rtx``, or its bare
binding, for which the libraries bundled with ONNX Runtime's plugin are loaded first). Enum members are looked up by
name at the time of use, since their numbers moved between releases.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
from typing import Any, Callable, Dict, List, Mapping, Optional

from tensortriage_worker.adapter import AdapterError, AdapterFailure

LIBRARIES = ("tensorrt", "tensorrt_rtx", "tensorrt_rtx_bindings")
_RTX_BUNDLE = "onnxruntime_ep_nv_tensorrt_rtx"
_RTX_FILES = ("libtensorrt_rtx.so.", "libtensorrt_onnxparser_rtx.so.")
INSTALL = (
    "pip install tensorrt cuda-bindings, or name a Python that has both: tensorrt:worker=/path/to/python; "
    "see https://docs.nvidia.com/deeplearning/tensorrt for other ways"
)
DEVICE = "run on a machine with an NVIDIA GPU and its driver, or name one: tensorrt:worker=ssh://HOST"
Sink = Callable[[str, str], None]
"""Takes a severity (``ERROR``, ``WARNING``, ``INFO``, ``VERBOSE``, ``INTERNAL_ERROR``) and a message."""


def load(options: Mapping[str, str]) -> Any:
    """Import TensorRT and return its module; ``library`` in the options names which.

    Raises:
        AdapterError: When there is none.
    """
    wanted = options.get("library", "")
    names = [name for name in LIBRARIES if not wanted or name == wanted or name == wanted + "_bindings"]
    reasons: List[str] = []
    for name in names:
        if name == "tensorrt_rtx_bindings":
            _load_rtx_bundle()
        try:
            return importlib.import_module(name)
        except ImportError as error:  # also for a library that is there but lacks another
            if getattr(error, "name", None) != name:
                reasons.append("{}: {}".format(name, error))
    raise AdapterError(
        AdapterFailure.MISSING,
        "TensorRT cannot be imported" + ("".join("; " + reason for reason in reasons) or ": it is not installed"),
        "tensorrt-missing",
        INSTALL,
    )


def _load_rtx_bundle() -> None:
    """Load the libraries that the bare binding of TensorRT-RTX needs, where a package bundles them."""
    spec = importlib.util.find_spec(_RTX_BUNDLE)
    if spec is None or not spec.submodule_search_locations:
        return
    folder = next(iter(spec.submodule_search_locations))
    for head in _RTX_FILES:
        for name in sorted(os.listdir(folder)):
            if name.startswith(head):
                ctypes.CDLL(os.path.join(folder, name), ctypes.RTLD_GLOBAL)


def features(trt: Any) -> Dict[str, Any]:
    """Return this release's features, as plain words for the host."""
    config, network = trt.IBuilderConfig, trt.INetworkDefinition
    cache = getattr(trt, "ITimingCache", None)
    return {
        "version": str(trt.__version__),
        "library": trt.__name__.split(".")[0].replace("_bindings", ""),
        "weak": [name.lower() for name in ("FP16", "BF16", "FP8", "INT8") if member(trt, "BuilderFlag", name)],
        "strong": bool(member(trt, "NetworkDefinitionCreationFlag", "STRONGLY_TYPED")),
        "layer_precision": hasattr(trt.ILayer, "precision"),
        "unfused_debug": hasattr(network, "mark_unfused_tensors_as_debug_tensors"),
        "mark_debug": hasattr(network, "mark_debug"),
        "algorithm_selector": hasattr(config, "algorithm_selector"),
        "editable_timing_cache": hasattr(cache, "queryKeys") and _has_flag(trt, "EDITABLE_TIMING_CACHE"),
        "calibrator": hasattr(config, "int8_calibrator"),
        "build_route": hasattr(config, "build_route"),
        "opt_level": hasattr(config, "builder_optimization_level"),
        "strict_nans": _has_flag(trt, "STRICT_NANS"),
    }  # fmt: skip


def _has_flag(trt: Any, name: str) -> bool:
    return bool(member(trt, "BuilderFlag", name))


def member(trt: Any, enum: str, name: str) -> Optional[List[Any]]:
    """Return a one-item list with an enum member, or None: a member may itself be false (its number is 0)."""
    found = getattr(getattr(trt, enum, None), name, None)
    return None if found is None else [found]


def make_logger(trt: Any, sink: Sink) -> Any:
    """Return a TensorRT logger that hands every message to a function; it is called from builder threads."""
    from tensortriage_engines.tensorrt.worker.dtypes import word

    class Logger(trt.ILogger):  # type: ignore[misc] # TensorRT has no types here
        """A subclass of the binding's class has to call its constructor itself."""

        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, msg: str) -> None:
            sink(word(severity), msg)

    return Logger()


def load_plugins(trt: Any, logger: Any, paths: List[str]) -> None:
    """Register TensorRT's own plugins and those of the user's libraries.

    Raises:
        AdapterError: When a library cannot be loaded.
    """
    if hasattr(trt, "init_libnvinfer_plugins"):
        trt.init_libnvinfer_plugins(logger, "")
    for path in paths:
        try:
            registry = trt.get_plugin_registry()
            if hasattr(registry, "load_library"):
                if registry.load_library(path) is None:
                    raise OSError("TensorRT refused it")
            else:
                ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise AdapterError(
                AdapterFailure.USAGE,
                "plugin library {} cannot be loaded: {}".format(path, error),
                "plugin-library",
                "give a shared library built for this TensorRT",
            ) from error
