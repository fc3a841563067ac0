"""The trtexec command line for the options of a build, for a vendor who has only that.

Options without a counterpart in trtexec are listed behind the command: one that leaves something out builds another
engine, and whoever runs it would look for the fault there. Flags: samples/common/sampleOptions.cpp of NVIDIA/TensorRT,
8.5 to 10.x. How often tactics are timed is always written: trtexec does it eight times where the library does it once.
"""

from __future__ import annotations

import json
from typing import Any, List, Mapping

from tensortriage_engines.tensorrt.worker.config import WEAK, Shapes, enum_members, named, tactic_sources
from tensortriage_engines.tensorrt.worker.library import member

_PLAIN = {
    "opt_level": "--builderOptimizationLevel=", "workspace": "--memPoolSize=workspace:",
    "timing_cache": "--timingCacheFile=", "build_route": "--setBuildRoute=", "device": "--device=",
    "max_aux_streams": "--maxAuxStreams=", "calibration_cache": "--calib=",
}  # fmt: skip
_SWITCHES = {
    "sparse": "--sparsity=enable", "refit": "--refit", "version_compatible": "--versionCompatible",
    "no_new_timings": "--errorOnTimingCacheMiss", "no_compilation_cache": "--noCompilationCache",
}  # fmt: skip
_SAID_FLAGS = {
    "DIRECT_IO": "--directIO", "STRIP_PLAN": "--stripWeights", "EXCLUDE_LEAN_RUNTIME": "--excludeLeanRuntime",
    "GPU_FALLBACK": "--allowGPUFallback", "WEIGHT_STREAMING": "--allowWeightStreaming", "SAFETY_SCOPE": "--restricted",
}  # fmt: skip
_UNSAID = (
    "strict_nans", "debug_sync", "builder_settings", "preview_features", "quantization_flags", "calibration_feeds",
    "load_tactics", "observe",
)  # fmt: skip
"""Options that change the build, and have no words in trtexec, or other ones in every release."""


def trtexec(
    trt: Any, config: Any, model: str, options: Mapping[str, str], used: Mapping[str, Shapes], *, strong: bool
) -> str:
    """Return the command line, with a comment at its end about options that trtexec lacks.

    Args:
        trt: TensorRT's module.
        config: Configuration of the build.
        model: File to name.
        options: Options of the build.
        used: Shape ranges by input.
        strong: Whether the network was strongly typed.
    """
    words: List[str] = ["trtexec", "--onnx=" + model]
    precision = options.get("precision", "tf32")
    if strong:
        words.append("--stronglyTyped")
    elif precision in WEAK:
        words.append("--" + precision)
    words += ["--" + name for name in options.get("fallback", "").split("+") if name]
    if precision == "fp32":
        words.append("--noTF32")
    for place, head in enumerate(("--minShapes=", "--optShapes=", "--maxShapes=")):
        if used:
            words.append(head + ",".join("{}:{}".format(n, "x".join(map(str, v[place]))) for n, v in used.items()))
    words += [head + options[key] for key, head in _PLAIN.items() if options.get(key)]
    if "kept" in options and not strong:
        nodes = json.loads(options["kept"])["nodes"]
        words.append("--precisionConstraints=" + options.get("constraints", "obey"))
        kept = ",".join(node + ":fp32" for node in nodes)
        words += ["--layerPrecisions=" + kept, "--layerOutputTypes=" + kept]
    if "tactic_sources" in options:
        words.append("--tacticSources=" + ",".join(_signed(trt, options["tactic_sources"])))
    if "plugins" in options:
        words += ["--dynamicPlugins=" + path for path in options["plugins"].split("+")]
    words.append("--avgTiming={}".format(int(config.avg_timing_iterations)))
    if options.get("deterministic") == "true":
        words += ["--maxAuxStreams=0"] if hasattr(config, "max_aux_streams") else []
        words += ["--distributiveIndependence"] if member(trt, "BuilderFlag", "DISTRIBUTIVE_INDEPENDENCE") else []
    words += [text for key, text in _SWITCHES.items() if options.get(key) == "true"]
    flags = named(options, "builder_flags")
    words += [_SAID_FLAGS[name] for name in flags if name in _SAID_FLAGS]
    words.append("--profilingVerbosity=detailed")
    unsaid = ["{}={}".format(key, options[key]) for key in _UNSAID if options.get(key)]
    unsaid += [name for name in flags if name not in _SAID_FLAGS]
    if options.get("typing") == "strong" and not strong:
        unsaid.append("the model's types as constraints of every layer")
    missing = ", ".join(" ".join(text.split()) for text in unsaid)
    comment = " # trtexec has no words for: " + missing if unsaid else ""
    return " ".join(_quoted(text) for text in words) + comment


def _signed(trt: Any, words: str) -> List[str]:
    """Return tactic sources with signs: trtexec adds to the default and takes away from it, and knows nothing else."""
    given = [text.strip().upper() for text in words.split("+") if text.strip()]
    if given and all(text.startswith("-") for text in given):
        return given
    mask = tactic_sources(trt, 0, words)
    return [("+" if mask >> int(bit) & 1 else "-") + name for name, bit in enum_members(trt.TacticSource).items()]


def _quoted(text: str) -> str:
    return "'{}'".format(text) if any(letter in text for letter in " '()[]*?;&|<>") else text
