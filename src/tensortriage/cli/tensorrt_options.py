"""Polygraphy's TensorRT flags, and the options of the engine ``tensorrt`` that they stand for.

They apply to the ``--trt`` runner of ``run`` and to ``convert --convert-to trt``; an engine spec says the same in one
word: ``--trt --fp16 --builder-optimization-level 2`` is ``--target tensorrt:precision=fp16,opt_level=2``.
"""

import ast
from collections.abc import Mapping, Sequence

import click

from tensortriage.cli.option_values import TensorrtValues
from tensortriage.cli.options import READ, WRITTEN_FILE, Written, option, together
from tensortriage.errors import UsageError
from tensortriage.values.text import parse_bytes

LISTS = (
    "--trt-min-shapes", "--trt-opt-shapes", "--trt-max-shapes", "--trt-outputs", "--trt-exclude-outputs",
    "--preview-features", "--quantization-flags",
    "--layer-precisions", "--tactic-sources", "--pool-limit", "--memory-pool-limit", "--plugins", "--mark-debug",
)  # fmt: skip
HEADING = "TensorRT"
LOW = ("int8", "fp8", "bf16", "fp16")
"""Weak formats, the lowest first: it names the precision, the others are what layers may fall back to."""
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
_FLAGS = (
    ("--fp16", "Allow fp16 kernels; in TensorRT 11 the model is converted."),
    ("--bf16", "Allow bf16 kernels; in TensorRT 11 the model is converted."),
    ("--fp8", "Allow fp8 kernels."),
    ("--int8", "Allow int8 kernels; calibrated with the feeds unless the model has quantizers."),
    ("--tf32", "Let fp32 use TF32."),
    ("--strongly-typed", "Every layer computes in the type that the model declares."),
)
_RARE = (
    ("--sparse-weights", "Use sparse weights."),
    ("--version-compatible", "Build an engine that later releases of TensorRT can load."),
    ("--refittable", "Build an engine whose weights can be replaced."),
    ("--error-on-timing-cache-miss", "Fail when a tactic is missing from the timing cache."),
    ("--disable-compilation-cache", "Keep compiled code out of the timing cache."),
    ("--mark-unfused-tensors-as-debug-tensors", "Show the debug listener all tensors that fusion leaves."),
    ("--exclude-lean-runtime", "Leave the lean runtime out of a version-compatible engine."),
    ("--strip-plan", "Build an engine without the weights that can be refitted."),
    ("--direct-io", "Do not reformat inputs and outputs."),
    ("--trt-safety-restricted", "Use only what TensorRT's safety scope allows."),
    ("--use-dla", "Run on a deep learning accelerator."),
    ("--allow-gpu-fallback", "Run on the GPU what the accelerator lacks."),
    ("--weight-streaming", "Allow weights to be streamed from the host."),
)
_LISTED = (
    ("--trt-min-shapes", "NAME:SHAPE...", "Smallest shapes of dynamic inputs  [default: those of the feeds]."),
    ("--trt-opt-shapes", "NAME:SHAPE...", "Shapes to optimize for."),
    ("--trt-max-shapes", "NAME:SHAPE...", "Largest shapes."),
    ("--layer-precisions", "NODE:TYPE...", "Nodes that compute in float32, whatever the other flags allow."),
    ("--tactic-sources", "NAME...", "Sources that tactics may come from; -NAME for all but one; without a name, none."),
    ("--preview-features", "NAME...", "Preview features to use; without a name, none."),
    ("--quantization-flags", "NAME...", "Quantization flags."),
    ("--plugins", "FILE...", "Plugin libraries."),
)


tensorrt_flags = together(
    *(option(name, is_flag=True, heading=HEADING, help=text) for name, text in _FLAGS),
    *(
        option(name, multiple=True, metavar=metavar, heading=HEADING, rare=True, help=text)
        for name, metavar, text in _LISTED
    ),
    option("--pool-limit", "--memory-pool-limit", "pool_limit", multiple=True, metavar="POOL:BYTES...",
           heading=HEADING, rare=True, help="Limit of a memory pool; only that of the workspace is offered, e.g. "
                                            "workspace:1G."),
    option("--precision-constraints", type=click.Choice(("prefer", "obey", "none")), heading=HEADING,
           rare=True, help="Whether --layer-precisions are binding."),
    option("--builder-optimization-level", type=click.IntRange(0, 5), metavar="LEVEL", heading=HEADING,
           help="How long to look for fast kernels."),
    option("--save-engine", type=WRITTEN_FILE, metavar="FILE", heading=HEADING, help="Write the engine."),
    option("--load-timing-cache", type=READ, metavar="FILE", heading=HEADING, rare=True,
           help="Timing cache to read."),
    option("--save-timing-cache", type=Written(read_too=True), metavar="FILE", heading=HEADING, rare=True,
           help="Write the timing cache."),
    option("--save-tactics", "--save-tactic-replay", "save_tactics", type=WRITTEN_FILE, metavar="FILE",
           heading=HEADING, rare=True, help="Write the tactic of every layer."),
    option("--load-tactics", "--load-tactic-replay", "load_tactics", type=READ, metavar="FILE",
           heading=HEADING, rare=True, help="Build with the tactics of a file."),
    option("--calibration-cache", type=WRITTEN_FILE, metavar="FILE", heading=HEADING, rare=True,
           help="INT8 scales: read if the file exists, else written."),
    option("--calib-base-cls", "--calibration-base-class", "calibrator", heading=HEADING, rare=True,
           type=click.Choice(tuple(_CALIBRATORS)), help="Calibrator."),
    option("--max-aux-streams", type=click.IntRange(0), metavar="N", heading=HEADING, rare=True,
           help="Largest number of auxiliary streams."),
    *(
        option("--" + name.replace("_", "-"), metavar="NAME", default="", heading=HEADING, rare=True,
               help=f"TensorRT's {name}, a member of its enum.")
        for name in _SETTINGS
    ),
    *(option(name, is_flag=True, heading=HEADING, rare=True, help=text) for name, text in _RARE),
)  # fmt: skip
"""Polygraphy's TensorRT flags."""


tensorrt_outputs = together(
    *(
        option(name, multiple=True, metavar="NAME...", heading=HEADING, rare=True, help=text)
        for name, text in (
            ("--trt-outputs", "The same as --onnx-outputs."),
            ("--trt-exclude-outputs", "The same as --onnx-exclude-outputs."),
            ("--mark-debug", "The same as --onnx-outputs; a tensor that the debug listener can show is read from it."),
        )
    )
)
"""The flags that choose tensors, for commands that compare them."""


def tensorrt_words(given: TensorrtValues) -> dict[str, str]:
    """Return the options of the engine ``tensorrt`` that Polygraphy's flags stand for.

    Without a format TensorRT computes in fp32, and TF32 only when asked, as with Polygraphy.

    Raises:
        UsageError: For a value that has no counterpart.
    """
    values: Mapping[str, object] = given
    words = _precision(given)
    words |= {ours: str(values[theirs]) for theirs, ours in _WORDS.items() if values[theirs] not in (None, "")}
    words |= {ours: "true" for theirs, ours in _SWITCHES.items() if values[theirs]}
    words |= _profiles(given)
    if given["mark_unfused_tensors_as_debug_tensors"]:
        words["observe"] = "unfused"
    listed = {
        "tactic_sources": given["tactic_sources"], "preview_features": given["preview_features"],
        "quantization_flags": given["quantization_flags"], "plugins": given["plugins"],
    }  # fmt: skip
    words |= {name: "+".join(found) for name, found in listed.items() if found}
    flags = [flag for name, flag in _BUILDER_FLAGS.items() if values[name]]
    if flags:
        words["builder_flags"] = "+".join(flags)
    settings = [f"{name}:{values[name]}" for name in _SETTINGS if values[name]]
    if given["use_dla"]:
        settings.append("default_device_type:DLA")
    if settings:
        words["builder_settings"] = "+".join(settings)
    kept = [_kept(text) for text in given["layer_precisions"]]
    if kept and given["precision_constraints"] != "none":
        words["kept"] = "+".join(kept)
        words["constraints"] = given["precision_constraints"] or "prefer"
    for text in given["pool_limit"]:
        pool, _, size = text.rpartition(":")
        if pool.lower() not in ("", "workspace"):
            raise _no_counterpart(f"--pool-limit {text}", "limit the workspace: workspace:1G")
        words["workspace"] = str(max((parse_bytes(size) or 0) >> 20, 1))
    if given["calibrator"]:
        words["calibrator"] = _CALIBRATORS[given["calibrator"]]
    if given["calibration_cache"]:
        exists = given["calibration_cache"].is_file()
        words["calibration_cache" if exists else "save_calibration"] = str(given["calibration_cache"])
    return words


def any_given(given: TensorrtValues) -> str:
    """Return the name of a TensorRT flag that was given; empty for none."""
    values: Mapping[str, object] = given
    names = [name for name, *_ in (*_FLAGS, *_RARE, *_LISTED)]
    names += ["--" + name.replace("_", "-") for name in _WORDS]
    names += ["--" + name.replace("_", "-") for name in _SETTINGS]
    names += ["--pool-limit", "--precision-constraints", "--calibration-cache"]
    found = next((name for name in names if _says(values[name[2:].replace("-", "_")])), "")
    return found or ("--calib-base-cls" if given["calibrator"] else "")


def _says(value: object) -> bool:
    return value not in (None, "", ()) and value is not False


def formats_of(given: TensorrtValues) -> list[str]:
    """Return the weak formats that are allowed by a flag, the lowest first."""
    values: Mapping[str, object] = given
    return [name for name in LOW if values[name]]


def _precision(given: TensorrtValues) -> dict[str, str]:
    formats = formats_of(given)
    if given["strongly_typed"]:
        if formats:
            raise _no_counterpart(f"--{formats[0]} with --strongly-typed", "leave one of them out")
        return {"precision": "mixed"}
    if not formats:
        return {"precision": "tf32" if given["tf32"] else "fp32"}
    return {"precision": formats[0], **({"fallback": "+".join(formats[1:])} if formats[1:] else {})}


def _profiles(given: TensorrtValues) -> dict[str, str]:
    ranges_given = {
        "min": given["trt_min_shapes"], "opt": given["trt_opt_shapes"], "max": given["trt_max_shapes"],
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
        except (ValueError, SyntaxError, TypeError):
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
