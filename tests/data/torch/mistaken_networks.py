"""Networks that are made, fed or compared by mistake otherwise than their files, and those they are mistaken for."""

import torch
from torch import nn
from torch.nn import functional as fn

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]


class Pictures(nn.Module):
    """Two convolutions, each followed by a norm that the older exporter folds into it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 5)
        for place, norm in enumerate((self.bn1, self.bn2)):
            generator = torch.Generator().manual_seed(place)
            norm.running_mean.normal_(0, 0.3, generator=generator)
            norm.running_var.uniform_(0.5, 2, generator=generator)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.bn2(self.conv2(self.bn1(self.conv1(x)))))
        return self.head(x.mean((2, 3)))


class Larger(nn.Module):
    """A picture made larger between two convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = fn.interpolate(self.first(x), scale_factor=2, mode="bicubic", align_corners=False)
        return self.last(torch.relu(x))


def picture() -> torch.Tensor:
    """Return one picture of numbers from 0 to 1."""
    return torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(3))


def made(kind: type[nn.Module], seed: int = 0) -> nn.Module:
    """Return a network in evaluation mode, with weights by the seed."""
    torch.manual_seed(seed)
    return kind().eval()


def pictures() -> Made:
    return made(Pictures), (picture(),)


def larger() -> Made:
    return made(Larger), (picture(),)
