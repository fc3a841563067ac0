"""PyTorch's own settings of arithmetic, once the user's file has run: the formats of products."""

from __future__ import annotations

import os
from typing import Any

_OFF = {"0", "false", "off"}


def computes_in(torch: Any, module: Any, device: str) -> str:
    """Return the precision word of a float32 network's products: fp32, tf32, fp16 or bf16.

    cuDNN uses TF32 for convolutions and recurrent layers by PyTorch's default; matrix products do so where their
    precision is ``high`` or ``medium``. On other devices than CUDA's neither counts. Autocast outside of the network
    counts everywhere.

    Args:
        torch: PyTorch.
        module: The network.
        device: Its device, ``cuda:0`` or the like; empty for the CPU.
    """
    kind = (device or "cpu").partition(":")[0]
    if narrow := _autocast(torch, kind):
        return narrow
    if kind != "cuda" or os.environ.get("NVIDIA_TF32_OVERRIDE", "").lower() in _OFF:
        return "fp32"
    by_cudnn = _cudnn_allows(torch) and _has_layers_of_cudnn(torch, module)
    return "tf32" if by_cudnn or _products_allow(torch) else "fp32"


def _autocast(torch: Any, kind: str) -> str:
    """Return the format of autocast where it is on for a kind of device; empty where it is not."""
    try:
        if not torch.is_autocast_enabled(kind):
            return ""
        return {"torch.float16": "fp16", "torch.bfloat16": "bf16"}.get(str(torch.get_autocast_dtype(kind)), "")
    except (RuntimeError, TypeError):
        return ""


def _cudnn_allows(torch: Any) -> bool:
    cudnn = torch.backends.cudnn
    if not getattr(cudnn, "enabled", True):
        return False
    try:
        return bool(cudnn.allow_tf32)
    except RuntimeError:  # set by the newer names, of which either part may differ
        parts = (getattr(cudnn, name, None) for name in ("conv", "rnn"))
        return any(getattr(part, "fp32_precision", "") == "tf32" for part in parts)


def _products_allow(torch: Any) -> bool:
    try:
        return torch.get_float32_matmul_precision() != "highest" or bool(torch.backends.cuda.matmul.allow_tf32)
    except RuntimeError:  # likewise
        return getattr(torch.backends.cuda.matmul, "fp32_precision", "") == "tf32"


def _has_layers_of_cudnn(torch: Any, module: Any) -> bool:
    """Return whether a network convolves or has recurrent layers: by its layers, weights, or program."""
    nn = torch.nn
    modules = getattr(module, "modules", None)
    inner = list(modules()) if callable(modules) else []
    if any(isinstance(each, (nn.modules.conv._ConvNd, nn.RNNBase)) for each in inner):
        return True
    if any(parameter.dim() > 2 for parameter in getattr(module, "parameters", tuple)()):
        return True  # a function that convolves with them
    nodes = getattr(getattr(module, "graph", None), "nodes", ())
    words = ("conv", "lstm", "gru", "rnn")
    return any(node.op == "call_function" and any(w in str(node.target) for w in words) for node in nodes)
