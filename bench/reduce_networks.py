"""24 exported networks for `reduce_exported.py`: both exporters, QDQ, If, Loop, shared weights.

    python bench/reduce_networks.py FOLDER

Seven are those of `engine_networks.py`, four of them once more in QDQ form by ONNX Runtime's quantizer, six decoders of
`step_decoders.py` (three merged as Optimum merges them, in an If). The seven written here hold what those lack: loops
whose length is data, branches in loops, one layer used several times. Needs `torch`, `onnxscript`, `transformers` and
`onnxruntime`; nothing is downloaded.
"""

# ruff: noqa: D102 - what a network computes is all that there is to say of it

import argparse
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import engine_networks
import numpy as np
import step_decoders
import torch
import transformers
from onnxruntime import quantization
from torch import Tensor, nn

WIDTH = 24
DECODERS = {
    "bart-merged": ("bart", "legacy", "merged"),
    "t5-merged": ("t5", "legacy", "merged"),
    "whisper-merged": ("whisper", "dynamo", "merged"),
    "llama": ("llama", "dynamo", ""),
    "gpt2": ("gpt2", "legacy", ""),
    "mamba": ("mamba", "dynamo", ""),
}
"""Family, exporter and kind, by name."""
QUANTIZED = ("convnext", "unet", "bert", "audio")


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
OWN: Mapping[str, tuple[Callable[[], nn.Module], Callable[[], Feeds], str]] = {
    "recurrent": (Recurrent, lambda: {"x": torch.randn(6, 2, WIDTH)}, "script"),
    "refined": (Refined, lambda: {"x": torch.randn(4, WIDTH)}, "script"),
    "chosen": (Chosen, lambda: {"x": torch.randn(3, WIDTH), "steps": torch.tensor(4)}, "script"),
    "routed": (Routed, lambda: {"image": torch.randn(1, 3, 16, 16)}, "script"),
    "gated": (Gated, lambda: {"x": torch.randn(3, WIDTH)}, "dynamo"),
    "halved": (Halved, lambda: {"x": torch.randn(3, WIDTH)}, "dynamo"),
    "shared": (Shared, lambda: {"ids": torch.randint(0, 97, (2, 9))}, "legacy"),
}
"""By name: the network, what draws its inputs, and how it is exported."""


def _own(name: str, path: Path) -> None:
    torch.manual_seed(0)
    make, draw, exporter = OWN[name]
    module, feed = make().eval(), draw()
    names = {"input_names": list(feed), "output_names": ["y"]}
    given = torch.jit.script(module) if exporter == "script" else module
    if exporter == "dynamo":
        torch.onnx.export(given, tuple(feed.values()), path, dynamo=True, external_data=False, **names)
    else:
        axes = {"x": {0: "length"}} if name == "recurrent" else {}
        torch.onnx.export(given, tuple(feed.values()), path, dynamo=False, opset_version=17, dynamic_axes=axes, **names)
    np.savez(path.with_suffix(".npz"), **{key: value.numpy() for key, value in feed.items()})


def _decoder(name: str, path: Path) -> None:
    family, exporter, kind = DECODERS[name]
    step_decoders.export(family, exporter, path, kind=kind)
    made = step_decoders.FAMILIES[family]()
    form = made if isinstance(made, step_decoders.Form) else made.form(first=False)
    feed = {key: value.numpy() for key, (value, _) in (*form.inputs.items(), *form.caches.items())}
    if kind == "merged":
        first = made.form(first=True)  # what the first step alone takes
        feed = {key: value.numpy() for key, (value, _) in (*first.inputs.items(), *first.caches.items())} | feed
        feed["use_cache_branch"] = np.array([True])
    np.savez(path.with_suffix(".npz"), **feed)


class _Calibration(quantization.CalibrationDataReader):
    def __init__(self, feed: Mapping[str, np.ndarray]) -> None:
        self._feeds: Iterator[Mapping[str, np.ndarray]] = iter([feed])

    def get_next(self) -> Mapping[str, np.ndarray] | None:
        return next(self._feeds, None)


def _quantized(path: Path, to: Path) -> None:
    feed = dict(np.load(path.with_suffix(".npz")))
    with tempfile.TemporaryDirectory() as name:
        prepared = Path(name) / "prepared.onnx"
        quantization.quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
        quantization.quantize_static(
            str(prepared), str(to), _Calibration(feed), quant_format=quantization.QuantFormat.QDQ,
            activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8, per_channel=True,
        )  # fmt: skip
    np.savez(to.with_suffix(".npz"), **feed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")  # of the exporters, about themselves
    logging.disable(logging.WARNING)
    for number, name in enumerate(engine_networks.NETWORKS):
        path = folder / f"{name}.onnx"
        if not path.with_suffix(".npz").is_file():
            np.savez(path.with_suffix(".npz"), **engine_networks.written(name, path, seed=number))
    for name in QUANTIZED:
        if not (folder / f"{name}-qdq.npz").is_file():
            _quantized(folder / f"{name}.onnx", folder / f"{name}-qdq.onnx")
    for name in DECODERS:
        if not (folder / f"{name}.npz").is_file():
            _decoder(name, folder / f"{name}.onnx")
    for name in OWN:
        if not (folder / f"{name}.npz").is_file():
            _own(name, folder / f"{name}.onnx")
    print(f"{len(list(folder.glob('*.onnx')))} networks in {folder}")


if __name__ == "__main__":
    main()
