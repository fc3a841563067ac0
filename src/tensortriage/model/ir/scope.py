"""Which module of the original network a node came from.

PyTorch's dynamo exporter writes the module path into the node's metadata; the older exporter and most others write it
into the node's name, as a path. Both become the same form: ``encoder/layer.3``.
"""

import ast
from collections.abc import Mapping

_NAME_SCOPES = "pkg.torch.onnx.name_scopes"
_LONGEST_METADATA = 100_000


def node_scope(name: str, metadata: Mapping[str, str]) -> str:
    """Return the scope of a node, or an empty string when nothing tells.

    Args:
        name: Node name, e.g. ``/encoder/layer.3/MatMul``.
        metadata: The node's metadata_props; ``pkg.torch.onnx.name_scopes`` holds a Python list literal, outermost
            first, each entry the full dotted path of a module, the last one the node itself
            (torch/onnx/_internal/exporter/_core.py).

    Returns:
        The path of the innermost module. Dotted paths are kept as PyTorch writes them, one path step per module:
        ``['', 'encoder', 'encoder.layer.3', 'linear']`` gives ``encoder/layer.3``.
    """
    if scopes := _scopes(metadata.get(_NAME_SCOPES, "")):
        return "/".join(_steps(scopes[:-1]))
    return name.strip("/").rpartition("/")[0]


def _scopes(text: str) -> list[str]:
    if not text.startswith("[") or len(text) > _LONGEST_METADATA:
        return []
    try:
        scopes = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    return [scope for scope in scopes if isinstance(scope, str)] if isinstance(scopes, list) else []


def _steps(paths: list[str]) -> list[str]:
    """Turn nested full paths into the step each adds to the one around it."""
    steps: list[str] = []
    around = ""
    for path in paths:
        if path and path != around:
            steps.append(path.removeprefix(around + ".") if around else path)
            around = path
    return steps
