"""Polygraphy's TensorRT flags, and the equivalent options of the engine ``tensorrt``.

They apply to the ``--trt`` runner of ``run`` and to ``convert --convert-to trt``; an engine spec has the same in one
word: ``--trt --fp16 --builder-optimization-level 2`` is ``--target tensorrt:precision=fp16,opt_level=2``.
"""

import ast
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.sdk import DECLARED, Place, UsageError, flag, option, parse_bytes, request

if TYPE_CHECKING:
    from tensortriage.sdk import ConvertRequest

HEADING = "TensorRT"
LOW = ("int8", "fp8", "bf16", "fp16")
"""Weak formats, the lowest first: it names the precision, layers may fall back to the others."""
_WORDS = {
    "builder_optimization_level": "opt_level", "save_engine": "save_engine", "save_timing_cache": "timing_cache",
    "load_timing_cache": "load_timing_cache", "max_aux_streams": "max_aux_streams",
    "save_tactics": "save_tactics", "load_tactics": "load_tactics",
}  # fmt: skip
_SWITCHES = {
    "sparse_weights": "sparse", "version_compatible": "version_compatible", "refittable": "refit",
    "error_on_timing_cache_miss": "no_new_timings", "disable_compilation_cache": "no_compilation_cache",
}  # fmt: skip
_BUILDER_FLAGS = {
    "exclude_lean_runtime": "EXCLUDE_LEAN_RUNTIME", "strip_plan": "STRIP_PLAN", "direct_io": "DIRECT_IO",
    "trt_safety_restricted": "SAFETY_SCOPE", "allow_gpu_fallback": "GPU_FALLBACK",
    "weight_streaming": "WEIGHT_STREAMING",
}  # fmt: skip
_SETTINGS = (
    "hardware_compatibility_level", "profiling_verbosity", "runtime_platform", "tiling_optimization_level",
    "engine_capability",
)  # fmt: skip
_CALIBRATORS = {
    "IInt8EntropyCalibrator2": "entropy2", "IInt8EntropyCalibrator": "entropy", "IInt8MinMaxCalibrator": "minmax",
}  # fmt: skip


def _setting(name: str) -> str:
    """Declare a setting that is a member of one of TensorRT's enums."""
    return option("--" + name.replace("_", "-"), "NAME", f"TensorRT's {name}, a member of its enum.",
                  default="", rare=True)  # fmt: skip


@request
class TensorrtOptions:
    """Polygraphy's TensorRT flags."""

    # fmt: off
    fp16: bool = flag("--fp16", "Allow fp16 kernels; in TensorRT 11 the model is converted.", group=HEADING)
    bf16: bool = flag("--bf16", "Allow bf16 kernels; in TensorRT 11 the model is converted.")
    fp8: bool = flag("--fp8", "Allow fp8 kernels.")
    int8: bool = flag("--int8", "Allow int8 kernels; calibrated with the feeds unless the model has quantizers.")
    tf32: bool = flag("--tf32", "Let fp32 use TF32.")
    strongly_typed: bool = flag("--strongly-typed", "Every layer computes in the type that the model declares.")
    trt_min_shapes: tuple[str, ...] = option(
        "--trt-min-shapes", "NAME:SHAPE...", "Smallest shapes of dynamic inputs  [default: those of the feeds].",
        default=(), rare=True)
    trt_opt_shapes: tuple[str, ...] = option(
        "--trt-opt-shapes", "NAME:SHAPE...", "Shapes to optimize for.", default=(), rare=True)
    trt_max_shapes: tuple[str, ...] = option(
        "--trt-max-shapes", "NAME:SHAPE...", "Largest shapes.", default=(), rare=True)
    layer_precisions: tuple[str, ...] = option(
        "--layer-precisions", "NODE:TYPE...", "Nodes that compute in float32, whatever the other flags allow.",
        default=(), rare=True)
    tactic_sources: tuple[str, ...] = option(
        "--tactic-sources", "NAME...", "Sources that tactics may come from; -NAME for all but one; without a name, "
        "none.", default=(), rare=True)
    preview_features: tuple[str, ...] = option(
        "--preview-features", "NAME...", "Preview features to use; without a name, none.", default=(), rare=True)
    quantization_flags: tuple[str, ...] = option(
        "--quantization-flags", "NAME...", "Quantization flags.", default=(), rare=True)
    plugins: tuple[str, ...] = option("--plugins", "FILE...", "Plugin libraries.", default=(), rare=True)
    pool_limit: tuple[str, ...] = option(
        "--pool-limit --memory-pool-limit", "POOL:BYTES...", "Limit of a memory pool; only that of the workspace is "
        "offered, e.g. workspace:1G.", default=(), rare=True)
    precision_constraints: str | None = option(
        "--precision-constraints", "", "Whether --layer-precisions are binding.",
        default=None, choices=("prefer", "obey", "none"), rare=True)
    builder_optimization_level: int | None = option(
        "--builder-optimization-level", "LEVEL", "How long to look for fast kernels.", default=None, least=0, most=5)
    save_engine: Path | None = option("--save-engine", "FILE", "Write the engine.", default=None, writes=Place.FILE)
    load_timing_cache: Path | None = option(
        "--load-timing-cache", "FILE", "Timing cache to read.", default=None, rare=True)
    save_timing_cache: Path | None = option(
        "--save-timing-cache", "FILE", "Write the timing cache.",
        default=None, writes=Place.FILE, rewrites=True, rare=True)
    save_tactics: Path | None = option(
        "--save-tactics --save-tactic-replay", "FILE", "Write the tactic of every layer.",
        default=None, writes=Place.FILE, rare=True)
    load_tactics: Path | None = option(
        "--load-tactics --load-tactic-replay", "FILE", "Build with the tactics of a file.", default=None, rare=True)
    calibration_cache: Path | None = option(
        "--calibration-cache", "FILE", "INT8 scales: read if the file exists, else written.",
        default=None, writes=Place.FILE, rare=True)
    calibrator: str | None = option(
        "--calib-base-cls --calibration-base-class", "", "Calibrator.",
        default=None, choices=tuple(_CALIBRATORS), rare=True)
    max_aux_streams: int | None = option(
        "--max-aux-streams", "N", "Largest number of auxiliary streams.", default=None, least=0, rare=True)
    hardware_compatibility_level: str = _setting("hardware_compatibility_level")
    profiling_verbosity: str = _setting("profiling_verbosity")
    runtime_platform: str = _setting("runtime_platform")
    tiling_optimization_level: str = _setting("tiling_optimization_level")
    engine_capability: str = _setting("engine_capability")
    sparse_weights: bool = flag("--sparse-weights", "Use sparse weights.", rare=True)
    version_compatible: bool = flag(
        "--version-compatible", "Build an engine that later releases of TensorRT can load.", rare=True)
    refittable: bool = flag("--refittable", "Build an engine whose weights can be replaced.", rare=True)
    error_on_timing_cache_miss: bool = flag(
        "--error-on-timing-cache-miss", "Fail when a tactic is missing from the timing cache.", rare=True)
    disable_compilation_cache: bool = flag(
        "--disable-compilation-cache", "Keep compiled code out of the timing cache.", rare=True)
    mark_unfused_tensors_as_debug_tensors: bool = flag(
        "--mark-unfused-tensors-as-debug-tensors", "Show the debug listener all tensors that fusion leaves.", rare=True)
    exclude_lean_runtime: bool = flag(
        "--exclude-lean-runtime", "Leave the lean runtime out of a version-compatible engine.", rare=True)
    strip_plan: bool = flag("--strip-plan", "Build an engine without the weights that can be refitted.", rare=True)
    direct_io: bool = flag("--direct-io", "Do not reformat inputs and outputs.", rare=True)
    trt_safety_restricted: bool = flag(
        "--trt-safety-restricted", "Use only features of TensorRT's safety scope.", rare=True)
    use_dla: bool = flag("--use-dla", "Run on a deep learning accelerator.", rare=True)
    allow_gpu_fallback: bool = flag("--allow-gpu-fallback", "Run unsupported layers on the GPU.", rare=True)
    weight_streaming: bool = flag("--weight-streaming", "Allow weights to be streamed from the host.", rare=True)
    # fmt: on

    def any_given(self, *but: str) -> str:
        """Return the name of a flag that was given, other than those of some fields; empty for none."""
        given = [field for field in dataclasses.fields(self) if getattr(self, field.name) != field.default]
        given = [field for field in given if field.name not in but]
        name: str = given[0].metadata[DECLARED][0].names[0] if given else ""
        return name

    def formats(self) -> list[str]:
        """Return the weak formats that are allowed by a flag, the lowest first."""
        return [name for name in LOW if getattr(self, name)]

    def words(self) -> dict[str, str]:
        """Return the options of the engine ``tensorrt`` for Polygraphy's flags.

        Without a format TensorRT computes in fp32, and TF32 only on request, as with Polygraphy.

        Raises:
            UsageError: For a value that has no counterpart.
        """
        words = self._precision()
        words |= {
            ours: str(getattr(self, theirs))
            for theirs, ours in _WORDS.items()
            if getattr(self, theirs) not in (None, "")
        }
        words |= {ours: "true" for theirs, ours in _SWITCHES.items() if getattr(self, theirs)}
        words |= self._profiles()
        if self.mark_unfused_tensors_as_debug_tensors:
            words["observe"] = "unfused"
        listed = {
            "tactic_sources": self.tactic_sources, "preview_features": self.preview_features,
            "quantization_flags": self.quantization_flags, "plugins": self.plugins,
        }  # fmt: skip
        words |= {name: "+".join(found) for name, found in listed.items() if found}
        flags = [flag for name, flag in _BUILDER_FLAGS.items() if getattr(self, name)]
        if flags:
            words["builder_flags"] = "+".join(flags)
        settings = [f"{name}:{getattr(self, name)}" for name in _SETTINGS if getattr(self, name)]
        if self.use_dla:
            settings.append("default_device_type:DLA")
        if settings:
            words["builder_settings"] = "+".join(settings)
        kept = [_kept(text) for text in self.layer_precisions]
        if kept and self.precision_constraints != "none":
            words["kept"] = "+".join(kept)
            words["constraints"] = self.precision_constraints or "prefer"
        for text in self.pool_limit:
            pool, _, size = text.rpartition(":")
            if pool.lower() not in ("", "workspace"):
                raise _no_counterpart(f"--pool-limit {text}", "limit the workspace: workspace:1G")
            words["workspace"] = str(max((parse_bytes(size) or 0) >> 20, 1))
        if self.calibrator:
            words["calibrator"] = _CALIBRATORS[self.calibrator]
        if self.calibration_cache:
            exists = self.calibration_cache.is_file()
            words["calibration_cache" if exists else "save_calibration"] = str(self.calibration_cache)
        return words

    def build(self, wanted: "ConvertRequest", precision: str, *, as_json: bool) -> None:
        """Build an engine file by these flags, and show it; see `tensortriage_engines.tensorrt.engine_file`."""
        from tensortriage_engines.tensorrt.engine_file import build_and_show

        build_and_show(wanted, self, precision, as_json=as_json)

    def _precision(self) -> dict[str, str]:
        formats = self.formats()
        if self.strongly_typed:
            if formats:
                raise _no_counterpart(f"--{formats[0]} with --strongly-typed", "leave one of them out")
            return {"precision": "mixed"}
        if not formats:
            return {"precision": "tf32" if self.tf32 else "fp32"}
        return {"precision": formats[0], **({"fallback": "+".join(formats[1:])} if formats[1:] else {})}

    def _profiles(self) -> dict[str, str]:
        ranges_given = {
            "min": self.trt_min_shapes, "opt": self.trt_opt_shapes, "max": self.trt_max_shapes,
        }  # fmt: skip
        parts = [_shapes(f"--trt-{word}-shapes", texts) for word, texts in ranges_given.items()]
        names = dict.fromkeys(name for part in parts for name in part)
        profiles = {}
        for name in names:
            found = [part[name] for part in parts if name in part]
            ranges = [part.get(name, found[0] if place == 0 else found[-1]) for place, part in enumerate(parts)]
            profiles[f"profile.{name}"] = ":".join("x".join(map(str, shape)) for shape in ranges)
        return profiles


def _shapes(flag: str, texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, _, shape = text.rpartition(":")
        try:
            sizes = tuple(int(size) for size in ast.literal_eval(shape))
        except (ValueError, SyntaxError, TypeError, OverflowError, RecursionError, MemoryError):
            raise UsageError(
                f"{flag} {text} is not understood", slug="shape-malformed", cure="write NAME:[1,3,224,224]"
            ) from None
        if name in found:
            raise _no_counterpart(f"{flag} for '{name}' twice", "give one profile; an engine is built per range")
        found[name] = sizes
    return found


def _kept(text: str) -> str:
    name, _, dtype = text.rpartition(":")
    if dtype.lower() not in ("float32", "fp32", "float"):
        raise _no_counterpart(f"--layer-precisions {text}", "keep nodes in float32, and give the rest a format: --fp16")
    return name


def _no_counterpart(what: str, cure: str) -> UsageError:
    return UsageError(f"{what} has no counterpart here", slug="flag-without-counterpart", cure=cure)
