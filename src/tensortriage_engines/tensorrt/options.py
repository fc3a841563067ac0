"""The options of the engine ``tensorrt``: their meaning, and their checked form for the adapter."""

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tensortriage.engines.sdk import WORKER_OPTION, Options, Precision, UsageError
from tensortriage_engines.tensorrt.worker.config import SETTINGS

MIXED = "mixed"
AUTO = "auto"
PRECISIONS = (Precision.FP32, Precision.TF32, Precision.FP16, Precision.BF16, Precision.FP8E4M3, Precision.INT8)
WORDS = {Precision.FP8E4M3: "fp8"}
"""The adapter's names of precisions, where they differ from ours."""
OPTIONS: Mapping[str, str] = {
    "precision": "fp32, tf32, fp16, bf16, fp8, int8 or mixed (as typed); default: mixed for a typed model, else tf32",
    "kept": "nodes that compute in float32, joined with +",
    "fallback": "further weak formats that layers may use, joined with +, e.g. fp16 with precision=int8",
    "typing": "weak or strong: how a format is reached (default: weak flags where the release has them)",
    "constraints": "obey or prefer the float32 of kept nodes (default obey)",
    "opt_level": "builder optimization level, 0 to 5",
    "strict_nans": "true: no rewriting that would hide a NaN",
    "workspace": "largest scratch memory of a tactic, in MB",
    "profile.KEY": "shapes of dynamic input KEY, MIN:OPT:MAX, e.g. profile.x=1x3x224x224:4x3x224x224:8x3x224x224 "
    "(default: the shapes of the feed)",
    "timing_cache": "file of a timing cache: read if it exists, written after the build",
    "load_timing_cache": "file of a timing cache that is read only",
    "no_new_timings": "true: a tactic that the timing cache does not know is an error (10 and later)",
    "no_compilation_cache": "true: no compiled code in the timing cache",
    "editable": "true: an editable timing cache (10.8 and later)",
    "build_route": "knobs of the compiler (11.1 and later), e.g. -kgen:codegen:cuda_tile=2",
    "tactic_sources": "only these, joined with +, or with a minus the default without them: -CUDNN; or none",
    "builder_flags": "further flags of the builder by TensorRT's names, joined with +, e.g. DIRECT_IO+STRIP_PLAN",
    "builder_settings": "SETTING:VALUE by TensorRT's names, joined with +, e.g. engine_capability:SAFETY",
    "preview_features": "preview features to use, joined with +, no other; none",
    "quantization_flags": "quantization flags, joined with +; none",
    "plugins": "plugin libraries, joined with +",
    "debug_sync": "true: wait after every layer, so that a fault shows where it happens",
    "deterministic": "true: one stream, tactics timed more often, rows of a batch independent of each other where the "
    "release can",
    "avg_timing": "how often a tactic is timed (default 1)",
    "max_aux_streams": "largest number of streams in addition to the first",
    "sparse": "true: sparse weights",
    "refit": "true: weights can be replaced",
    "version_compatible": "true: load engines that carry host code, and save plugins with them",
    "calibration_cache": "INT8 scales to use (8.5 to 10)",
    "calibration_feeds": "safetensors file of feeds to calibrate INT8 with (8.5 to 10), tensors named NUMBER/INPUT",
    "calibrator": "entropy2, entropy or minmax (default entropy2)",
    "save_calibration": "file to write the new INT8 scales to",
    "save_engine": "file to write the engine to",
    "load_engine": "engine file to run instead of building one",
    "record_tactics": "true: the session reports the tactic of every layer",
    "save_tactics": "file to write the tactic of every layer to",
    "load_tactics": "file of tactics for layers to use",
    "observe": "unfused or debug: marks inner tensors for TensorRT's debug listener (10 and later)",
    "library": "tensorrt or tensorrt_rtx (default: the first that can be imported)",
    "device": "index of the CUDA device (default 0)",
    "worker": WORKER_OPTION,
}
FILES = ("timing_cache", "load_engine", "load_tactics", "calibration_cache", "calibration_feeds")
"""Options of the adapter whose values are files that it reads."""
WRITTEN = ("save_engine", "save_calibration", "save_tactics", "timing_cache")
_TEXTS = ("build_route", "tactic_sources", "worker", "builder_flags", "preview_features", "quantization_flags")
_FLAGS = (
    "strict_nans", "editable", "deterministic", "sparse", "refit", "version_compatible", "record_tactics",
    "no_new_timings", "no_compilation_cache", "debug_sync",
)  # fmt: skip
_NUMBERS = {"workspace": 1, "avg_timing": 1, "device": 0, "opt_level": 0, "max_aux_streams": 0}
_WEAK = ("fp16", "bf16", "fp8", "int8")
_LISTS = {"typing": ("weak", "strong"), "constraints": ("obey", "prefer"), "observe": ("unfused", "debug"),
          "calibrator": ("entropy2", "entropy", "minmax"), "library": ("tensorrt", "tensorrt_rtx")}  # fmt: skip
_HIGHEST_LEVEL = 5
_RANGE = re.compile(r"-?\d{1,18}(x-?\d{1,18})*(:-?\d{1,18}(x-?\d{1,18})*){0,2}|:?")
Range = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


@dataclasses.dataclass(frozen=True, slots=True)
class BuildSettings:
    """The settings of a build.

    Attributes:
        precision: A precision word of the adapter, ``mixed``, or ``auto`` when none was given.
        kept: Nodes that stay in float32.
        typing: ``weak``, ``strong``, or empty for the release's default.
        ranges: Shape ranges by input.
        save: Files to write after the build, by option.
        words: Everything that the adapter understands as it is.
    """

    precision: str
    kept: tuple[str, ...]
    typing: str
    ranges: Mapping[str, Range]
    save: Mapping[str, Path]
    words: Mapping[str, str]


def read_settings(given: Options) -> BuildSettings:
    """Return the settings of options, checked.

    Raises:
        UsageError: For a value that is not understood, or files that do not exist.
    """
    words = {key: given.text(key) for key in _TEXTS if key in given}
    words |= {key: "true" for key in _FLAGS if given.boolean(key, default=False)}
    if "save_tactics" in given:
        words["record_tactics"] = "true"
    words |= {key: str(given.integer(key, 0, minimum=least)) for key, least in _NUMBERS.items() if key in given}
    words |= {key: given.word(key, choices) for key, choices in _LISTS.items() if key in given and key != "typing"}
    if int(words.get("opt_level", "0")) > _HIGHEST_LEVEL:
        raise _bad("opt_level", words["opt_level"], f"a whole number from 0 to {_HIGHEST_LEVEL}")
    if "builder_settings" in given:
        words["builder_settings"] = "+".join(map(_setting, given.words("builder_settings")))
    if "fallback" in given:
        words["fallback"] = "+".join(_weak_word(word) for word in given.words("fallback"))
    if "plugins" in given:
        words["plugins"] = "+".join(str(_existing("plugins", path)) for path in given.words("plugins"))
    for key in FILES[1:]:
        if key in given:
            words[key] = str(_existing(key, given.text(key)))
    cache = given.text("load_timing_cache") or given.text("timing_cache")
    if cache:
        path = Path(cache).expanduser().absolute()
        words["timing_cache"] = str(path) if path.is_file() else ""
    return BuildSettings(
        precision=_precision(given),
        kept=given.words("kept"),
        typing=given.word("typing", _LISTS["typing"]) if "typing" in given else "",
        ranges={name: parse_range(name, text) for name, text in given.family("profile").items()},
        save={key: Path(given.text(key)).expanduser().absolute() for key in WRITTEN if key in given},
        words=words,
    )


def ladder(options: Mapping[str, str], *, levels: bool = True) -> list[tuple[str, Mapping[str, str]]]:
    """Return levels from fp32 without optimizations to the options given, with the words for the settings of each.

    A typed model keeps its types (``precision=mixed``), and a loaded engine has one level.

    Args:
        options: Those given.
        levels: Whether the release has levels of optimization.
    """
    given = ("as given", dict(options))
    if "load_engine" in options:
        return [given]
    lowest = ("opt_level=0", {**options, "opt_level": "0"})
    if options.get("precision", "").strip().lower() == MIXED:
        return [lowest, given] if levels else [given]
    wide = {**options, "precision": Precision.FP32.value}
    safest: tuple[str, Mapping[str, str]] = ("precision=fp32, opt_level=0", {**wide, "opt_level": "0"})
    rungs = [safest, ("precision=fp32", wide), lowest] if levels else [("precision=fp32", wide)]
    once = {tuple(sorted(rung[1].items())): rung for rung in reversed(rungs) if rung[1] != given[1]}
    return [*reversed(once.values()), given]


def kept_words(nodes: Iterable[str], values: Mapping[str, str]) -> str:
    """Return the nodes to keep, and the node that makes each value, for the adapter."""
    return json.dumps({"nodes": list(nodes), "values": dict(values)})


def range_words(ranges: Mapping[str, Range]) -> dict[str, str]:
    """Return shape ranges as options of the adapter."""
    return {f"profile.{name}": ":".join("x".join(map(str, part)) for part in parts) for name, parts in ranges.items()}


def parse_range(name: str, text: str) -> Range:
    """Return min, opt and max of ``1x3:4x3:8x3`` (or of one shape for all three).

    Raises:
        UsageError: For another form (slug ``engine-option-value``).
    """
    if not _RANGE.fullmatch(text.strip()):
        raise _bad(f"profile.{name}", text, "MIN:OPT:MAX, each like 1x3x224x224")
    parts = [tuple(int(size) for size in part.split("x") if size) for part in text.strip().split(":")]
    found = (parts[0], parts[len(parts) // 2], parts[-1])
    if len(set(map(len, found))) > 1 or any(list(sizes) != sorted(sizes) for sizes in zip(*found, strict=True)):
        raise _bad(f"profile.{name}", text, "three shapes of one rank, the smallest first")
    return found


def _precision(given: Options) -> str:
    if "precision" not in given:
        return AUTO
    word = given.text("precision").strip().lower()
    if word in (MIXED, AUTO):
        return word
    precision = given.precision("precision", PRECISIONS)
    return WORDS.get(precision, precision.value)


def _weak_word(word: str) -> str:
    precision = Precision.parse(word)
    found = WORDS.get(precision, precision.value)
    if found not in _WEAK:
        raise _bad("fallback", word, "one or more of " + ", ".join(_WEAK) + ", joined with +")
    return found


def _setting(text: str) -> str:
    name, colon, value = text.partition(":")
    if not colon or not value or name.lower() not in SETTINGS:
        raise _bad("builder_settings", text, "SETTING:VALUE, the setting one of " + ", ".join(SETTINGS))
    return text


def _existing(key: str, text: str) -> Path:
    path = Path(text).expanduser().absolute()
    if not path.is_file():
        raise UsageError(f"{key}={text} does not exist", slug="engine-option-file", cure="give the path of a file")
    return path


def _bad(key: str, value: str, wanted: str) -> UsageError:
    return UsageError(f"option {key}={value} is not understood", slug="engine-option-value", cure=f"give {wanted}")
