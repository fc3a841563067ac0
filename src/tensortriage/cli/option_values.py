"""What click hands a command: the names of its options and what each holds, a table per command, checked by mypy.

A command is declared with ``**given: Unpack[...Values]``; what makes a request of its options takes the same table, or
the part that it needs. That the tables name the options that are declared, no more and no fewer, is a test.
"""

from pathlib import Path
from typing import TypedDict


class DataValues(TypedDict):
    """Where feeds come from: `tensortriage.cli.options.data_options`."""

    inputs: tuple[str, ...]
    input_shapes: tuple[str, ...]
    seed: int | None
    val_range: tuple[str, ...]
    iterations: int | None
    data_loader_script: str


class LimitValues(TypedDict):
    """What bounds engines: `tensortriage.cli.options.limit_options`."""

    timeout: float | None
    memory_limit: str


class ToleranceValues(TypedDict):
    """The user's own tolerances: `tensortriage.cli.options.tolerance_options`."""

    atol: tuple[str, ...]
    rtol: tuple[str, ...]


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
    premise: int
    max_checks: int | None
    budget: float | None
    model_input_shapes: tuple[str, ...]
    force_fallback_shape_inference: bool
    no_shape_inference: bool
    external_data_dir: Path | None


class BuildValues(DataValues, LimitValues, ToleranceValues, CheckValues, ArtifactValues):
    """``triage debug build``, without the flags of TensorRT, which `tensorrt_options` reads."""

    reference: str
    samples: int
    external_data_dir: Path | None
    until: str
    rate: float
    max_builds: int
    budget: float | None
    no_tactics: bool
    no_pin: bool
    output: Path | None
    case: Path
    save_tactics: Path | None
    load_tactics: Path | None


class RepeatValues(CheckValues):
    """``triage debug repeat``."""

    until: str
    width: float
    max_runs: int
    budget: float | None


class LintValues(DataValues, LimitValues):
    """``triage check lint``."""

    target: str | None
    no_engine: bool
    providers: tuple[str, ...]
    graph_optimization_level: str
    precisions: tuple[str, ...]
    external_data_dir: Path | None


class ConsistencyValues(DataValues, LimitValues):
    """``triage check consistency``."""

    no_streams: bool
    rows: int | None
    batch_dimension: str
    external_data_dir: Path | None
