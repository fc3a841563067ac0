"""A network for sound, able to be exported wrong: one of those of `exporter_networks`."""

# ruff: noqa: D102 - what a forward does is said at its class

import torch
import torch.nn.functional as fn
from torch import nn
from wrong_lines import Made, drawn, pick


class Causal(nn.Module):
    """A convolution over the past."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(6, 12, 3, dilation=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        padded = fn.pad(x, pick("causal", (4, 0), (2, 2)))
        return fn.leaky_relu(self.conv(padded), pick("slope", 0.2, 0.01))


class Quantized(nn.Module):
    """Rounded to eight bits and back."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(10, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale, zero = pick("quantizer-scale", 0.02, 0.021), pick("zero-point", 0, 110)
        x = torch.fake_quantize_per_tensor_affine(x, scale, zero, -128, 127)
        return self.proj(x)


class Running(nn.Module):
    """The mean of everything up to now."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x.cumsum(pick("cumsum-axis", 1, 2))
        count = torch.arange(1, x.shape[1] + 1, dtype=torch.float32)[None, :, None]
        return total / count + (x.mean(1, keepdim=True) if x.shape[1] > pick("branch", 8, 800) else 0.0)


class Audio(nn.Module):
    """Frames in: convolution, recurrence, running means, quantization, log-probabilities out."""

    def __init__(self) -> None:
        super().__init__()
        self.causal, self.gru = Causal(), nn.GRU(12, 10, batch_first=True)
        self.running, self.quantized, self.classify = Running(), Quantized(), nn.Linear(10, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.gru(self.causal(x).transpose(1, 2))[0]
        x = self.classify(self.quantized(self.running(x)))
        return x.log_softmax(pick("softmax-axis", -1, 1))


def audio() -> Made:
    return Audio().eval(), (torch.randn(1, 6, 12, generator=drawn(3)),)
