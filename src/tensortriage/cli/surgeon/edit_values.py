"""What click hands the commands that write models, as in `tensortriage.cli.option_values`."""

from pathlib import Path
from typing import TypedDict

from tensortriage.cli.option_values import LayoutValues, MadeUpValues, OutputValues, TensorrtValues


class FileValues(LayoutValues):
    """The model that is edited and the one that is written: `tensortriage.cli.surgeon.options.file_options`."""

    output: Path
    external_data_dir: Path | None
    ignore_external_data: bool


class EditValues(FileValues, MadeUpValues):
    """``triage surgeon prune``; and what every edit has that is verified on feeds."""

    verify: bool | None
    feeds: tuple[str, ...]


class QuantizeValues(TypedDict):
    """How a model is quantized: `tensortriage.cli.convert.quantize_options`."""

    metric_script: str
    metric_min: float | None
    sqnr: float | None
    holdout: tuple[str, ...]
    float_weights: bool
    per_tensor: bool
    reduce_range: bool
    percentile: float
    modelopt_python: str
    calibrate: str


class ConvertValues(EditValues, OutputValues, QuantizeValues, TensorrtValues):
    """``triage convert``."""

    precision: str
    to_fp16: bool
    keep_nodes: tuple[str, ...]
    keep_op_types: tuple[str, ...]
    keep_scopes: tuple[str, ...]
    convert_io_types: bool
    opset: int | None
    embed_weights: bool
    convert_to: str | None
    infer_shapes: bool
    input_shapes: tuple[str, ...]
    mixed: tuple[str, ...]


class ExtractValues(EditValues):
    """``triage surgeon extract``."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[str, ...]
    ranges: tuple[tuple[str, str], ...]
    op_types: tuple[str, ...]
    scopes: tuple[str, ...]
    body: str
    with_inputs: tuple[str, ...]
    input_shapes: tuple[str, ...]
    infer_shapes: bool
    run_for_shapes: bool


class InsertValues(EditValues):
    """``triage surgeon insert``."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    name: str
    attrs: tuple[str, ...]
    infer_shapes: bool


class FoldValues(TypedDict):
    """How constants are folded, a part of ``triage surgeon sanitize``."""

    fold: bool
    fold_size_threshold: str
    passes: int | None
    no_fold_shapes: bool
    no_per_pass_shape_inference: bool
    no_shape_inference: bool


class SanitizeValues(EditValues, OutputValues, FoldValues):
    """``triage surgeon sanitize``."""

    override: tuple[str, ...]
    cleanup: bool
    bounds: tuple[str, ...]
    to_fp16: bool
    run_for_shapes: bool
    input_shapes: tuple[str, ...]


class StripValues(FileValues):
    """``triage surgeon weight-strip``."""

    exclude_list: Path | None


class ReconstructValues(FileValues):
    """``triage surgeon weight-reconstruct``."""

    seed: int
    verify: bool | None


class PluginValues(TypedDict):
    """The model and the plugins, of ``triage plugin``."""

    plugin_dir: Path
    external_data_dir: Path | None
    infer_shapes: bool


class PluginChoiceValues(PluginValues):
    """``triage plugin list``."""

    include: tuple[str, ...]
    exclude: tuple[str, ...]


class PluginMatchValues(PluginChoiceValues):
    """``triage plugin match``."""

    output: Path | None


class PluginReplaceValues(PluginValues):
    """``triage plugin replace``."""

    config: Path | None
    output: Path | None
