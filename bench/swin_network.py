"""Swin with random weights: attention within windows that are shifted in every other block; for `pytorch_networks`."""

import torch
from torch import nn


class WindowAttention(nn.Module):
    """Swin's attention: within windows, with a learnt number per pair of places, shifted in every other block."""

    def __init__(self, size: int, heads: int, side: int, window: int, shift: int) -> None:
        super().__init__()
        self.heads, self.window, self.shift = heads, window, shift
        self.qkv, self.proj = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.1)
        places = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        apart = (places[:, :, None] - places[:, None]) + window - 1
        self.register_buffer("index", apart[0] * (2 * window - 1) + apart[1])
        regions = torch.zeros(1, side, side, 1)
        bounds = (slice(0, -window), slice(-window, -shift), slice(-shift, None)) if shift else ()
        for number, (rows, columns) in enumerate((rows, columns) for rows in bounds for columns in bounds):
            regions[:, rows, columns] = number
        flat = self.windows(regions).squeeze(-1)
        self.register_buffer("mask", torch.where(flat[:, None] == flat[:, :, None], 0.0, -100.0)[None, :, None])

    def windows(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``[batch * windows, places, channels]`` of ``[batch, rows, columns, channels]``."""
        count, rows, columns, size = x.shape
        x = x.reshape(count, rows // self.window, self.window, columns // self.window, self.window, size)
        return x.transpose(2, 3).reshape(-1, self.window**2, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a map of the size of x."""
        count, rows, columns, size = x.shape
        words = self.windows(torch.roll(x, (-self.shift, -self.shift), (1, 2)) if self.shift else x)
        query, key, value = self.qkv(words).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = (query * (size // self.heads) ** -0.5) @ key.transpose(2, 3)
        scores = scores + self.table[self.index.flatten()].unflatten(0, self.index.shape).permute(2, 0, 1)[None]
        if self.shift:
            scores = (scores.unflatten(0, (count, -1)) + self.mask).flatten(0, 1)
        x = self.proj((scores.softmax(-1) @ value).transpose(1, 2).flatten(2))
        x = x.reshape(count, rows // self.window, columns // self.window, self.window, self.window, size)
        x = x.transpose(2, 3).reshape(count, rows, columns, size)
        return torch.roll(x, (self.shift, self.shift), (1, 2)) if self.shift else x


class SwinBlock(nn.Module):
    """Attention in windows and a perceptron, each behind a normalization and beside a shortcut."""

    def __init__(self, size: int, heads: int, side: int, window: int, shift: int) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(size), WindowAttention(size, heads, side, window, shift)
        self.norm2 = nn.LayerNorm(size)
        self.mlp = nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a map of the size of x."""
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    """Four neighbours joined into one of twice the channels."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm, self.reduction = nn.LayerNorm(4 * size), nn.Linear(4 * size, 2 * size, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a map of half the sides."""
        parts = [x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        return self.reduction(self.norm(torch.cat(parts, -1)))


class Swin(nn.Module):
    """Two stages of two blocks."""

    def __init__(self, size: int = 16, window: int = 4) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, size, 2, 2)
        self.stages = nn.ModuleList(
            nn.Sequential(
                *(SwinBlock(size * 2**stage, 2 * 2**stage, 16 // 2**stage, window, shift) for shift in (0, 2))
            )
            for stage in (0, 1)
        )
        self.merge, self.norm, self.head = PatchMerging(size), nn.LayerNorm(2 * size), nn.Linear(2 * size, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return scores of a picture of 32 x 32."""
        x = self.stages[0](self.embed(x).permute(0, 2, 3, 1))
        return self.head(self.norm(self.stages[1](self.merge(x))).mean((1, 2)))
