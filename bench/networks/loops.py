"""Networks with what others lack: loops whose length is data, branches in loops, one layer used several times."""

# ruff: noqa: D102 - what a network computes is all that there is to say of it

from collections.abc import Callable, Mapping

import torch
import transformers
from torch import Tensor, nn

from networks.made import Made

WIDTH = 24


class Recurrent(nn.Module):
    """A cell applied to every step of a sequence of any length: Loop with a scanned output."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.new, self.out = nn.Linear(2 * WIDTH, WIDTH), nn.Linear(2 * WIDTH, WIDTH), nn.Linear(WIDTH, 5)

    def forward(self, x: Tensor) -> Tensor:
        state = torch.zeros(x.shape[1], x.shape[2])
        found = []
        for step in range(x.shape[0]):
            both = torch.cat([x[step], state], 1)
            gate = torch.sigmoid(self.gate(both))
            state = gate * state + (1 - gate) * torch.tanh(self.new(both))
            found.append(self.out(state))
        return torch.stack(found)


class Refined(nn.Module):
    """Steps until one is small: Loop with a condition."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.step, self.last = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 5)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.first(x))
        size = torch.tensor(1.0)
        count = 0
        while bool(size > 0.2) and count < 6:
            move = torch.tanh(self.step(x)) * 0.3
            x = self.norm(x + move)
            size = move.abs().mean()
            count += 1
        return self.last(x)


class Chosen(nn.Module):
    """Another way for every second step: If in Loop."""

    def __init__(self) -> None:
        super().__init__()
        self.even, self.odd = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, steps: Tensor) -> Tensor:
        for step in range(int(steps)):
            x = torch.tanh(self.even(x)) + 0.1 * x if step % 2 == 0 else torch.sigmoid(self.odd(x)) * x
        return x.softmax(-1)


class Routed(nn.Module):
    """One of two experts by the data: If with nodes around it."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 8, 3, 2, 1), nn.Linear(8, 6)
        self.first, self.second = nn.Conv2d(8, 8, 3, 1, 1), nn.Conv2d(8, 8, 1)

    def forward(self, image: Tensor) -> Tensor:
        x = torch.relu(self.stem(image))
        if bool(x.mean() > 0.1):
            x = torch.relu(self.first(x)) + x
        else:
            x = torch.sigmoid(self.second(x)) * x
        return self.head(x.mean((2, 3)))


class Gated(nn.Module):
    """The same by `torch.cond`, as the newer exporter writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.stem(x))
        x = torch.cond(x.mean() > 0, lambda y: torch.sigmoid(y) * y + 1, lambda y: torch.relu(y) - y * 0.5, (x,))
        return self.head(x).softmax(-1)


class Halved(nn.Module):
    """The newer exporter's Loop, by `while_loop`."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 5)

    def forward(self, x: Tensor) -> Tensor:
        def goes_on(count: Tensor, y: Tensor) -> Tensor:
            return count < 5

        def step(count: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            return count + 1, torch.tanh(y * 1.2) * 0.9 + torch.sigmoid(y) * 0.1

        _, y = torch.ops.higher_order.while_loop(goes_on, step, (torch.tensor(0), self.inner(x)), ())
        return self.out(y).softmax(-1)


class Shared(nn.Module):
    """ALBERT: the weights of one layer in all, embeddings factored."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = transformers.AlbertModel(
            transformers.AlbertConfig(
                vocab_size=97, embedding_size=16, hidden_size=WIDTH, num_hidden_layers=4, num_attention_heads=4,
                intermediate_size=2 * WIDTH, max_position_embeddings=64,
            ),
            add_pooling_layer=False,
        )  # fmt: skip

    def forward(self, ids: Tensor) -> Tensor:
        return self.inner(input_ids=ids).last_hidden_state


Feeds = Mapping[str, Tensor]
NETWORKS: Mapping[str, tuple[Callable[[], nn.Module], Callable[[], Feeds], str]] = {
    "recurrent": (Recurrent, lambda: {"x": torch.randn(6, 2, WIDTH)}, "script"),
    "refined": (Refined, lambda: {"x": torch.randn(4, WIDTH)}, "script"),
    "chosen": (Chosen, lambda: {"x": torch.randn(3, WIDTH), "steps": torch.tensor(4)}, "script"),
    "routed": (Routed, lambda: {"image": torch.randn(1, 3, 16, 16)}, "script"),
    "gated": (Gated, lambda: {"x": torch.randn(3, WIDTH)}, "dynamo"),
    "halved": (Halved, lambda: {"x": torch.randn(3, WIDTH)}, "dynamo"),
    "shared": (Shared, lambda: {"ids": torch.randint(0, 97, (2, 9))}, "legacy"),
}
"""By name: the network, what draws its inputs, and how it is exported."""


def made(group: str, name: str) -> Made:
    """Return one of the set `loops`."""
    torch.manual_seed(0)
    make, draw, exporter = NETWORKS[name]
    module, feed = make().eval(), draw()
    axes = {"dynamic_axes": {"x": {0: "length"}}} if name == "recurrent" else {}
    return Made(module, feed, ["y"], exporter, axes)
