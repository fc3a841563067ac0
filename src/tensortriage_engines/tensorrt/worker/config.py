"""From option words to a TensorRT builder configuration.

Flags that this release lacks are refused by name, not ignored: a build that silently leaves out requested options is
the kind of fault that this tool looks for.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, Mapping, Tuple

from tensortriage_engines.tensorrt.worker.dtypes import word
from tensortriage_engines.tensorrt.worker.library import member
from tensortriage_engines.tensorrt.worker.network import layers
from tensortriage_worker.adapter import AdapterError, AdapterFailure

PROFILE = "profile."
STEADY_TIMINGS = 8
"""How often a tactic is timed with ``deterministic``: one slow measurement then seldom changes the choice."""
NONE = "NONE"
"""Word for an empty list."""
_SETTINGS = {
    "default_device_type": "DeviceType",
    "engine_capability": "EngineCapability",
    "hardware_compatibility_level": "HardwareCompatibilityLevel",
    "profiling_verbosity": "ProfilingVerbosity",
    "runtime_platform": "RuntimePlatform",
    "tiling_optimization_level": "TilingOptimizationLevel",
}
"""Attributes of a builder configuration that take a member of an enum."""
SETTINGS = tuple(_SETTINGS)
Shapes = Tuple[Tuple[int, ...], Tuple[int, ...], Tuple[int, ...]]
_FLAGS = {
    "strict_nans": ("STRICT_NANS", "strict handling of NaN"),
    "sparse": ("SPARSE_WEIGHTS", "sparse weights"),
    "refit": ("REFIT", "refitting"),
    "version_compatible": ("VERSION_COMPATIBLE", "version compatibility"),
    "no_new_timings": ("ERROR_ON_TIMING_CACHE_MISS", "error on a timing cache miss"),
    "no_compilation_cache": ("DISABLE_COMPILATION_CACHE", "switch for the compilation cache"),
    "debug_sync": ("DEBUG", "synchronisation after every layer"),
}
_SIZED_BY_DATA = ("NMS", "NON_ZERO")
"""Types of layers with outputs of data-dependent size."""
WEAK = {"fp16": ["FP16"], "bf16": ["BF16"], "fp8": ["FP8"], "int8": ["INT8"]}


def flag(trt: Any, config: Any, name: str, reason: str) -> None:
    """Set a builder flag by name.

    Raises:
        AdapterError: When this release has no such flag.
    """
    found = member(trt, "BuilderFlag", name)
    if not found:
        raise lacking(trt, reason)
    config.set_flag(found[0])


def lacking(trt: Any, what: str) -> AdapterError:
    """Return the error for something that this release cannot do."""
    return AdapterError(
        AdapterFailure.MISSING,
        "TensorRT {} has no {}".format(trt.__version__, what),
        "tensorrt-feature-missing",
        "leave the option out, or use a release that has it",
    )


def configure(trt: Any, builder: Any, options: Mapping[str, str], *, strong: bool) -> Any:
    """Return a builder configuration for all options but profiles, timing cache, tactics and calibration.

    Raises:
        AdapterError: For something that this release lacks or refuses.
    """
    config = builder.create_builder_config()
    if hasattr(config, "profiling_verbosity"):
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    set_precision(trt, config, options, strong=strong)
    if "opt_level" in options:
        _set(trt, config, "builder_optimization_level", int(options["opt_level"]), "optimization levels (opt_level)")
    if "build_route" in options:
        _set(trt, config, "build_route", options["build_route"], "build routes (build_route)")
    if "workspace" in options:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, int(options["workspace"]) << 20)
    if "tactic_sources" in options:
        config.set_tactic_sources(tactic_sources(trt, config.get_tactic_sources(), options["tactic_sources"]))
    for key, (name, what) in _FLAGS.items():
        if options.get(key) == "true":
            flag(trt, config, name, "{} ({})".format(what, key))
    if "max_aux_streams" in options:
        _set(trt, config, "max_aux_streams", int(options["max_aux_streams"]), "auxiliary streams (max_aux_streams)")
    if "avg_timing" in options:
        config.avg_timing_iterations = int(options["avg_timing"])
    for name in named(options, "builder_flags"):
        flag(trt, config, name, "builder flag {}".format(name))
    for text in named(options, "builder_settings"):
        attribute, _, value = text.partition(":")
        chosen = _choice(trt, _SETTINGS[attribute.lower()], value.upper())
        _set(trt, config, attribute.lower(), chosen, attribute)
    _switch_features(trt, config, options)
    if options.get("deterministic") == "true":
        _steady(trt, config, options)
    if "plugins" in options and hasattr(config, "plugins_to_serialize") and options.get("version_compatible") == "true":
        config.plugins_to_serialize = options["plugins"].split("+")
    return config


def named(options: Mapping[str, str], key: str) -> List[str]:
    """Return the names that an option lists, in TensorRT's upper case; ``SETTING:VALUE`` unchanged."""
    return [text.strip() if ":" in text else text.strip().upper() for text in options.get(key, "").split("+") if text]


def _choice(trt: Any, enum: str, name: str) -> Any:
    found = member(trt, enum, name)
    if not found:
        raise lacking(trt, "{}.{}".format(enum, name))
    return found[0]


def _switch_features(trt: Any, config: Any, options: Mapping[str, str]) -> None:
    """Switch preview features (those named on, all others off) and quantization flags."""
    if "preview_features" in options:
        wanted = [_choice(trt, "PreviewFeature", name) for name in named(options, "preview_features") if name != NONE]
        for feature in enum_members(trt.PreviewFeature).values():
            config.set_preview_feature(feature, feature in wanted)
    for name in named(options, "quantization_flags"):
        if name != NONE:
            config.set_quantization_flag(_choice(trt, "QuantizationFlag", name))


def set_precision(trt: Any, config: Any, options: Mapping[str, str], *, strong: bool) -> None:
    """Apply the precision word: TF32 off for fp32, a weak flag where types are not the model's.

    Raises:
        AdapterError: When this release has no such flag.
    """
    precision = options.get("precision", "tf32")
    if precision == "fp32":
        config.clear_flag(trt.BuilderFlag.TF32)
    if strong:
        return
    for name in [*WEAK.get(precision, []), *(w.upper() for w in options.get("fallback", "").split("+") if w)]:
        flag(trt, config, name, "weakly typed {}".format(name.lower()))


def allow_types(trt: Any, config: Any, types: Iterable[str]) -> None:
    """Allow the element types of a typed network in a release without strong typing.

    Args:
        trt: TensorRT's module.
        config: Builder configuration.
        types: Member names of ``trt.DataType``.
    """
    names = {"HALF": "FP16", "BF16": "BF16", "FP8": "FP8", "INT8": "INT8"}
    for name in sorted(names[each] for each in set(types) if each in names):
        flag(trt, config, name, "{} tensors".format(name.lower()))


def obey(trt: Any, config: Any, options: Mapping[str, str]) -> None:
    """Make precisions of layers binding (or preferred, by option)."""
    name = "PREFER_PRECISION_CONSTRAINTS" if options.get("constraints") == "prefer" else "OBEY_PRECISION_CONSTRAINTS"
    flag(trt, config, name, "precision constraints of layers")


def _steady(trt: Any, config: Any, options: Mapping[str, str]) -> None:
    if hasattr(config, "max_aux_streams"):
        config.max_aux_streams = 0
    if "avg_timing" not in options:
        config.avg_timing_iterations = STEADY_TIMINGS
    found = member(trt, "BuilderFlag", "DISTRIBUTIVE_INDEPENDENCE")
    if found:
        config.set_flag(found[0])


def _set(trt: Any, config: Any, attribute: str, value: Any, what: str) -> None:
    if not hasattr(config, attribute):
        raise lacking(trt, what)
    try:
        setattr(config, attribute, value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise AdapterError(
            AdapterFailure.USAGE, "TensorRT refuses {}={}: {}".format(attribute, value, error), "engine-option-value"
        ) from error


def tactic_sources(trt: Any, default: int, words: str) -> int:
    """Return the mask for ``NAME+NAME`` (only these) or ``-NAME+-NAME`` (the default without these).

    Raises:
        AdapterError: For a name that this release does not have.
    """
    if words.strip().upper() == NONE:
        return 0
    known = enum_members(trt.TacticSource)
    mask, started = default, False
    for text in filter(None, words.split("+")):
        name = text.lstrip("-").strip().upper()
        if name not in known:
            raise AdapterError(
                AdapterFailure.USAGE,
                "TensorRT {} has no tactic source {}".format(trt.__version__, name),
                "engine-option-value",
                "use one of: " + ", ".join(sorted(known)),
            )
        bit = 1 << int(known[name])
        if text.startswith("-"):
            mask &= ~bit
        else:
            mask, started = (mask if started else 0) | bit, True
    return mask


def enum_members(enum: Any) -> Dict[str, Any]:
    """Return the members of a pybind11 enum by name."""
    return dict(getattr(enum, "__members__", {}))


def profiles(options: Mapping[str, str]) -> Dict[str, Shapes]:
    """Return the shape ranges (min, opt, max) that the options give, by input; written ``1x3x8:4x3x8:8x3x8``."""
    found: Dict[str, Shapes] = {}
    for key, value in options.items():
        if key.startswith(PROFILE):
            parts = [tuple(int(size) for size in part.split("x") if size) for part in value.split(":")]
            found[key[len(PROFILE) :]] = (parts[0], parts[len(parts) // 2], parts[-1])
    return found


def add_profile(trt: Any, builder: Any, config: Any, network: Any, shapes: Mapping[str, Shapes]) -> Dict[str, Shapes]:
    """Add one optimization profile for all inputs that need one; return the ranges it got.

    Inputs that the ranges leave out get size 1 in every open dimension. A network whose inner shapes depend on data
    gets a profile too, which has no effect: 8.5 refuses it without one.

    Raises:
        AdapterError: When a range does not fit its input.
    """
    profile = builder.create_optimization_profile()
    used: Dict[str, Shapes] = {}
    for index in range(network.num_inputs):
        tensor = network.get_input(index)
        declared = tuple(tensor.shape)
        if tensor.is_shape_tensor:
            values = shapes.get(tensor.name)
            if values is None:
                raise _no_range(tensor.name, "gives shapes of other tensors: its values are needed")
            profile.set_shape_input(tensor.name, *[list(part) for part in values])
            used[tensor.name] = values
        elif any(size < 0 for size in declared):
            least = tuple(max(size, 1) for size in declared)
            values = shapes.get(tensor.name, (least, least, least))
            try:
                profile.set_shape(tensor.name, *values)
            except (ValueError, TypeError, RuntimeError) as error:
                raise _no_range(tensor.name, "does not take it: {}".format(error)) from error
            used[tensor.name] = values
    if used or any(word(layer.type) in _SIZED_BY_DATA for layer in layers(network)):
        added = config.add_optimization_profile(profile)
        if added is not None and int(added) < 0:
            raise _no_range(", ".join(used), "does not take its range")
    return used


def _no_range(name: str, reason: str) -> AdapterError:
    return AdapterError(
        AdapterFailure.USAGE,
        "input '{}' {}".format(name, reason),
        "profile-unusable",
        "give a range that fits: profile.{}=MIN:OPT:MAX, e.g. 1x3x224x224:4x3x224x224:8x3x224x224".format(name),
    )


def open_timing_cache(trt: Any, config: Any, path: str, *, editable: bool, optional: bool) -> Any:
    """Give a configuration the timing cache of a file (an empty one when there is none); return the cache.

    Args:
        trt: TensorRT's module.
        config: Builder configuration.
        path: The file; empty for none.
        editable: Whether entries can be read and changed.
        optional: Whether to go on with an empty cache when the file does not fit.

    Raises:
        AdapterError: When the file is a cache of another release, device or configuration.
    """
    if editable:
        flag(trt, config, "EDITABLE_TIMING_CACHE", "editable timing cache (editable)")
    data = b""
    if path and os.path.exists(path):
        with open(path, "rb") as file:
            data = file.read()
    for content in (data, b"") if optional else (data,):
        cache = config.create_timing_cache(content)
        if cache is not None and config.set_timing_cache(cache, False):
            return cache
    raise AdapterError(
        AdapterFailure.USAGE,
        "timing cache {} does not fit this TensorRT and device".format(path),
        "timing-cache-mismatch",
        "use another file: it is created when it does not exist",
    )


def timing_cache_bytes(config: Any) -> bytes:
    """Return the timing cache of a configuration after a build; empty where there is none."""
    cache = config.get_timing_cache()
    return b"" if cache is None else bytes(memoryview(cache.serialize()))
