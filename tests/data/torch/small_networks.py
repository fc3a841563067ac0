"""Small networks for what exporters get wrong: pictures, shapes that are baked in, networks left in training mode."""

import torch
from torch import nn


class Pictures(nn.Module):
    """Convolutions, a normalization and a resize."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.head = nn.Conv2d(4, 2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.stem(x)))
        return self.head(self.up(x))


class Share(nn.Module):
    """Divides by the size of the batch, and whole numbers by three."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.mean = Mean()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mean(self.inner(x))


class Mean(nn.Module):
    """A mean that Python computes the size for."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(dim=0) / len(x) + torch.div((10 * x).to(torch.int64), 3, rounding_mode="floor").sum(dim=0)


class Hash(nn.Module):
    """Whole numbers divided by seven, rounded down."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.div(x * 3, 7, rounding_mode="floor")


class Hashes(nn.Module):
    """Scores of hashed words."""

    def __init__(self) -> None:
        super().__init__()
        self.hash, self.head = Hash(), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head((self.hash(x) % 100).float())


class Dropping(nn.Module):
    """A network that somebody forgot to put into evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.drop, self.last = nn.Linear(8, 64), nn.Dropout(0.5), nn.Linear(64, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.drop(torch.relu(self.first(x))))


class Waves(nn.Module):
    """Adds a table of waves that an exporter computes, and the mean where there are many words."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.head = Centred(), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1])[:, None]
        waves = torch.sin(places / 10.0 ** torch.arange(8))
        return self.head(self.mean(x * waves))


class Centred(nn.Module):
    """Takes the mean away from long inputs."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(x)
        return x - x.mean(1, keepdim=True) if x.shape[1] > 3 else x


def pictures() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Return the network for pictures."""
    torch.manual_seed(1)
    module = Pictures()
    module.norm.running_mean.normal_()
    return module.eval(), (torch.randn(1, 3, 8, 8),)


def share() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """Return the network that divides by the size of the batch."""
    torch.manual_seed(2)
    return Share().eval(), {"x": torch.randn(2, 4)}


def dropping() -> tuple[nn.Module, torch.Tensor]:
    """Return a network in training mode."""
    torch.manual_seed(3)
    return Dropping().train(), torch.randn(2, 8)


def waves() -> tuple[nn.Module, torch.Tensor]:
    """Return the network with a table of waves."""
    torch.manual_seed(5)
    return Waves().eval(), torch.randn(2, 6, 8)


class TwoProducts(nn.Module):
    """Two matrix products: nothing that ``torch.compile`` needs a C++ compiler for."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.first(x))


def two_products() -> tuple[nn.Module, torch.Tensor]:
    """Return the network of two products."""
    torch.manual_seed(4)
    return TwoProducts().eval(), torch.randn(4, 8)


def two_products_with_a_wrong_pass() -> tuple[nn.Module, torch.Tensor]:
    """Return it, and plant a pass of inductor that forgets to transpose the first weight."""
    import torch._inductor.config as inductor

    def forget(graph: torch.fx.Graph) -> None:
        product = next(node for node in graph.nodes if node.target is torch.ops.aten.mm.default)
        transposed = product.args[1]
        product.args = (product.args[0], transposed.args[0])

    inductor.post_grad_custom_post_pass = forget
    return two_products()


def hashes() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    return Hashes().eval(), {"x": torch.tensor([[2**40 + 5, 2**33 + 3, 123_456_789_123, 17]])}
