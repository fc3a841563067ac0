"""Seven networks of different kinds, small, with drawn weights; and four of them in QDQ form.

Built for nothing else: no rule of the product was made on them. Each has one row, which every converter here reads.
"""

# ruff: noqa: D101, D102 - what a network is, `NETWORKS` says

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import onnx
import torch
import torch.nn.functional as fn
from onnxruntime import quantization
from torch import Tensor, nn

from networks.made import Made, quiet


class ConvNext(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 4, 4)
        self.depth = nn.ModuleList(nn.Conv2d(24, 24, 7, padding=3, groups=24) for _ in range(2))
        self.norm = nn.ModuleList(nn.LayerNorm(24) for _ in range(2))
        self.wide = nn.ModuleList(nn.Linear(24, 96) for _ in range(2))
        self.narrow = nn.ModuleList(nn.Linear(96, 24) for _ in range(2))
        self.scale = nn.Parameter(torch.rand(24))
        self.head = nn.Linear(24, 11)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for depth, norm, wide, narrow in zip(self.depth, self.norm, self.wide, self.narrow, strict=True):
            y = norm(depth(x).permute(0, 2, 3, 1))
            x = x + (narrow(fn.gelu(wide(y))) * self.scale).permute(0, 3, 1, 2)
        return self.head(x.mean((2, 3)))


class SqueezeExcite(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16)
        self.depth = nn.ModuleList(nn.Conv2d(16, 16, 5, padding=2, groups=16) for _ in range(2))
        self.squeeze = nn.ModuleList(nn.Conv2d(16, 4, 1) for _ in range(2))
        self.excite = nn.ModuleList(nn.Conv2d(4, 16, 1) for _ in range(2))
        self.mix = nn.ModuleList(nn.Conv2d(16, 16, 1) for _ in range(2))
        self.head = nn.Linear(16, 9)

    def forward(self, x: Tensor) -> Tensor:
        x = fn.relu6(self.norm(self.stem(x)))
        for depth, squeeze, excite, mix in zip(self.depth, self.squeeze, self.excite, self.mix, strict=True):
            y = fn.silu(depth(x))
            gate = torch.sigmoid(excite(fn.relu(squeeze(fn.adaptive_avg_pool2d(y, 1)))))
            x = x + mix(y * gate)
        return self.head(fn.max_pool2d(x, 2).mean((2, 3)))


class GruTagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.gru = nn.Embedding(60, 20), nn.GRU(20, 16, batch_first=True, bidirectional=True)
        self.mix, self.tags = nn.Linear(32, 24), nn.Linear(24, 7)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.tags(torch.tanh(self.mix(self.gru(self.embed(tokens))[0]))).log_softmax(-1)


class BertLike(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(80, 32), nn.Parameter(torch.randn(1, 12, 32) / 3)
        self.start = nn.LayerNorm(32)
        self.qkv = nn.ModuleList(nn.Linear(32, 96) for _ in range(2))
        self.out = nn.ModuleList(nn.Linear(32, 32) for _ in range(2))
        self.wide = nn.ModuleList(nn.Linear(32, 64) for _ in range(2))
        self.narrow = nn.ModuleList(nn.Linear(64, 32) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(32) for _ in range(4))
        self.pool = nn.Linear(32, 6)

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        hidden = (1.0 - mask[:, None, None, :]) * -10000.0
        x = self.start(self.words(ids) + self.places)
        for number, (qkv, out, wide, narrow) in enumerate(zip(self.qkv, self.out, self.wide, self.narrow, strict=True)):
            q, k, v = qkv(x).reshape(1, 12, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
            y = ((q @ k.transpose(-1, -2)) / 8**0.5 + hidden).softmax(-1) @ v
            x = self.norms[2 * number](x + out(y.transpose(1, 2).reshape(1, 12, 32)))
            x = self.norms[2 * number + 1](x + narrow(fn.gelu(wide(x))))
        return x, torch.tanh(self.pool(x[:, 0]))


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            (nn.Conv2d(2, 8, 3, padding=1), nn.Conv2d(8, 16, 3, 2, 1), nn.Conv2d(16, 24, 3, 2, 1))
        )
        self.norm = nn.InstanceNorm2d(16, affine=True)
        self.turned = nn.ConvTranspose2d(24, 16, 2, 2)
        self.up = nn.ModuleList((nn.Conv2d(32, 16, 3, padding=1), nn.Conv2d(24, 8, 3, padding=1)))
        self.out = nn.Conv2d(8, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = fn.leaky_relu(self.down[0](x), 0.1)
        b = fn.silu(self.norm(self.down[1](a)))
        c = self.turned(fn.silu(self.down[2](b)))
        y = fn.silu(self.up[0](torch.cat([c, b], 1)))
        y = fn.interpolate(y, size=(24, 20), mode="bilinear", align_corners=False)
        return self.out(fn.silu(self.up[1](torch.cat([y, a], 1))))


class Audio(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv1d(10, 24, 5, 2, 2), nn.BatchNorm1d(24)
        self.dilated = nn.ModuleList(nn.Conv1d(24, 24, 3, padding=2**n, dilation=2**n) for n in range(3))
        self.gates = nn.ModuleList(nn.Conv1d(24, 24, 1) for _ in range(3))
        self.head = nn.Conv1d(24, 8, 1)

    def forward(self, frames: Tensor) -> Tensor:
        x = fn.elu(self.norm(self.first(frames)))
        for dilated, gate in zip(self.dilated, self.gates, strict=True):
            y = dilated(x)
            x = x + torch.tanh(y) * torch.sigmoid(gate(y))
        return self.head(fn.avg_pool1d(x, 2)).transpose(1, 2).softmax(-1)


class Keypoints(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 32, 3, 2, 1)
        self.up = nn.ConvTranspose2d(32, 16, 4, 2, 1)
        self.heat, self.score = nn.Conv2d(16, 5, 1), nn.Linear(32, 5)
        self.register_buffer("across", torch.linspace(0, 1, 16))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = fn.hardswish(self.second(fn.hardswish(self.first(x))))
        heat = (self.heat(fn.relu(self.up(y))) * 3).reshape(1, 5, 256).softmax(-1).reshape(1, 5, 16, 16)
        places = torch.stack([(heat.sum(2) * self.across).sum(-1), (heat.sum(3) * self.across).sum(-1)], -1)
        return places, torch.sigmoid(self.score(y.mean((2, 3))))


def _mask() -> Tensor:
    return torch.cat([torch.ones(1, 9), torch.zeros(1, 3)], 1)


NETWORKS: Mapping[str, tuple[Callable[[], nn.Module], Callable[[], Mapping[str, Tensor]], int]] = {
    "convnext": (ConvNext, lambda: {"image": torch.randn(1, 3, 32, 32)}, 1),
    "squeeze": (SqueezeExcite, lambda: {"image": torch.randn(1, 3, 32, 32)}, 1),
    "tagger": (GruTagger, lambda: {"tokens": torch.randint(0, 60, (1, 14))}, 1),
    "bert": (BertLike, lambda: {"ids": torch.randint(0, 80, (1, 12)), "mask": _mask()}, 2),
    "unet": (UNet, lambda: {"image": torch.randn(1, 2, 24, 20)}, 1),
    "audio": (Audio, lambda: {"frames": torch.randn(1, 10, 40)}, 1),
    "keypoints": (Keypoints, lambda: {"image": torch.randn(1, 3, 32, 32)}, 2),
}
"""By name: the network, what draws its inputs, and how many outputs it has."""


def made(group: str, name: str) -> Made:
    """Return one of the sets `heldout` and `qdq`."""
    if group == "qdq":
        return quantized(name.removesuffix("-qdq"))
    module, feed = drawn(name, seed=list(NETWORKS).index(name))
    return Made(module, feed, [f"y{number}" for number in range(NETWORKS[name][2])])


def drawn(name: str, seed: int) -> tuple[nn.Module, dict[str, Tensor]]:
    """Return a network whose biases, scales and statistics are moved off 0 and 1, and its inputs."""
    torch.manual_seed(seed)
    make, draw, _ = NETWORKS[name]
    module, feed = make().eval(), dict(draw())
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, (nn.LayerNorm, nn.BatchNorm1d, nn.BatchNorm2d, nn.InstanceNorm2d)):
                part.weight.uniform_(0.5, 1.5)
                part.bias.normal_(0, 0.3)
            if isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d)):
                part.running_mean.normal_(0, 0.3)
                part.running_var.uniform_(0.5, 1.5)
    return module, feed


class Once(quantization.CalibrationDataReader):
    """One sample to calibrate on."""

    def __init__(self, feed: Mapping[str, object]) -> None:
        self.samples = iter([feed])

    def get_next(self) -> Mapping[str, object] | None:
        return next(self.samples, None)


def quantized(name: str) -> Made:
    """Return a network as ONNX Runtime's quantizer writes it, calibrated on its inputs."""
    with tempfile.TemporaryDirectory() as folder, quiet():
        plain, prepared, narrow = (Path(folder) / f"{word}.onnx" for word in ("plain", "prepared", "narrow"))
        feed = made("heldout", name).write(plain)
        quantization.quant_pre_process(str(plain), str(prepared), skip_symbolic_shape=True)
        quantization.quantize_static(
            str(prepared), str(narrow), Once(feed), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
            activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8,
        )  # fmt: skip
        return Made(onnx.load(narrow), feed)
