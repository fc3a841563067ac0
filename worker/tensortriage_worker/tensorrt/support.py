"""Which nodes of a model TensorRT's parser supports, and what it has against the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

from tensortriage_worker.tensorrt.library import support_query
from tensortriage_worker.tensorrt.network import Parsed, problems


def support(trt: Any, builder: Any, logger: Any, model: Path) -> Dict[str, Any]:
    """Ask the parser about a model.

    Returns:
        ``supported``: whether it takes all of it. ``groups``: runs of nodes, each with ``nodes`` (indices) and
        ``supported``. ``problems``: see `tensortriage_worker.tensorrt.network.Problem`.
    """
    parsed = Parsed(trt, builder, logger, strong=True)
    query = support_query(trt)
    groups: List[Dict[str, Any]] = []
    if query == "supports_model_v2":
        supported = bool(parsed.parser.supports_model_v2(model.read_bytes(), str(model)))
        for index in range(int(parsed.parser.num_subgraphs)):
            nodes = [int(node) for node in parsed.parser.get_subgraph_nodes(index)]
            groups.append({"nodes": nodes, "supported": bool(parsed.parser.is_subgraph_supported(index))})
    elif query:
        supported, told = parsed.parser.supports_model(model.read_bytes(), str(model))
        groups = [{"nodes": [int(node) for node in nodes], "supported": bool(good)} for nodes, good in told]
    else:
        supported = bool(parsed.parser.parse_from_file(str(model)))
    return {"supported": bool(supported), "groups": groups, "problems": problems(parsed.parser)}
