"""Features of Polygraphy that triage does not offer, each with one sentence on the alternative.

An option of this table is refused by name, never ignored, so that users of existing scripts know which line to change.
"""

from collections.abc import Mapping

from tensortriage.sdk import UsageError

_SPEC = "put it in the engine's spec, e.g. --target tensorrt:precision=fp16,opt_level=3"
_FIRST = "convert first: triage convert MODEL --precision fp16 -o fp16.onnx"
_SCRIPT = "wrap your own builder in a script engine: --target script:FILE.py:CLASS"
_TENSORFLOW = (
    "TensorFlow is not run here",
    "convert the model with tf2onnx and give the ONNX file, or wrap TensorFlow in --target script:FILE.py",
)
_NETWORK = ("the network is used as the ONNX file defines it", f"edit the file (triage surgeon), or {_SCRIPT}")
_PARSER = ("TensorRT's parser is used with its defaults", _SCRIPT)
_BUILDS_FIRST = (
    "inspect model shows the file and builds nothing",
    "triage inspect plan MODEL --target tensorrt:precision=fp16 shows the engine that TensorRT builds",
)
_PICTURE = ("text and JSON only", "draw the file with Netron, or see triage diagnose MODEL's report")
_PLOT = (
    "no plots",
    "histograms and worst elements are in --json, error maps in the report of triage diagnose MODEL",
)
_RUNTIME = ("engines are run in the way TensorRT prefers", _SCRIPT)
_LEGACY = ("only the legacy calibrator reads it, which is not offered", "leave it out: other calibrators ignore it")
_PIECES = (
    "a piece holds its weights, those beyond 1.5 GiB lie next to it",
    "for another layout: triage surgeon sanitize PIECE --save-external-data -o OUT",
)
_NUMBERS = ("the answer is in the weights", "leave it out, or put the external data in place")
_CALL = ("no scripts are written", "call it from Python: from tensortriage.api import compare, CompareRequest")
_SPEED = ("it is for speed, not for accuracy", "use Polygraphy for it; triage run compares the model with the original")
_LPIPS = ("no perceptual metric", "judge by one of your own: triage run --metric FILE.py:FUNCTION")
_EVERYWHERE: Mapping[str, tuple[str, str]] = {
    "--verbosity": ("parts of the package have no levels of their own", "-v, -vv or -q, or --log LEVEL for everything"),
    "--log-format": ("log lines have one form", "leave it out; NO_COLOR=1 turns colours off"),
    "--silent": ("the output of a command is its answer", "redirect it: > /dev/null; errors go to stderr"),
    **dict.fromkeys(
        ("--tf", "--tftrt", "--use-tftrt", "--minimum-segment-size", "--dynamic-op", "--ckpt", "--tf-outputs",
         "--save-pb", "--save-tensorboard", "--freeze-graph", "--gpu-memory-fraction", "--allow-growth", "--xla",
         "--save-timeline"), _TENSORFLOW,
    ),
    **dict.fromkeys(
        ("--trt-config-script", "--trt-config-postprocess-script", "--trt-cpps"),
        ("builder configurations are not made by scripts", f"most of one can be set with flags; else {_SCRIPT}"),
    ),
    **dict.fromkeys(
        ("--tensor-dtypes", "--tensor-datatypes", "--all-tensor-dtypes", "--all-tensor-datatypes", "--tensor-formats",
         "--all-tensor-formats", "--decomposable-attentions", "--trt-network-postprocess-script", "--trt-npps"),
        _NETWORK,
    ),
    **dict.fromkeys(
        ("--onnx-flags", "--plugin-instancenorm", "--enable-uint8-asymmetric-quantization-dla"), _PARSER
    ),
    **dict.fromkeys(
        ("--load-runtime", "--dla-workspace-allocation-strategy", "--allocation-strategy", "--weight-streaming-budget"),
        _RUNTIME,
    ),
    "--optimization-profile": ("an engine gets one profile", "give one set of --trt-min-shapes and the like"),
    "--trt-outputs-by-type": ("tensors are chosen in the ONNX model", "use --onnx-outputs-by-type with ONNX op types"),
    **dict.fromkeys(("--quantile", "--regression-cutoff"), _LEGACY),
    **dict.fromkeys(
        ("--save-heatmaps", "--show-heatmaps", "--save-error-metrics-plot", "--show-error-metrics-plot"), _PLOT
    ),
    **dict.fromkeys(("--lpips-threshold", "--lpips-tolerance"), _LPIPS),
    **dict.fromkeys(("--visual", "--visual-port", "--save-visual"), _PICTURE),
    "--fp-to-fp16": ("the model is used as it is", _FIRST),
    "--ignore-external-data": _NUMBERS,
    **dict.fromkeys(
        ("--save-external-data", "--external-data-path", "--external-data-size-threshold",
         "--no-save-all-tensors-to-one-file"), _PIECES,
    ),
    "--combine-tensor-info": ("tensor statistics are not joined to an engine's layers",
                              "triage diagnose MODEL --target SPEC reports errors and ranges per layer"),
}  # fmt: skip
_BY_COMMAND: Mapping[tuple[str, str], tuple[str, str]] = {
    ("run", "--opset"): _TENSORFLOW,
    **{
        ("inspect model", name): _BUILDS_FIRST
        for name in (
            "--convert-to", "--display-as", "--plugins", "--layer-precisions", "--strongly-typed", "--mark-debug",
            "--mark-unfused-tensors-as-debug-tensors", "--save-timing-cache", "--load-runtime",
            "--dla-workspace-allocation-strategy", *(
                name for name, why in _EVERYWHERE.items() if why in (_NETWORK, _PARSER)
            ),
        )
    },
    **{
        ("debug precision", name): ("its engines are described by a spec alone", _SPEC)
        for name in (
            "--trt-min-shapes", "--trt-opt-shapes", "--trt-max-shapes", "--tf32", "--precision-constraints",
            "--plugins", "--sparse-weights", "--version-compatible", "--exclude-lean-runtime", "--calibration-cache",
            "--quantile",
            "--calib-base-cls", "--calibration-base-class", "--regression-cutoff", "--load-timing-cache",
            "--save-timing-cache", "--error-on-timing-cache-miss", "--disable-compilation-cache", "--save-tactics",
            "--save-tactic-replay", "--load-tactics", "--load-tactic-replay", "--tactic-sources", "--refittable",
            "--trt-safety-restricted", "--strip-plan", "--use-dla", "--allow-gpu-fallback", "--pool-limit",
            "--memory-pool-limit", "--preview-features", "--builder-optimization-level", "--layer-precisions",
            "--hardware-compatibility-level", "--max-aux-streams", "--quantization-flags", "--profiling-verbosity",
            "--weight-streaming", "--runtime-platform", "--direct-io", "--tiling-optimization-level", "--mark-debug",
            "--strongly-typed", "--mark-unfused-tensors-as-debug-tensors", "--trt-outputs", "--trt-exclude-outputs",
        )
    },
    ("run", "--gen-script"): _CALL,
    ("run", "--gen"): _CALL,
    **{
        (command, name): ("builds are judged by their outputs as they are", "mark outputs in the file: triage convert")
        for command in ("debug build", "convert")
        for name in ("--trt-outputs", "--trt-exclude-outputs", "--mark-debug")
    },
}  # fmt: skip
_COMMANDS: Mapping[str, tuple[str, str]] = {
    "plugin": ("no plugins are put into models", "edit with onnx_graphsurgeon; triage surgeon insert adds one node"),
    "template": (
        "no scripts are written",
        f"edit models with onnx_ir or onnx_graphsurgeon; for networks and configurations of your own, {_SCRIPT}",
    ),
    "capability": (
        "models are not divided among engines here",
        "triage check lint MODEL --target SPEC names the nodes that an engine refuses; for pieces use Polygraphy",
    ),
    "prune": _SPEED,
    "sparsity": _SPEED,
    "weight-strip": (
        "weights stay where they are",
        "triage debug reduce MODEL -o small.onnx replaces them with random weights where it still fails",
    ),
    "weight-reconstruct": ("no numbers are made up for weights", "give the original model, or use Polygraphy for it"),
    "multi-device": ("models are not divided among devices here", "use Polygraphy for it; accuracy is compared after"),
    "shard-hints": ("models are not divided among devices here", "use Polygraphy for it; accuracy is compared after"),
    "autotune": ("nothing is tuned for speed here", "use Polygraphy for it; triage run compares its files"),
}


def refused(command: str, word: str) -> UsageError | None:
    """Return the error for a word that Polygraphy knows and we do not; see `tensortriage.refusals`.

    Args:
        command: The words of the command, with or without ``polygraphy``.
        word: An option, or a word that names no command.
    """
    return refusal(command.removeprefix("polygraphy").strip(), word) if word.startswith("-") else refused_command(word)


def refusal(command: str, option: str) -> UsageError | None:
    """Return the error for an option that Polygraphy's command has; None for words that mean nothing to it either.

    Args:
        command: Words of the command, e.g. ``debug reduce``.
        option: The option, without a value.
    """
    found = _BY_COMMAND.get((command, option)) or _EVERYWHERE.get(option)
    return None if found is None else _error(f"{option} of Polygraphy is not offered by {command}", *found)


def refused_command(word: str) -> UsageError | None:
    """Return the error for a command of Polygraphy that does not exist here; None for any other word."""
    found = _COMMANDS.get(word)
    return None if found is None else _error(f"{word} of Polygraphy is not offered", *found)


def _error(what: str, reason: str, cure: str) -> UsageError:
    return UsageError(f"{what}: {reason}", slug="option-not-offered", cure=cure)
