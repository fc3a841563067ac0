"""The networks of the truth corpus: small, random weights, shaped like those that people deploy.

Weights are drawn so that activations keep their size (PyTorch's defaults), biases and scales of normalisations are
moved off 0 and 1, and running statistics off their start, so that nothing is a no-op.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from networks.made import Made


class Residual(nn.Module):
    """A convolution block with a skip, as in ResNet."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.skip = nn.Conv2d(channels_in, channels, 1, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        """Halve the image when the stride is 2."""
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.skip(x))


class ResNet(nn.Module):
    """Six residual blocks and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        widths = (16, 16, 32, 32, 64, 64)
        self.stem = nn.Conv2d(3, 16, 7, stride=2, padding=3)
        blocks = [Residual(i, o, 1 + (i != o)) for i, o in zip((16, *widths[:-1]), widths, strict=True)]
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(64, 20)

    def forward(self, x: Tensor) -> Tensor:
        """Map an image to logits."""
        y = functional.max_pool2d(torch.relu(self.stem(x)), 3, 2, 1)
        return self.head(self.blocks(y).mean((2, 3)))


class Inverted(nn.Module):
    """Expand, filter each channel, squeeze and excite, project, as in MobileNet."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        wide = 4 * channels
        self.expand = nn.Sequential(nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.Hardswish())
        self.depth = nn.Sequential(nn.Conv2d(wide, wide, 3, padding=1, groups=wide), nn.BatchNorm2d(wide), nn.ReLU6())
        self.squeeze, self.excite = nn.Conv2d(wide, channels, 1), nn.Conv2d(channels, wide, 1)
        self.project = nn.Conv2d(wide, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Map an image to one of the same shape."""
        y = self.depth(self.expand(x))
        gate = torch.sigmoid(self.excite(torch.relu(self.squeeze(functional.adaptive_avg_pool2d(y, 1)))))
        return x + self.project(y * gate)


class MobileNet(nn.Module):
    """Four inverted blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(*(Inverted(16) for _ in range(4)))
        self.head = nn.Linear(16, 20)

    def forward(self, x: Tensor) -> Tensor:
        """Map an image to logits."""
        return self.head(self.blocks(functional.hardswish(self.stem(x))).mean((2, 3)))


class Attention(nn.Module):
    """Self-attention with separate, square projections; ``causal`` hides the future with -1e4."""

    def __init__(self, width: int, heads: int, *, causal: bool = False, rotary: bool = False) -> None:
        super().__init__()
        self.heads, self.causal, self.rotary = heads, causal, rotary
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Map ``[batch, tokens, width]`` to itself; ``hidden`` is added to the scores."""
        batch, tokens, width = x.shape
        q, k, v = (
            layer(x).reshape(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        if self.rotary:
            q, k = turned(q), turned(k)
        scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
        if self.causal:
            scores = scores + torch.full((tokens, tokens), -1e4).triu(1)
        if hidden is not None:
            scores = scores + hidden
        return self.out((torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(batch, tokens, width))


def turned(x: Tensor) -> Tensor:
    """Rotate pairs of features by their position, as rotary embeddings do."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2])[:, None] * 10.0 ** (-4 * torch.arange(half) / half)
    cosine, sine = torch.cos(angles), torch.sin(angles)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cosine - b * sine, a * sine + b * cosine], -1)


class RmsNorm(nn.Module):
    """Normalise by the root mean square, as T5 and Llama do."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last axis."""
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Map ``[batch, tokens, width]`` to itself."""
        x = x + self.attention(self.norm1(x), hidden)
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Gated(nn.Module):
    """A block of Llama: RMSNorm, rotary attention, SwiGLU."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.attention = Attention(width, heads, causal=True, rotary=True)
        self.gate, self.up, self.down = (
            nn.Linear(width, 2 * width),
            nn.Linear(width, 2 * width),
            nn.Linear(2 * width, width),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[batch, tokens, width]`` to itself."""
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class ViT(nn.Module):
    """A vision transformer of three blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 64, 8, stride=8)
        self.position = nn.Parameter(0.3 * torch.randn(16, 64))
        self.blocks = nn.Sequential(*(Block(64, 4) for _ in range(3)))
        self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, 20)

    def forward(self, x: Tensor) -> Tensor:
        """Map an image of 32 x 32 to logits."""
        tokens = self.patches(x).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.blocks(tokens)).mean(1))


class Bert(nn.Module):
    """An encoder of two blocks with a padding mask of -1e4, and a pooler with Tanh."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.position = nn.Embedding(200, 64), nn.Parameter(0.5 * torch.randn(24, 64))
        self.blocks = nn.ModuleList([Block(64, 4), Block(64, 4)])
        self.pool = nn.Linear(64, 64)

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Map ids and mask ``[batch, 24]`` to hidden states and the pooled first one."""
        x = self.words(ids) + self.position
        hidden = (1.0 - mask.to(x.dtype))[:, None, None, :] * -1e4
        for block in self.blocks:
            x = block(x, hidden)
        return x, torch.tanh(self.pool(x[:, 0]))


class Llama(nn.Module):
    """A decoder of two gated blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(200, 64)
        self.blocks = nn.Sequential(Gated(64, 4), Gated(64, 4))
        self.norm, self.head = RmsNorm(64), nn.Linear(64, 200)

    def forward(self, ids: Tensor) -> Tensor:
        """Map ids ``[batch, tokens]`` to logits."""
        return self.head(self.norm(self.blocks(self.words(ids))))


class Lstm(nn.Module):
    """A convolution, two bidirectional LSTM layers and a log-softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = nn.Conv1d(20, 32, 3, padding=1), nn.Linear(64, 30)
        self.lstm = nn.LSTM(32, 32, 2, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[batch, 20, time]`` to log-probabilities."""
        y, _ = self.lstm(torch.relu(self.conv(x)).transpose(1, 2))
        return torch.log_softmax(self.out(y), -1)


class Mixer(nn.Module):
    """GroupNorm, SiLU and a convolution with a skip, as in diffusion models."""

    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, channels_in)
        self.conv, self.skip = nn.Conv2d(channels_in, channels, 3, padding=1), nn.Conv2d(channels_in, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Map an image to one of the same size."""
        return self.conv(functional.silu(self.norm(x))) + self.skip(x)


class UNet(nn.Module):
    """Down, attention, up with skips; nearest and bilinear resizing."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = nn.Conv2d(4, 16, 3, padding=1), nn.Conv2d(16, 4, 3, padding=1)
        self.down, self.middle, self.up = Mixer(16, 32), Mixer(32, 32), Mixer(48, 16)
        self.attention = Attention(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        """Map an image to one of the same shape."""
        a = self.into(x)
        b = self.middle(self.down(functional.avg_pool2d(a, 2)))
        b = b + self.attention(b.flatten(2).transpose(1, 2)).transpose(1, 2).reshape(b.shape)
        return self.out(self.up(torch.cat([functional.interpolate(b, scale_factor=2.0, mode="bilinear"), a], 1)))


def images(size: int, channels: int = 3) -> Callable[[], Mapping[str, Tensor]]:
    return lambda: {"x": torch.randn(2, channels, size, size)}


def padded_ids() -> Mapping[str, Tensor]:
    mask = torch.ones(2, 24, dtype=torch.long)
    mask[1, 15:] = 0
    return {"ids": torch.randint(0, 200, (2, 24)), "mask": mask}


NETWORKS: Mapping[str, tuple[Callable[[], nn.Module], Callable[[], Mapping[str, Tensor]]]] = {
    "resnet": (ResNet, images(40)),
    "mobilenet": (MobileNet, images(28)),
    "vit": (ViT, images(32)),
    "bert": (Bert, padded_ids),
    "llama": (Llama, lambda: {"ids": torch.randint(0, 200, (2, 20))}),
    "lstm": (Lstm, lambda: {"x": torch.randn(2, 20, 24)}),
    "unet": (UNet, images(16, 4)),
}
"""Networks by name, each with what draws its inputs."""


def made(group: str, name: str) -> Made:
    """Return one of the set `corpus`."""
    module, feed = drawn(name)
    return Made(module, feed, ["y0", "y1"] if name == "bert" else ["y0"])


def drawn(name: str, seed: int = 0) -> tuple[nn.Module, Mapping[str, Tensor]]:
    """Return a network in evaluation mode, and inputs."""
    torch.manual_seed(seed)
    make, inputs = NETWORKS[name]
    module = make().eval()
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, nn.BatchNorm2d | nn.LayerNorm | nn.GroupNorm | RmsNorm):
                part.weight.normal_(1.0, 0.2)
                if getattr(part, "bias", None) is not None:
                    part.bias.normal_(0.0, 0.1)
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.normal_(0.0, 0.1)
                part.running_var.uniform_(0.02, 0.3)
    return module, inputs()
