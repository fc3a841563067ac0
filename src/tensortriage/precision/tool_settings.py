"""The same choice of nodes as settings of other tools, ready to be pasted."""

import json
import re
from collections.abc import Collection, Mapping

from tensortriage.model.ir.graph import Graph
from tensortriage.values.dtype import Precision

_TRT = {Precision.FP16: "--fp16", Precision.BF16: "--bf16", Precision.INT8: "--int8"}
_TRT_FP8 = "--fp8"


def settings_for(graph: Graph, kept: Collection[str], precision: Precision) -> Mapping[str, str]:
    """Return the settings of each tool that keep these nodes in fp32.

    - ``tensorrt``: trtexec of TensorRT 10 and before. Layers have the names of ONNX nodes; TensorRT 11 takes the typed
      model instead.
    - ``onnxconverter-common``: arguments of ``convert_float_to_float16``. ``op_block_list`` has the operators whose
    nodes are all kept: such lists need no names of nodes.
    - ``modelopt``: options of ``python -m modelopt.onnx.autocast``, which takes regular expressions.
    - ``openvino``: the property that makes the device follow the types of the written model.
    - ``triage``: the options of ``triage convert``.

    Args:
        graph: The model's graph.
        kept: Names of the nodes.
        precision: Format of all others.
    """
    names = [node.name for node in graph.nodes if node.name in set(kept)]
    types = _whole_types(graph, names)
    layers = ",".join(f"{name}:fp32" for name in names)
    flag = _TRT.get(precision, _TRT_FP8)
    expressions = [f"^{re.escape(name)}$" for name in names]
    return {
        "tensorrt": f"{flag} --precisionConstraints=obey --layerPrecisions={layers}" if names else flag,
        "onnxconverter-common": json.dumps({"node_block_list": names, "op_block_list": types}),
        "modelopt": f"--low_precision_type {precision.value}"
        + (" --nodes_to_exclude " + " ".join(expressions) if names else ""),
        "openvino": json.dumps({"INFERENCE_PRECISION_HINT": "dynamic"}),
        "triage": f"--precision {precision.value}" + (" --keep-nodes " + " ".join(names) if names else ""),
    }


def _whole_types(graph: Graph, names: Collection[str]) -> list[str]:
    """Return the operators whose nodes are all among some."""
    kept = set(names)
    all_kept: dict[str, bool] = {}
    for node in graph.nodes:
        all_kept[node.op_type] = all_kept.get(node.op_type, True) and node.name in kept
    return sorted(op_type for op_type, whole in all_kept.items() if whole)
