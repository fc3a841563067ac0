"""Colours for a common graph viewer: node data for Model Explorer, instead of a viewer of our own.

The file is a `GraphNodeData` object (github.com/google-ai-edge/model-explorer, ``node_data_builder.py``): results keyed
by node, thresholds with background colours. The ONNX adapter for Model Explorer uses the ONNX node name as node id, so
the results are keyed by node name. The value is the excess error in dB: how far the tensor's error in the target's own
run lies above its noise floor; without a floor, above -120 dB, a little more than the resolution of float32.
"""

import math

from tensortriage.diagnose.state.layer_rows import LayerRow
from tensortriage.report.document import Report
from tensortriage.values.serial import to_json

NO_FLOOR_ERROR = 1e-6
"""Relative RMS error that stands for a missing floor of a tensor: -120 dB, about 16 x half an ulp of float32."""

NONFINITE_DECIBEL = 1000.0
"""Value shown for NaN and Inf, which the viewer's numbers cannot hold; beyond any real excess."""

# Cividis, light to dark: even in lightness, so it reads the same with any colour vision (Nuñez et al. 2018).
_BANDS = (
    (0.0, "#fee838", "#000000"),
    (6.0, "#d8c55f", "#000000"),
    (12.0, "#b3a772", "#000000"),
    (20.0, "#8e8978", "#000000"),
    (40.0, "#6a6c71", "#ffffff"),
    (60.0, "#434e6c", "#ffffff"),
    (NONFINITE_DECIBEL, "#00224e", "#ffffff"),
)


def render(report: Report) -> str:
    """Return node data for Model Explorer (*Upload node data* or ``--node_data_paths``), one value per node."""
    excesss: dict[str, float] = {}
    for row in report.layers.rows:
        excess = _excess_decibel(row)
        if excess is not None:
            excesss[row.node] = max(excess, excesss.get(row.node, -math.inf))
    return (
        to_json(
            {
                "results": {node: {"value": round(excess, 2)} for node, excess in excesss.items()},
                "thresholds": [{"value": v, "bgColor": bg, "textColor": text} for v, bg, text in _BANDS],
            }
        )
        + "\n"
    )


def _excess_decibel(row: LayerRow) -> float | None:
    """Return 20 log10(error / floor), at most `NONFINITE_DECIBEL`; None when the tensor was not compared."""
    error = row.in_context_error if row.in_context_error is not None else row.local_error
    if row.nonfinite_target or (error is not None and not math.isfinite(error)):
        return NONFINITE_DECIBEL
    if error is None:
        return None
    floor = row.floor if row.in_context_error is not None else row.local_floor
    if floor is None or not math.isfinite(floor) or floor <= 0:
        floor = NO_FLOOR_ERROR
    return 20 * math.log10(error / floor) if error > 0 else -NONFINITE_DECIBEL
