"""Five networks that can be exported wrong, for `exporter_faults.py` and the engine ``torch``.

A network without a word is the truth; with one it computes what a wrong translation of one line would, so exporting it
writes what a faulty exporter would of the right one. Nothing of `networks` is imported: ``torch:FILE:NAME`` runs this.
"""

# ruff: noqa: D101, D102 - what they compute is all that there is to say of them

import functools
import math
from collections.abc import Callable

import torch
import torch.nn.functional as fn
from torch import Tensor, nn

Made = tuple[nn.Module, tuple[object, ...]]
WRONG: set[str] = set()  # words of what is translated wrong; empty for the truth


def pick(word: str, right: object, wrong: object) -> object:  # what a line uses: what is right, without its word
    return wrong if word in WRONG else right


def drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Block(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int = 1, size: int = 3) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inner, outer, size, stride, size // 2, bias=False)
        self.bn = nn.BatchNorm2d(outer)
        self.act = nn.SiLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.bn(self.conv(x)))


class Neck(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.lateral, self.merge = Block(2 * width, width, size=1), Block(2 * width, width)

    def forward(self, fine: Tensor, coarse: Tensor) -> Tensor:
        coarse = self.lateral(coarse)
        up = fn.interpolate(coarse, size=fine.shape[-2:], mode=pick("nearest", "nearest", "bilinear"))
        return self.merge(torch.cat([up, fine], 1))


class Head(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.box, self.classes = nn.Conv2d(width, 4, 1), nn.Conv2d(width, 5, 1)

    def forward(self, x: Tensor, stride: float) -> tuple[Tensor, Tensor]:
        rows, columns = torch.arange(x.shape[2]), torch.arange(x.shape[3])
        ys, xs = torch.meshgrid(rows, columns, indexing=pick("meshgrid", "ij", "xy"))
        grid = torch.stack([xs, ys], -1).reshape(1, -1, 2).to(x.dtype) + pick("half-pixel", 0.5, 0.0)
        box = self.box(x).flatten(2).transpose(1, 2)
        scores = self.classes(x).flatten(2).transpose(1, 2)
        scores = pick("sigmoid", torch.sigmoid, fn.hardsigmoid)(scores)
        centre = (grid + box[..., :2].tanh()) * stride
        half = box[..., 2:].exp() * stride * 2
        return torch.cat([centre - half, centre + half], -1), scores


class Suppression(nn.Module):
    def forward(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        best, _ = scores.max(-1)
        top, places = best.topk(100, dim=1)
        boxes = boxes.gather(1, places[..., None].expand(-1, -1, 4))
        low = torch.maximum(boxes[:, :, None, :2], boxes[:, None, :, :2])
        high = torch.minimum(boxes[:, :, None, 2:], boxes[:, None, :, 2:])
        shared = (high - low).clamp(min=pick("clamp", 0.0, -1e3)).prod(-1)
        area = (boxes[..., 2:] - boxes[..., :2]).prod(-1)
        overlap = shared / (area[:, :, None] + area[:, None, :] - shared)
        kept = overlap.triu(diagonal=pick("triu", 1, 2)).amax(1) <= 0.5
        return boxes, torch.where(kept, top, torch.zeros_like(top))


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.fine, self.coarse = Block(3, 8, 2), Block(8, 16, 2), Block(16, 32, 2)
        self.pool, self.neck = nn.MaxPool2d(5, 1, 2), Neck(16)
        self.heads, self.suppress = nn.ModuleList([Head(16), Head(32)]), Suppression()

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        coarse = self.coarse(fine := self.fine(self.stem(image)))
        coarse = coarse + self.pool(coarse)
        maps = (self.neck(fine, coarse), coarse)
        found = [head(x, stride) for head, x, stride in zip(self.heads, maps, (4.0, 8.0), strict=True)]
        return self.suppress(torch.cat([boxes for boxes, _ in found], 1), torch.cat([scores for _, scores in found], 1))


def detector() -> Made:
    module = Detector().eval()
    with torch.no_grad():
        for each in module.modules():
            if isinstance(each, nn.BatchNorm2d):
                each.running_mean.normal_(0, 0.1, generator=drawn(1))
                each.running_var.uniform_(0.5, 1.5, generator=drawn(2))
            if isinstance(each, Head):
                each.classes.weight.mul_(8)
    return module, (torch.randn(1, 3, 64, 48, generator=drawn(3)),)


class RmsNorm(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + pick("rms-epsilon", 1e-6, 1e-2)))


def rotated(x: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((second, -first) if "rotation" in WRONG else (-second, first), -1)


class Rotary(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("rates", 1e4 ** -(torch.arange(0, size, 2).float() / size), persistent=False)

    def forward(self, query: Tensor, key: Tensor, places: Tensor) -> tuple[Tensor, ...]:
        angle = places[:, None, :, None].float() * self.rates
        angle = torch.cat((angle, angle), -1)
        cos, sin = angle.cos(), angle.sin()
        return query * cos + rotated(query) * sin, key * cos + rotated(key) * sin


class Attention(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.q_proj, self.o_proj = nn.Linear(size, size, bias=False), nn.Linear(size, size, bias=False)
        self.k_proj, self.v_proj = nn.Linear(size, size // 2, bias=False), nn.Linear(size, size // 2, bias=False)
        self.rope = Rotary(size // 4)

    def forward(self, x: Tensor, places: Tensor, mask: Tensor, past: tuple[Tensor, ...]):
        query, key, value = (
            each(x).unflatten(2, (-1, x.shape[2] // 4)).transpose(1, 2)
            for each in (self.q_proj, self.k_proj, self.v_proj)
        )
        query, key = self.rope(query, key, places)
        key, value = torch.cat([past[0], key], 2), torch.cat([past[1], value], 2)
        keys = key.repeat(1, 2, 1, 1) if "head-order" in WRONG else key.repeat_interleave(2, 1)
        scale = pick("sdpa-scale", None, 0.5)
        found = fn.scaled_dot_product_attention(query, keys, value.repeat_interleave(2, 1), attn_mask=mask, scale=scale)
        return self.o_proj(found.transpose(1, 2).flatten(2)), key, value


class Gated(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(size, 64, bias=False), nn.Linear(size, 64, bias=False)
        self.down_proj = nn.Linear(64, size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate = pick("silu", fn.silu, fn.hardswish)(self.gate_proj(x))
        return self.down_proj(gate * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.input_norm, self.self_attn = RmsNorm(size), Attention(size)
        self.post_norm, self.mlp = RmsNorm(size), Gated(size)

    def forward(self, x: Tensor, places: Tensor, mask: Tensor, past: tuple[Tensor, ...]):
        attended, key, value = self.self_attn(self.input_norm(x), places, mask, past)
        x = x + attended
        return x + self.mlp(self.post_norm(x)), key, value


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens, self.layers = nn.Embedding(97, 32), nn.ModuleList(Layer(32) for _ in range(2))
        self.norm, self.lm_head = RmsNorm(32), nn.Linear(32, 97, bias=False)
        self.lm_head.weight = self.embed_tokens.weight

    def forward(self, ids: Tensor, past: list[tuple[Tensor, ...]]):
        words, before = ids.shape[1], past[0][0].shape[2]
        places = torch.arange(words) if "places" in WRONG else torch.arange(before, before + words)
        masked = torch.full((words, before + words), pick("mask-value", float("-inf"), 0.5))
        mask = masked.triu(diagonal=before + 1)
        x, cache = self.embed_tokens(ids), []
        for layer, each in zip(self.layers, past, strict=True):
            x, key, value = layer(x, places[None], mask, each)
            cache.append((key, value))
        return self.lm_head(self.norm(x)), cache


def decoder() -> Made:
    past = [tuple(torch.randn(1, 2, 3, 8, generator=drawn(seed)) for seed in pair) for pair in ((5, 6), (7, 8))]
    return Decoder().eval(), (torch.tensor([[5, 7, 11, 13, 17]]), past)


class Time(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self.fc = size, nn.Linear(size, size)

    def forward(self, t: Tensor) -> Tensor:
        half = self.size // 2
        rates = torch.exp(-math.log(pick("base", 1e4, 1e3)) * torch.arange(half) / half)
        angle = t[:, None].float() * rates[None]
        return self.fc(torch.cat([angle.sin(), angle.cos()], -1))


class Residual(nn.Module):
    def __init__(self, inner: int, outer: int, size: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, inner), nn.Conv2d(inner, outer, 3, padding=1)
        self.time, self.act = nn.Linear(size, outer), nn.GELU()
        self.norm2, self.conv2 = nn.GroupNorm(4, outer), nn.Conv2d(outer, outer, 3, padding=1)
        self.skip = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        inner = self.conv1(self.act(self.norm1(x))) + self.time(self.act(t))[:, :, None, None]
        return self.conv2(self.act(self.norm2(inner))) + self.skip(x)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.time, self.first = Time(16), nn.Conv2d(3, 8, 3, padding=1)
        self.high, self.low, self.joined = Residual(8, 8, 16), Residual(16, 16, 16), Residual(24, 8, 16)
        self.down, self.drop = nn.Conv2d(8, 16, 3, 2), nn.Dropout(0.1)
        self.up = nn.ConvTranspose2d(8, 8, 2, 2)
        self.last = nn.Sequential(nn.InstanceNorm2d(8, affine=True), nn.Hardswish(), nn.Conv2d(8, 3, 3, padding=1))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        waves = self.time(t)
        high = self.high(self.first(x), waves)
        padded = fn.pad(high, (1, 1, 1, 1), mode=pick("reflect", "reflect", "constant"))
        low, corners = self.drop(self.low(self.down(padded), waves)), pick("corners", False, True)
        low = fn.interpolate(low, size=high.shape[-2:], mode="bilinear", align_corners=corners)
        return self.last(self.up(self.joined(torch.cat([low, high], 1), waves)))


def unet() -> Made:
    module = UNet().eval()
    if "group-epsilon" in WRONG:
        module.low.norm2.eps = 0.05
    if "instance-epsilon" in WRONG:
        module.last[0].eps = 0.05
    if "gelu" in WRONG:
        module.high.act.approximate = "tanh"
    if "dropout" in WRONG:
        module.drop.train()
    if "transposed" in WRONG:
        module.up.weight.data = module.up.weight.data.transpose(2, 3).contiguous()
    return module, (torch.randn(1, 3, 17, 19, generator=drawn(3)), torch.tensor([37]))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(101, 32), nn.Embedding(16, 32)
        self.norm, self.hashed = nn.LayerNorm(32), Hashed()
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(32, 4, 64, 0.1, "gelu", batch_first=True) for _ in "ab")
        self.pool = Pooled()

    def forward(self, ids: Tensor, attended: Tensor) -> Tensor:
        x = self.norm(self.words(self.hashed(ids)) + self.places(torch.arange(ids.shape[1])))
        hidden = torch.zeros_like(attended) if "mask-dropped" in WRONG else 1 - attended
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=hidden.bool())
        return self.pool(x, attended)


class Hashed(nn.Module):
    def forward(self, ids: Tensor) -> Tensor:
        places = ids.to(pick("int32", torch.int64, torch.int32)) * 1_000_003 % 1009
        shifted = torch.div(places - 500, 7, rounding_mode=pick("division", "floor", "trunc"))
        return (shifted.long() + 500) % 101


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(64, 8)

    def forward(self, x: Tensor, attended: Tensor) -> Tensor:
        weight = attended[..., None].to(x.dtype)
        mean = (x * weight).sum(1) / pick("mean-of-all", weight.sum(1), torch.full((1, 1), float(x.shape[1])))
        spread = x.var(1, unbiased=pick("unbiased", True, False))
        return self.dense(torch.cat([mean, spread], -1)).tanh()


def encoder() -> Made:
    module = Encoder().eval()
    if "layer-epsilon" in WRONG:
        module.layers[1].norm1.eps = 0.05
    if "first-weight" in WRONG:  # as where two layers share a parameter by mistake
        module.layers[1].linear1.weight = module.layers[0].linear1.weight
    if "activation" in WRONG:
        module.layers[0].activation = nn.GELU(approximate="tanh")
    ids = torch.tensor([[3, 14, 2_800, 92, 65, 9_000, 0, 0]])
    return module, (ids, (ids > 0).long())


class Causal(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(6, 12, 3, dilation=2)

    def forward(self, x: Tensor) -> Tensor:
        padded = fn.pad(x, pick("causal", (4, 0), (2, 2)))
        return fn.leaky_relu(self.conv(padded), pick("slope", 0.2, 0.01))


class Quantized(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(10, 10)

    def forward(self, x: Tensor) -> Tensor:
        step, zero = pick("quantizer-scale", 0.02, 0.021), pick("zero-point", 0, 110)
        return self.proj(torch.fake_quantize_per_tensor_affine(x, step, zero, -128, 127))


class Running(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        total = x.cumsum(pick("cumsum-axis", 1, 2))
        count = torch.arange(1, x.shape[1] + 1, dtype=torch.float32)[None, :, None]
        return total / count + (x.mean(1, keepdim=True) if x.shape[1] > pick("branch", 8, 800) else 0.0)


class Audio(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.causal, self.gru = Causal(), nn.GRU(12, 10, batch_first=True)
        self.running, self.quantized, self.classify = Running(), Quantized(), nn.Linear(10, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.gru(self.causal(x).transpose(1, 2))[0]
        x = self.classify(self.quantized(self.running(x)))
        return x.log_softmax(pick("softmax-axis", -1, 1))


def audio() -> Made:
    return Audio().eval(), (torch.randn(1, 6, 12, generator=drawn(3)),)


def made(network: Callable[[], Made], *words: str) -> Made:
    WRONG.clear()
    WRONG.update(words)
    torch.manual_seed(0)
    return network()


right_detector, right_decoder, right_unet, right_encoder, right_audio = (
    functools.partial(made, each) for each in (detector, decoder, unet, encoder, audio)
)


class Used(nn.Module):
    def __init__(self, inner: nn.Module, word: str) -> None:
        super().__init__()
        self.inner, self.word = inner, word
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor, y: Tensor):
        x = (x - 0.45) / 0.225 if self.word == "prepared" else x
        found = self.inner(y, x) if self.word == "exchanged" else self.inner(x, y)
        found = found.softmax(-1) if self.word == "ended" else found
        if self.word == "noisy":
            return found + 0.1 * torch.randn_like(found)
        if self.word in ("remembering", "remembered"):
            self.calls = self.calls + 1
            return found * (1 + self.calls)
        return found


def used(network: Callable[[], Made], word: str) -> Made:
    torch.seed()
    module, inputs = network() if word == "unseeded" else made(network)
    if word in ("checkpoint", "trained"):
        generator = drawn(11)
        for weight in module.parameters():
            noise = torch.randn(weight.shape, generator=generator)
            weight.data.add_(noise, alpha=1.0 if word == "checkpoint" else 1e-3)
    module = Used(module, word).train(word == "training")
    if word == "remembered":
        module(*inputs)
    return module, inputs[::-1] if word == "exchanged" else inputs


MISTAKES = (  # of users
    "unseeded", "checkpoint", "trained", "training", "exchanged", "prepared", "ended", "noisy", "remembering",
    "remembered",
)  # fmt: skip
USED = {f"{word}_used_{each.__name__}": (each, word) for each in (unet, encoder) for word in ("right", *MISTAKES)}
globals().update({name: functools.partial(used, *given) for name, given in USED.items()})
