"""A transformer of two blocks with random weights, and its ONNX files from both exporters of PyTorch.

``python small_transformer.py`` writes ``small_transformer.onnx`` (dynamo exporter, torch 2.13) and
``small_transformer_legacy.onnx`` (the older exporter, verbose) next to it, with the folders of the machine and what all
stacks share taken out of the stacks, so that names are tested where PyTorch is not installed.
"""

import re
import sys
from pathlib import Path

import torch
from torch import nn

HERE = Path(__file__).resolve().parent
SIZE, WORDS = 8, 16
_PLUMBING = re.compile(r"torch/(jit|onnx|nn/modules/module.py)|<module>|: record")


class Attention(nn.Module):
    """Self-attention with two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o_proj = (nn.Linear(SIZE, SIZE) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (self.heads(project(x)) for project in (self.q, self.k, self.v))
        attended = nn.functional.scaled_dot_product_attention(query, key, value)
        return self.o_proj(attended.transpose(1, 2).flatten(2))

    def heads(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``[batch, heads, words, size]``."""
        return x.unflatten(2, (2, -1)).transpose(1, 2)


class Block(nn.Module):
    """Attention and a perceptron, each behind a normalization and beside a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(SIZE), Attention()
        self.mlp = nn.Sequential(nn.LayerNorm(SIZE), nn.Linear(SIZE, 2 * SIZE), nn.GELU(), nn.Linear(2 * SIZE, SIZE))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm(x))
        return x + self.mlp(x)


class SmallTransformer(nn.Module):
    """Words in, scores of the next word out."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(WORDS, SIZE), nn.Linear(SIZE, WORDS)
        self.layers = nn.ModuleList(Block() for _ in range(2))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def network() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Return the network and inputs for it."""
    torch.manual_seed(0)
    return SmallTransformer().eval(), (torch.arange(6).reshape(1, 6),)


def record() -> None:
    """Write both files."""
    import onnx

    module, inputs = network()
    program = torch.onnx.export(module, inputs, input_names=["ids"], output_names=["scores"], dynamo=True)
    program.save(HERE / "small_transformer.onnx")
    torch.onnx.export(
        module, inputs, HERE / "small_transformer_legacy.onnx", input_names=["ids"], output_names=["scores"],
        dynamo=False, verbose=True,
    )  # fmt: skip
    packages = str(Path(torch.__file__).parent.parent)
    for path in HERE.glob("*.onnx"):
        model = onnx.load(path)
        for node in model.graph.node:
            frames = _without_folders(node.doc_string, packages).splitlines(keepends=True)
            node.doc_string = "".join(frame for frame in frames if not _PLUMBING.search(frame))
            for entry in node.metadata_props:
                entry.value = _without_folders(entry.value, packages)
        onnx.save(model, path)


def _without_folders(text: str, packages: str) -> str:
    text = text.replace(packages, "/venv/lib/site-packages").replace(str(HERE), "/home/user/network")
    return text.replace(sys.prefix, "/venv").replace(sys.base_prefix, "/usr")


if __name__ == "__main__":
    record()
