"""The networks whose rewritten files are judged: eight, trained on handwritten digits when first asked for.

Training, some seconds of it, gives weights and activations what drawn ones lack: correlated channels, outliers, classes
that are told apart. Each network lies in bench/models/truth/files/NAME: model.onnx, real.npz (feeds), calibration.npz
(other samples), another.onnx (the same network, trained from another start). Transformers are written as Hugging Face's
are, because ONNX Runtime's optimizer fuses these. Needs the extra ``examples`` (PyTorch, scikit-learn).
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional

from networks.corpus import ResNet, ViT
from networks.made import Made

FILES = Path(__file__).parents[1] / "models" / "truth" / "files"
BATCH, FEEDS, CALIBRATION = 4, 3, 24
TOKENS, WORDS, CLS, PAD = 32, 20, 17, 18
OUTLIERS = {5: 12.0, 41: -9.0}
"""Channels of `bert12` that every normalization moves far from zero, as those of trained language models do."""


class Inverted(nn.Module):
    """Expand, filter each channel, project, all clipped at 6, as in MobileNet V2."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        wide = 4 * channels_in
        self.expand = nn.Sequential(nn.Conv2d(channels_in, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6())
        depth = nn.Conv2d(wide, wide, 3, stride=stride, padding=1, groups=wide, bias=False)
        self.depth = nn.Sequential(depth, nn.BatchNorm2d(wide), nn.ReLU6())
        self.project = nn.Sequential(nn.Conv2d(wide, channels, 1, bias=False), nn.BatchNorm2d(channels))
        self.same = channels_in == channels and stride == 1

    def forward(self, x: Tensor) -> Tensor:
        """Map an image to one of the same size or half of it."""
        y = self.project(self.depth(self.expand(x)))
        return x + y if self.same else y


class MobileNet(nn.Module):
    """Five inverted blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU6())
        shapes = ((16, 16, 1), (16, 24, 2), (24, 24, 1), (24, 32, 2), (32, 32, 1))
        self.blocks = nn.Sequential(*(Inverted(*shape) for shape in shapes))
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Map an image to logits."""
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def _conv(channels_in: int, channels: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(channels_in, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU())


class UNet(nn.Module):
    """Down and up with skips, nearest and linear resizing; trained to take noise off."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = _conv(3, 16), _conv(16, 32), _conv(32, 48)
        self.up2, self.up1, self.out = _conv(80, 32), _conv(48, 16), nn.Conv2d(16, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Map an image to one of the same shape."""
        a = self.first(x)
        b = self.second(functional.max_pool2d(a, 2))
        c = self.third(functional.avg_pool2d(b, 2))
        d = self.up2(torch.cat([functional.interpolate(c, scale_factor=2.0, mode="nearest"), b], 1))
        e = self.up1(torch.cat([functional.interpolate(d, scale_factor=2.0, mode="bilinear"), a], 1))
        return self.out(e)


class SelfAttention(nn.Module):
    """Attention as Hugging Face's BERT writes it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key, self.value, self.dense = (nn.Linear(width, width) for _ in range(4))

    def split(self, x: Tensor) -> Tensor:
        """Give every head its features."""
        return x.view(x.shape[0], x.shape[1], self.heads, self.size).permute(0, 2, 1, 3)

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        """Map ``[batch, tokens, width]`` to itself; ``hidden`` is added to the scores."""
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / self.size**0.5 + hidden
        mixed = torch.matmul(functional.softmax(scores, -1), v).permute(0, 2, 1, 3).contiguous()
        return self.dense(mixed.view(x.shape))


class EncoderLayer(nn.Module):
    """A post-norm block of BERT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        """Map ``[batch, tokens, width]`` to itself."""
        x = self.norm1(self.attention(x, hidden) + x)
        return self.norm2(self.down(functional.gelu(self.up(x))) + x)


class Bert(nn.Module):
    """Embeddings, encoder layers with a mask of -1e9, a pooler and a classifier."""

    def __init__(self, layers: int, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(TOKENS, width)
        self.types, self.norm = nn.Embedding(2, width), nn.LayerNorm(width)
        self.layers = nn.ModuleList(EncoderLayer(width, heads) for _ in range(layers))
        self.pool, self.head = nn.Linear(width, width), nn.Linear(width, 10)
        self.register_buffer("position_ids", torch.arange(TOKENS).expand((1, -1)))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Map ids ``[batch, tokens]`` to the last hidden states and logits."""
        hidden = (1.0 - attention_mask.unsqueeze(1).unsqueeze(2).to(torch.float32)) * -1e9
        x = self.words(input_ids) + self.places(self.position_ids) + self.types(token_type_ids)
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x, hidden)
        return x, self.head(torch.tanh(self.pool(x[:, 0])))


class DecoderLayer(nn.Module):
    """A pre-norm block of GPT-2, all projections in one, GELU by tanh."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        seen = torch.ones(TOKENS, TOKENS, dtype=torch.bool)
        self.register_buffer("seen", torch.tril(seen).view(1, 1, TOKENS, TOKENS))

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[batch, tokens, width]`` to itself."""
        shape = (x.shape[0], x.shape[1], self.heads, self.size)
        q, k, v = (part.view(shape).permute(0, 2, 1, 3) for part in self.attend(self.norm1(x)).split(x.shape[2], 2))
        scores = torch.matmul(q, k.transpose(-1, -2)) / self.size**0.5
        scores = torch.where(self.seen, scores, torch.tensor(-10000.0))
        mixed = torch.matmul(functional.softmax(scores, -1), v).permute(0, 2, 1, 3).contiguous()
        x = x + self.project(mixed.view(x.shape))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """Four causal blocks that tell the next token."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, 64), nn.Embedding(TOKENS, 64)
        self.layers = nn.Sequential(*(DecoderLayer(64, 4) for _ in range(4)))
        self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, WORDS, bias=False)
        self.register_buffer("position_ids", torch.arange(TOKENS).expand((1, -1)))

    def forward(self, input_ids: Tensor) -> Tensor:
        """Map ids to logits."""
        return self.head(self.norm(self.layers(self.words(input_ids) + self.places(self.position_ids))))


class Tagger(nn.Module):
    """A bidirectional LSTM and a GRU that tag every row of an image with its digit."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(16, 32), nn.Linear(48, 10)
        self.lstm = nn.LSTM(32, 32, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(64, 48, batch_first=True)

    def forward(self, rows: Tensor) -> Tensor:
        """Map rows ``[batch, 16, 16]`` to logits of each."""
        y, _ = self.lstm(torch.relu(self.into(rows)))
        return self.out(self.gru(y)[0])


@functools.cache
def _digits() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits

    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.images))
    return torch.tensor(found.images[order], dtype=torch.float32), torch.tensor(found.target[order])


def _images(digits: Tensor) -> Mapping[str, Tensor]:
    """Coloured and uneven, with the mean and deviation of photographs taken off."""
    generator = torch.Generator().manual_seed(len(digits))
    large = functional.interpolate(digits[:, None] / 16.0, scale_factor=4.0, mode="bilinear")
    colour = torch.rand(len(digits), 3, 1, 1, generator=generator) * 0.7 + 0.3
    light = torch.linspace(0.0, 0.3, 32) + 0.05 * torch.randn(len(digits), 3, 32, 32, generator=generator)
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    return {"image": ((large * colour + light).clip(0, 1) - mean[:, None, None]) / deviation[:, None, None]}


def _ids(digits: Tensor) -> Tensor:
    pairs = digits.reshape(len(digits), 32, 2).mean(2).round().long()
    return torch.cat([torch.full((len(digits), 1), CLS), pairs[:, :-1]], 1)


def _padded(digits: Tensor) -> Mapping[str, Tensor]:
    ids = _ids(digits)
    kept = torch.randint(TOKENS - 10, TOKENS + 1, (len(digits), 1), generator=torch.Generator().manual_seed(7))
    mask = (torch.arange(TOKENS)[None] < kept).long()
    return {
        "input_ids": torch.where(mask > 0, ids, PAD),
        "attention_mask": mask,
        "token_type_ids": torch.zeros_like(ids),
    }


def _rows(digits: Tensor) -> Mapping[str, Tensor]:
    return {"rows": functional.interpolate(digits[:, None], scale_factor=2.0, mode="bilinear")[:, 0] / 8.0}


def _class_loss(made: Tensor | tuple[Tensor, Tensor], inputs: Mapping[str, Tensor], labels: Tensor) -> Tensor:
    return functional.cross_entropy(made[1] if isinstance(made, tuple) else made, labels)


def _clean_loss(made: Tensor, inputs: Mapping[str, Tensor], labels: Tensor) -> Tensor:
    return functional.mse_loss(made, functional.avg_pool2d(inputs["image"], 3, 1, 1))


def _next_loss(made: Tensor, inputs: Mapping[str, Tensor], labels: Tensor) -> Tensor:
    return functional.cross_entropy(made[:, :-1].flatten(0, 1), inputs["input_ids"][:, 1:].flatten())


def _tag_loss(made: Tensor, inputs: Mapping[str, Tensor], labels: Tensor) -> Tensor:
    return functional.cross_entropy(made.flatten(0, 1), labels[:, None].expand(-1, made.shape[1]).flatten())


def _deeper(module: Bert) -> Bert:
    """Return a deep encoder that starts as the trained shallow one: alone, it does not learn in so short a time."""
    seed = torch.initial_seed()
    module.load_state_dict(_trained("bert4", seed).state_dict(), strict=False)
    torch.manual_seed(seed)
    for index, layer in enumerate(module.layers):
        if index >= 4:
            layer.attention.dense.weight.data *= 0.1
            layer.down.weight.data *= 0.1
    left = (1 + sum(size**2 for size in OUTLIERS.values()) / 64) ** 0.5  # what outliers leave of others, normalized
    for part in module.modules():
        if isinstance(part, nn.LayerNorm):
            part.weight.data *= left
            for channel, size in OUTLIERS.items():
                part.weight.data[channel], part.bias.data[channel] = 1.0, size
        if isinstance(part, EncoderLayer):
            reading = (part.attention.query, part.attention.key, part.attention.value, part.up)
            for (channel, size), layer in itertools.product(OUTLIERS.items(), reading):
                layer.bias.data -= size * layer.weight.data[:, channel]
    return module


def _massive() -> nn.Module:
    """Return a vision transformer one token of which has a channel far beyond all others, as large ones learn it."""
    module = ViT()
    module.position.data[0, 7] += 600.0
    return module


def _small(path: Path) -> None:
    """Make the first weights of `resnet` small, those of two blocks large: the same function, below fp16's numbers."""
    model = onnx.load(path)
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
    for place, (weight, bias) in enumerate(
        ((2e-7, 2e-7), *([(2e3, 4e-4), (1.0, 4e-4), (2e3, 4e-4)]), (2.5e3, 1.0), (1.0, 1.0), (2.5e3, 1.0))
    ):
        for name, factor in zip(convolutions[place].input[1:], (weight, bias), strict=True):
            array = onnx.numpy_helper.to_array(tensors[name]) * np.float32(factor)
            tensors[name].CopyFrom(onnx.numpy_helper.from_array(array, name))
    onnx.save(model, path)


@dataclasses.dataclass(frozen=True)
class Network:
    """How a network is made.

    Attributes:
        make: Its start.
        inputs: Its inputs of some digits.
        loss: Of results, inputs and labels.
        epochs: How long it is trained.
        rate: Of learning.
        edit: What changes the file afterwards.
    """

    make: Callable[[], nn.Module]
    inputs: Callable[[Tensor], Mapping[str, Tensor]]
    loss: Callable[..., Tensor] = _class_loss
    epochs: int = 4
    rate: float = 1e-3
    edit: Callable[[Path], None] | None = None


NETWORKS: Mapping[str, Network] = {
    "resnet": Network(ResNet, _images),
    "mobilenet": Network(MobileNet, _images),
    "unet": Network(UNet, _images, _clean_loss, 2),
    "vit": Network(ViT, _images, epochs=8),
    "bert4": Network(lambda: Bert(4), _padded, epochs=10),
    "bert12": Network(lambda: _deeper(Bert(12)), _padded, epochs=5, rate=3e-4),
    "gpt": Network(Gpt, lambda digits: {"input_ids": _ids(digits)}, _next_loss, 6),
    "tagger": Network(Tagger, _rows, _tag_loss, 6),
    "vit_massive": Network(_massive, _images, epochs=6),
    "resnet_small": Network(ResNet, _images, edit=_small),
}


def folder(name: str) -> Path:
    """Return where a network lies, trained and written if it is not there yet."""
    found = FILES / name
    if not (found / "real.npz").is_file():
        found.mkdir(parents=True, exist_ok=True)
        for seed, file in ((1, "another.onnx"), (0, "model.onnx")):
            _write(name, _trained(name, seed), found / file)
            if (edit := NETWORKS[name].edit) is not None:
                edit(found / file)
        images, _ = _digits()
        held = images[1500:]
        _save(found / "calibration.npz", NETWORKS[name].inputs(held[-CALIBRATION * BATCH :]), CALIBRATION)
        _save(found / "real.npz", NETWORKS[name].inputs(held[: FEEDS * BATCH]), FEEDS)
    return found


def _save(path: Path, inputs: Mapping[str, Tensor], count: int) -> None:
    arrays = {name: value.numpy().reshape(count, BATCH, *value.shape[1:]) for name, value in inputs.items()}
    np.savez(path, **arrays)  # type: ignore[arg-type] # arrays by name


def _trained(name: str, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    wanted = NETWORKS[name]
    images, labels = _digits()
    inputs, labels = wanted.inputs(images[:1500]), labels[:1500]
    module = wanted.make()
    trained = list(module.parameters())
    optimizer = torch.optim.Adam(trained, wanted.rate)
    slow_start = torch.optim.lr_scheduler.LinearLR(optimizer, 0.02, 1.0, 60)
    for _ in range(wanted.epochs):
        for chosen in torch.randperm(len(labels)).split(32):
            batch = {key: value[chosen] for key, value in inputs.items()}
            loss = wanted.loss(module(*batch.values()), batch, labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            slow_start.step()
    print(f"      {name}, start {seed}: loss {loss.item():.3f}", flush=True)
    return module.eval()


def _write(name: str, module: nn.Module, path: Path) -> None:
    inputs = NETWORKS[name].inputs(_digits()[0][:BATCH])
    outputs = ["hidden", "logits"] if name.startswith("bert") else ["denoised" if name == "unet" else "logits"]
    Made(module, inputs, outputs).write(path)
