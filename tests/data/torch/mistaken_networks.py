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


class Words(nn.Module):
    """Two tables, layers of a transformer, and scores."""

    def __init__(self) -> None:
        super().__init__()
        self.word, self.kind, self.norm = nn.Embedding(50, 16), nn.Embedding(50, 16), nn.LayerNorm(16)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(16, 2, 32, 0.2, batch_first=True) for _ in range(2))
        self.head = nn.Linear(16, 7)

    def forward(self, ids: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.word(ids) + self.kind(kinds))
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def words() -> Made:
    return made(Words), (torch.arange(8)[None] * 3, torch.arange(8)[None] // 4)


def words_without_a_seed() -> Made:
    torch.seed()
    return Words().eval(), words()[1]


def words_of_another_checkpoint() -> Made:
    return made(Words, seed=1), words()[1]


def words_trained_on() -> Made:
    network, inputs = words()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator), alpha=1e-3)
    return network, inputs


def words_in_training() -> Made:
    network, inputs = words()
    return network.train(), inputs


class Exchanged(Words):
    """The same, with its inputs the other way round."""

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return super().forward(second, first)


def words_exchanged() -> Made:
    return made(Exchanged), words()[1][::-1]


class Prepared(Pictures):
    """Pictures in the range of photographs."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, spread = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
        return super().forward((x - mean[:, None, None]) / spread[:, None, None])


def prepared() -> Made:
    return made(Prepared), (picture(),)


class Shares(Pictures):
    """The scores as shares."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(super().forward(x), -1)


def shares() -> Made:
    return made(Shares), (picture(),)


class Remembers(nn.Module):
    """Adds up what it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 3)
        self.register_buffer("seen", torch.zeros(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.first(x))
        self.seen = self.seen + y.mean(0)
        return self.last(y + self.seen)


def remembers() -> Made:
    network = made(Remembers)
    inputs = (torch.linspace(-1, 1, 12).reshape(2, 6),)
    network(*inputs)  # as where it was warmed up before
    return network, inputs


def remembers_more() -> Made:
    network, inputs = remembers()
    network(*inputs)
    return network, inputs


class Noisy(nn.Module):
    """Adds noise to what it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.first(x))
        return self.last(y + 0.3 * torch.randn_like(y))


def noisy() -> Made:
    return made(Noisy), (torch.linspace(-1, 1, 12).reshape(2, 6),)


def quiet() -> Made:
    """Return a network like the noisy one without its noise."""
    network, inputs = noisy()
    return nn.Sequential(network.first, nn.Tanh(), network.last).eval(), inputs


def drawing() -> Made:
    """Return the same as drawn otherwise each time: the noise is its own, and no operator of the file."""
    network, inputs = quiet()
    return nn.Sequential(*network[:2], Shaken(), network[2]).eval(), inputs


class Shaken(nn.Module):
    """Noise in evaluation mode too."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return fn.dropout(x, 0.5, training=True)


class Recurrent(nn.Module):
    """An LSTM between two products."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.lstm, self.last = nn.Linear(6, 6), nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.lstm(self.first(x))[0])


def recurrent() -> Made:
    return made(Recurrent), (torch.linspace(-1, 1, 60).reshape(2, 5, 6),)


class Product(nn.Module):
    """A product of a matrix with itself."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ x


def product() -> Made:
    return Product(), (torch.ones(3, 3),)


def not_square() -> Made:
    return Product(), (torch.ones(2, 3),)


def in_bfloat16() -> Made:
    return made(Product).bfloat16(), (torch.linspace(-1, 1, 9).reshape(3, 3).bfloat16(),)


class Branches(nn.Module):
    """Control flow on the value of a tensor, which no exporter can write down."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x * 2
        return x * 3


def branches() -> Made:
    return Branches(), (torch.ones(2, 3),)
