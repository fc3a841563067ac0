"""What click hands a command: the names of its options and what each holds, a table per command, checked by mypy.

A command is declared with ``**given: Unpack[...Values]``; what makes a request of its options takes the same table, or
the part that it needs. That the tables name the options that are declared, no more and no fewer, is a test.
"""

from pathlib import Path
from typing import TypedDict


class LogValues(TypedDict):
    """The logging options of a command line, as far as it is read: `tensortriage.cli.logs.options`."""

    more: int
    less: int
    named: tuple[str, ...]
    silent: bool
    formats: tuple[str, ...]
    plain: bool
    file: Path | None


class MadeUpValues(TypedDict):
    """How data are made when no file holds them: `tensortriage.cli.options.made_up_options`."""

    seed: int | None
    val_range: tuple[str, ...]
    iterations: int | None
    data_loader_script: str


class DataValues(MadeUpValues):
    """Where feeds come from: `tensortriage.cli.options.data_options`."""

    inputs: tuple[str, ...]
    input_shapes: tuple[str, ...]


class LimitValues(TypedDict):
    """What bounds engines: `tensortriage.cli.options.limit_options`."""

    timeout: float | None
    memory_limit: str


class ToleranceValues(TypedDict):
    """The user's own tolerances: `tensortriage.cli.options.tolerance_options`."""

    atol: tuple[str, ...]
    rtol: tuple[str, ...]


class JudgementValues(ToleranceValues):
    """By what saved or fresh outputs are judged: ``triage check accuracy``, and a part of ``triage run``."""

    functions: tuple[str, ...]
    error_stat: tuple[str, ...]
    error_quantile: tuple[str, ...]
    l2: tuple[str, ...]
    cosine: tuple[str, ...]
    psnr: tuple[str, ...]
    snr: tuple[str, ...]
    index_tolerance: tuple[str, ...]
    infinities_compare_equal: bool
    check_average: bool
    compare_func_script: str


class OutputValues(TypedDict):
    """Which tensors become outputs."""

    mark: tuple[str, ...]
    exclude: tuple[str, ...]
    by_type: tuple[str, ...]


class LayoutValues(TypedDict):
    """Where the weights of a written model go: `tensortriage.cli.surgeon.options.layout_options`."""

    external_location: str | None
    external_threshold: str
    apart: bool


class TensorrtValues(TypedDict):
    """Polygraphy's flags for TensorRT: `tensortriage.cli.tensorrt_options.tensorrt_flags`."""

    fp16: bool
    bf16: bool
    fp8: bool
    int8: bool
    tf32: bool
    strongly_typed: bool
    sparse_weights: bool
    version_compatible: bool
    refittable: bool
    error_on_timing_cache_miss: bool
    disable_compilation_cache: bool
    mark_unfused_tensors_as_debug_tensors: bool
    exclude_lean_runtime: bool
    strip_plan: bool
    direct_io: bool
    trt_safety_restricted: bool
    use_dla: bool
    allow_gpu_fallback: bool
    weight_streaming: bool
    trt_min_shapes: tuple[str, ...]
    trt_opt_shapes: tuple[str, ...]
    trt_max_shapes: tuple[str, ...]
    layer_precisions: tuple[str, ...]
    tactic_sources: tuple[str, ...]
    preview_features: tuple[str, ...]
    quantization_flags: tuple[str, ...]
    plugins: tuple[str, ...]
    pool_limit: tuple[str, ...]
    precision_constraints: str | None
    builder_optimization_level: int | None
    save_engine: Path | None
    load_timing_cache: Path | None
    save_timing_cache: Path | None
    save_tactics: Path | None
    load_tactics: Path | None
    calibration_cache: Path | None
    calibrator: str | None
    max_aux_streams: int | None
    hardware_compatibility_level: str
    profiling_verbosity: str
    runtime_platform: str
    tiling_optimization_level: str
    engine_capability: str


class CheckValues(TypedDict):
    """A command as the judge: `tensortriage.cli.debug.check_options`."""

    fail_code: tuple[str, ...]
    ignore_fail_code: tuple[str, ...]
    fail_regex: tuple[str, ...]
    ignore_fail_regex: tuple[str, ...]
    check_timeout: float | None
    show_output: bool
    hide_fail_output: bool
    artifacts: tuple[str, ...]
    artifacts_dir: Path
    iteration_info: Path | None
    save_debug_replay: Path | None
    load_debug_replay: Path | None


class ArtifactValues(TypedDict):
    """The file that a check judges: `tensortriage.cli.debug.check_options.artifact_options`."""

    iter_artifact: Path
    no_remove_intermediate: bool


class DiagnoseValues(DataValues, LimitValues, ToleranceValues):
    """``triage diagnose``."""

    reference: str
    against: str
    target_model: Path | None
    torch: str
    exporter: str
    external_data_dir: Path | None
    samples: int
    sweep: tuple[str, ...]
    no_random_data: bool
    case: Path
    emit_breakers: Path | None
    builds: int | None
    fix: Path | None
    no_repro: bool
    budget: float | None
    low_memory: bool
    cluster: str


class PrecisionValues(DataValues, LimitValues, ToleranceValues, CheckValues, ArtifactValues):
    """``triage debug precision``."""

    output: Path | None
    case: Path
    latency: bool
    remedies: bool
    target: str
    reference: str
    low: str | None
    higher: str
    sqnr: float | None
    floor_factor: float | None
    metric: str
    metric_min: float | None
    samples: int
    mode: str
    direction: str
    max_builds: int
    budget: float
    cluster: str
    external_data_dir: Path | None


class ReduceValues(DataValues, LimitValues, ToleranceValues, CheckValues, ArtifactValues):
    """``triage debug reduce``."""

    output: Path | None
    min_good: Path | None
    case: Path
    target: str
    reference: str
    samples: int
    shrink_budget: float | None
    mode: str
    no_reduce_inputs: bool
    no_reduce_outputs: bool
    jobs: int
    cluster: str
    premise: int
    max_checks: int | None
    budget: float | None
    model_input_shapes: tuple[str, ...]
    force_fallback_shape_inference: bool
    no_shape_inference: bool
    external_data_dir: Path | None


class BuildValues(DataValues, LimitValues, ToleranceValues, CheckValues, ArtifactValues, TensorrtValues):
    """``triage debug build``."""

    reference: str
    samples: int
    external_data_dir: Path | None
    until: str
    rate: float
    max_builds: int
    budget: float | None
    no_tactics: bool
    no_pin: bool
    cluster: str
    output: Path | None
    case: Path


class RepeatValues(CheckValues):
    """``triage debug repeat``."""

    until: str
    width: float
    max_runs: int
    budget: float | None


class BatchValues(TypedDict):
    """``triage batch``."""

    case: Path
    jobs: int
    cluster: str
    timeout: float | None
    memory_limit: str
    junit: Path | None


class OnnxRuntimeValues(TypedDict):
    """Polygraphy's flags for ONNX Runtime."""

    providers: tuple[str, ...]
    graph_optimization_level: str


class LintValues(DataValues, LimitValues, OnnxRuntimeValues):
    """``triage check lint``."""

    target: str | None
    no_engine: bool
    precisions: tuple[str, ...]
    external_data_dir: Path | None


class ConsistencyValues(DataValues, LimitValues):
    """``triage check consistency``."""

    no_streams: bool
    rows: int | None
    batch_dimension: str
    external_data_dir: Path | None


class StepsValues(DataValues, LimitValues):
    """``triage steps``."""

    reference: str
    external_data_dir: Path | None
    steps: int | None
    carry: tuple[str, ...]
    between: str
    logits: str
    free_running: bool
    self_check: bool
    no_drift: bool
    no_diagnosis: bool
    case: Path


class RunValues(
    DataValues, LimitValues, JudgementValues, OutputValues, LayoutValues, OnnxRuntimeValues, TensorrtValues
):
    """``triage run``."""

    targets: tuple[str, ...]
    reference: str | None
    target_model: Path | None
    runners: tuple[str, ...]
    external_data_dir: Path | None
    infer_shapes: bool
    to_fp16: bool
    save_onnx: Path | None
    metric_script: str
    validate: bool
    postprocess: tuple[str, ...]
    postprocess_func_script: str
    no_shape_check: bool
    fail_fast: bool
    warm_up: int
    low_memory: bool
    save_inputs: Path | None
    save_worst: Path | None
    save_outputs: Path | None
    save_input_blob: Path | None
    load_outputs: tuple[Path, ...]
    gen_script: Path | None
    save_accuracy_results: Path | None
    trt_outputs: tuple[str, ...]
    trt_exclude_outputs: tuple[str, ...]
    mark_debug: tuple[str, ...]


class TemplateValues(DataValues, TensorrtValues):
    """``triage template trt-config``."""
