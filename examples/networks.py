"""The networks of the examples, small enough to bundle and shaped like the ones people deploy.

The modules spell out what exporters used to spell out (LayerNorm as nine operators, GELU through Erf), because those
operators, one by one, are where 16-bit engines go wrong.
"""

import math

import torch
from torch import Tensor, nn

WIDTH = 48
HEADS = 4
BLOCKS = 4
TOKENS = 16
CLASSES = 10


class LayerNorm(nn.Module):
    """LayerNorm in elementary operators, as every exporter below opset 17 writes it."""

    def __init__(self, width: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last axis of ``[..., width]``."""
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.pow(2).mean(-1, keepdim=True)
        return centred / torch.sqrt(variance + self.epsilon) * self.weight + self.bias


class Attention(nn.Module):
    """Multi-head self-attention; ``bias`` is added to the scores and hides tokens when it is very negative."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.depth = width // heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.proj = nn.Linear(width, width)

    def split(self, x: Tensor) -> Tensor:
        """Return ``[batch, heads, tokens, depth]`` of ``[batch, tokens, width]``."""
        return x.reshape(-1, TOKENS, self.heads, self.depth).transpose(1, 2)

    def forward(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """Map ``[batch, tokens, width]`` to itself; ``bias`` broadcasts to ``[batch, heads, tokens, tokens]``."""
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = query @ key.transpose(-2, -1) / math.sqrt(self.depth)
        if bias is not None:
            scores = scores + bias
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.proj(mixed.transpose(1, 2).reshape(-1, TOKENS, self.heads * self.depth))


class Mlp(nn.Module):
    """The feed-forward half of a block; ``nn.GELU`` exports through Erf."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 2 * width)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[batch, tokens, width]`` to itself."""
        return self.fc2(self.act(self.fc1(x)))


class Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = LayerNorm(width)
        self.attn = Attention(width, heads)
        self.norm2 = LayerNorm(width)
        self.mlp = Mlp(width)

    def forward(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """Map ``[batch, tokens, width]`` to itself."""
        x = x + self.attn(self.norm1(x), bias)
        return x + self.mlp(self.norm2(x))


class AttentionBias(nn.Module):
    """Turns a mask of 1 (look) and 0 (ignore) into what is added to the scores, the way BERT's code does."""

    def forward(self, mask: Tensor) -> Tensor:
        """Map ``[batch, 16]`` to ``[batch, 1, 1, 16]``."""
        return (1.0 - mask.reshape(-1, 1, 1, TOKENS)) * -1e9


class VisionTransformer(nn.Module):
    """Sixteen 2x2 patches plus positions, normalised once before four pre-norm blocks (as CLIP's vision tower is)."""

    def __init__(self) -> None:
        super().__init__()
        self.patch_embed = nn.Conv2d(1, WIDTH, kernel_size=2, stride=2)
        nn.init.kaiming_normal_(self.patch_embed.weight, nonlinearity="linear")
        self.position = nn.Parameter(0.25 * torch.randn(TOKENS, WIDTH))
        self.norm_pre = LayerNorm(WIDTH)
        self.attention_bias = AttentionBias()
        self.blocks = nn.ModuleList(Block(WIDTH, HEADS) for _ in range(BLOCKS))
        self.norm = LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, image: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Map ``image [batch, 1, 8, 8]`` and ``attention_mask [batch, 16]`` to logits ``[batch, 10]``."""
        patches = self.patch_embed(image).reshape(-1, WIDTH, TOKENS).transpose(1, 2)
        x = self.norm_pre(patches + self.position)
        bias = None if attention_mask is None else self.attention_bias(attention_mask)
        for block in self.blocks:
            x = block(x, bias)
        return self.head(self.norm(x).mean(1))


class ResidualBlock(nn.Module):
    """A pre-activation residual block: its first BatchNorm cannot be folded into a convolution, its second can."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(channels_in)
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.skip = nn.Conv2d(channels_in, channels, 1, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[batch, channels_in, h, w]`` to ``[batch, channels, h/stride, w/stride]``."""
        y = torch.relu(self.bn1(x))
        y = self.conv2(torch.relu(self.bn2(self.conv1(y))))
        return self.skip(x) + y


class ConvNet(nn.Module):
    """Two pre-activation residual blocks between a stem and global pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(16)
        self.block1 = ResidualBlock(16, 32, stride=1)
        self.pool = nn.MaxPool2d(2)
        self.block2 = ResidualBlock(32, 64, stride=2)
        self.bn_last = nn.BatchNorm2d(64)
        self.gap = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        """Map ``image [batch, 1, 8, 8]`` to logits ``[batch, 10]``."""
        x = torch.relu(self.bn(self.stem(image)))
        x = self.block2(self.pool(self.block1(x)))
        x = self.gap(torch.relu(self.bn_last(x)))
        return self.fc(torch.flatten(x, 1))
