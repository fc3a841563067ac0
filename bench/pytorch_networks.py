"""Small networks of well-known architectures with random weights, for the engine ``torch``: see `pytorch.py`."""

import math
from collections import OrderedDict

import torch
import transformers as tf
from swin_network import Swin
from torch import nn

Made = tuple[nn.Module, object]
TEXT = torch.arange(1, 9).reshape(1, 8)
PICTURE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


class Outputs(nn.Module):
    """A network of which the tensors are returned that are named, and nothing else."""

    def __init__(self, inner: nn.Module, *names: str, **settings: object) -> None:
        super().__init__()
        self.inner, self.names, self.settings = inner, names, settings

    def forward(self, x: torch.Tensor, y: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        """Return what was asked for."""
        given = (x,) if y is None else (x, y)
        found = self.inner(*given, **self.settings)
        return tuple(getattr(found, name) for name in self.names)


def _made(build: object, config: object, inputs: object, *names: str, **settings: object) -> Made:
    torch.manual_seed(0)
    inner = build(config).eval()
    return Outputs(inner, *names, **settings).eval(), inputs


def _picture(size: int = 32) -> torch.Tensor:
    return torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(1))


def resnet() -> Made:
    config = tf.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[2, 2], layer_type="basic")
    return _made(tf.ResNetForImageClassification, config, _picture(), "logits")


class SqueezeExcite(nn.Module):
    """Channels weighed by what is in all of the picture."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(width, width // 4, 1), nn.Conv2d(width // 4, width, 1)
        self.avgpool, self.act, self.scale = nn.AdaptiveAvgPool2d(1), nn.ReLU(), nn.Hardsigmoid()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x weighed."""
        return x * self.scale(self.fc2(self.act(self.fc1(self.avgpool(x)))))


class InvertedResidual(nn.Module):
    """Wide, depthwise and narrow again, beside a shortcut where sizes allow it."""

    def __init__(self, width: int, wide: int, out: int, side: int, stride: int, act: type[nn.Module], se: bool) -> None:
        super().__init__()

        def conv(start: int, end: int, size: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
            convolution = nn.Conv2d(start, end, size, stride, size // 2, groups=groups, bias=False)
            return [convolution, nn.BatchNorm2d(end, eps=1e-3)]

        parts = [*conv(width, wide, 1), act()] if wide != width else []
        parts += [*conv(wide, wide, side, stride, wide), act()] + ([SqueezeExcite(wide)] if se else [])
        self.block, self.shortcut = nn.Sequential(*parts, *conv(wide, out, 1)), stride == 1 and width == out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a map, of half the sides with a stride of 2."""
        return x + self.block(x) if self.shortcut else self.block(x)


def mobilenet_v3() -> Made:
    """Return MobileNetV3-Small at a quarter of its width, its eleven blocks as in table 2 of arXiv:1905.02244."""
    small, hard = nn.ReLU, nn.Hardswish
    table = (
        (3, 16, 16, True, small, 2), (3, 72, 24, False, small, 2), (3, 88, 24, False, small, 1),
        (5, 96, 40, True, hard, 2), (5, 240, 40, True, hard, 1), (5, 240, 40, True, hard, 1),
        (5, 120, 48, True, hard, 1), (5, 144, 48, True, hard, 1), (5, 288, 96, True, hard, 2),
        (5, 576, 96, True, hard, 1), (5, 576, 96, True, hard, 1),
    )  # fmt: skip
    torch.manual_seed(0)
    blocks, width = [], 4
    for side, wide, out, se, act, stride in table:
        blocks.append(InvertedResidual(width, wide // 4, out // 4, side, stride, act, se))
        width = out // 4
    network = nn.Sequential(
        OrderedDict(
            stem=nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1, bias=False), nn.BatchNorm2d(4, eps=1e-3), nn.Hardswish()),
            features=nn.Sequential(*blocks),
            last=nn.Sequential(nn.Conv2d(width, 144, 1, bias=False), nn.BatchNorm2d(144, eps=1e-3), nn.Hardswish()),
            pool=nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
            classifier=nn.Sequential(nn.Linear(144, 256), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(256, 10)),
        )
    )
    return network.eval(), _picture(64)


def convnext() -> Made:
    config = tf.ConvNextConfig(hidden_sizes=[8, 16, 16, 16], depths=[1, 2, 1, 1], image_size=32)
    return _made(tf.ConvNextForImageClassification, config, _picture(), "logits")


def vit() -> Made:
    config = tf.ViTConfig(image_size=32, patch_size=8, **PICTURE)
    return _made(tf.ViTForImageClassification, config, _picture(), "logits")


def detr() -> Made:
    backbone = tf.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", out_features=["stage2"]
    )
    config = tf.DetrConfig(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone_config=backbone, backbone=None, d_model=16,
        encoder_layers=1, decoder_layers=1, encoder_ffn_dim=32, decoder_ffn_dim=32, encoder_attention_heads=2,
        decoder_attention_heads=2, num_queries=5,
    )  # fmt: skip
    return _made(tf.DetrForObjectDetection, config, _picture(64), "logits", "pred_boxes")


class UNet(nn.Module):
    """Down, attention in the middle with the time of the diffusion, and up again beside shortcuts."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1, width * 2), nn.SiLU(), nn.Linear(width * 2, width * 2))
        self.start = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.Sequential(nn.GroupNorm(2, width), nn.SiLU(), nn.Conv2d(width, width * 2, 3, 2, 1))
        self.attention = nn.MultiheadAttention(width * 2, 2, batch_first=True)
        self.up = nn.Sequential(nn.Upsample(scale_factor=2.0), nn.Conv2d(width * 2, width, 3, padding=1))
        self.end = nn.Sequential(nn.GroupNorm(2, width * 2), nn.SiLU(), nn.Conv2d(width * 2, 3, 3, padding=1))

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        """Return a picture of the size of x."""
        first = self.start(x)
        inner = self.down(first) + self.time(t)[:, :, None, None]
        words = inner.flatten(2).transpose(1, 2)
        inner = inner + self.attention(words, words, words, need_weights=False)[0].transpose(1, 2).reshape(inner.shape)
        return self.end(torch.cat((self.up(inner), first), dim=1))


def unet() -> Made:
    torch.manual_seed(0)
    return UNet().eval(), (_picture(16), torch.tensor([[0.3]]))


def bert() -> Made:
    config = tf.BertConfig(vocab_size=64, max_position_embeddings=32, **PICTURE)
    return _made(tf.BertModel, config, (TEXT, torch.ones_like(TEXT)), "last_hidden_state", "pooler_output")


def minilm() -> Made:
    """Return a BERT of the size of all-MiniLM-L6-v2, with one text of 16 words."""
    config = tf.BertConfig(
        vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    )
    text = torch.randint(0, 30522, (1, 16), generator=torch.Generator().manual_seed(1))
    return _made(tf.BertModel, config, (text, torch.ones_like(text)), "last_hidden_state", "pooler_output")


def gpt2() -> Made:
    config = tf.GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2)
    return _made(tf.GPT2LMHeadModel, config, TEXT, "logits", use_cache=False)


def gpt2_cached() -> Made:
    """Return GPT-2 with the keys and values of the words before, in and out."""
    config = tf.GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2)

    class Cached(nn.Module):
        """One more word."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = tf.GPT2LMHeadModel(config)

        def forward(self, x: torch.Tensor, past: list[tuple[torch.Tensor, torch.Tensor]]) -> object:
            cache = tf.DynamicCache()
            for place, (key, value) in enumerate(past):
                cache.update(key, value, place)
            found = self.inner(x, past_key_values=cache, use_cache=True)
            return found.logits, [(each.keys, each.values) for each in found.past_key_values.layers]

    torch.manual_seed(0)
    past = [(torch.randn(1, 2, 7, 16), torch.randn(1, 2, 7, 16)) for _ in range(2)]
    return Cached().eval(), (torch.tensor([[5]]), past)


def llama() -> Made:
    config = tf.LlamaConfig(
        vocab_size=64, max_position_embeddings=32, num_key_value_heads=1, tie_word_embeddings=False, **PICTURE
    )
    return _made(tf.LlamaForCausalLM, config, TEXT, "logits", use_cache=False)


def whisper() -> Made:
    config = tf.WhisperConfig(
        vocab_size=64, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=16,
        max_target_positions=16, num_mel_bins=8, decoder_start_token_id=1, pad_token_id=0, bos_token_id=1,
        eos_token_id=2,
    )  # fmt: skip

    class Both(nn.Module):
        """Encoder and decoder."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = tf.WhisperForConditionalGeneration(config)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return self.inner(input_features=x, decoder_input_ids=y, use_cache=False).logits

    torch.manual_seed(0)
    return Both().eval(), (torch.randn(1, 8, 32), TEXT[:, :4])


class RootNorm(nn.Module):
    """T5's normalization: by the root mean square, without a mean."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x normalized."""
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class RelativeBias(nn.Module):
    """What T5 adds to scores: a number per head and bucket of distances, exact when near, logarithmic when far."""

    def __init__(self, heads: int, *, both_ways: bool, buckets: int = 8, farthest: int = 16) -> None:
        super().__init__()
        self.table, self.both_ways, self.buckets, self.farthest = (
            nn.Embedding(buckets, heads),
            both_ways,
            buckets,
            farthest,
        )

    def forward(self, queries: int, keys: int) -> torch.Tensor:
        """Return ``[1, heads, queries, keys]``."""
        distance = torch.arange(keys)[None] - torch.arange(queries)[:, None]
        buckets, start = self.buckets, torch.zeros_like(distance)
        if self.both_ways:
            buckets //= 2
            start = (distance > 0).long() * buckets
            distance = distance.abs()
        else:
            distance = -distance.clamp(max=0)
        near = buckets // 2
        ratio = torch.log(distance.float().clamp(min=1) / near) / math.log(self.farthest / near)
        far = (near + (ratio * (buckets - near)).long()).clamp(max=buckets - 1)
        return self.table(start + torch.where(distance < near, distance, far)).permute(2, 0, 1)[None]


class T5Attention(nn.Module):
    """Attention without a scale, of words to themselves or to others."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norm = heads, RootNorm(size)
        self.q, self.k, self.v, self.o = (nn.Linear(size, size, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor, other: torch.Tensor | None, bias: torch.Tensor | None) -> torch.Tensor:
        """Return x with what was attended to added."""
        inner = self.norm(x)
        given = inner if other is None else other
        query, key, value = (
            project(each).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for project, each in ((self.q, inner), (self.k, given), (self.v, given))
        )
        scores = query @ key.transpose(2, 3)
        scores = scores if bias is None else scores + bias
        return x + self.o((scores.float().softmax(-1).type_as(x) @ value).transpose(1, 2).flatten(2))


class T5Block(nn.Module):
    """Attention to itself, in the decoder to the encoder, and a gated perceptron."""

    def __init__(self, size: int, heads: int, *, decoder: bool) -> None:
        super().__init__()
        self.own, self.cross = T5Attention(size, heads), T5Attention(size, heads) if decoder else None
        self.norm, self.act = RootNorm(size), nn.GELU(approximate="tanh")
        self.wi_0, self.wi_1, self.wo = (
            nn.Linear(*sizes, bias=False) for sizes in ((size, 2 * size), (size, 2 * size), (2 * size, size))
        )

    def forward(self, x: torch.Tensor, bias: torch.Tensor, encoded: torch.Tensor | None = None) -> torch.Tensor:
        """Return the words, further."""
        x = self.own(x, None, bias)
        if self.cross is not None:
            x = self.cross(x, encoded, None)
        inner = self.norm(x)
        return x + self.wo(self.act(self.wi_0(inner)) * self.wi_1(inner))


class T5(nn.Module):
    """Encoder and decoder with one table of words, tied to the scores."""

    def __init__(self, size: int = 32, heads: int = 2, layers: int = 2, words: int = 64) -> None:
        super().__init__()
        self.shared = nn.Embedding(words, size)
        self.encoder = nn.ModuleList(T5Block(size, heads, decoder=False) for _ in range(layers))
        self.decoder = nn.ModuleList(T5Block(size, heads, decoder=True) for _ in range(layers))
        self.encoder_bias, self.decoder_bias = RelativeBias(heads, both_ways=True), RelativeBias(heads, both_ways=False)
        self.encoder_norm, self.decoder_norm = RootNorm(size), RootNorm(size)
        self.lm_head = nn.Linear(size, words, bias=False)
        self.lm_head.weight = self.shared.weight

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return scores of the words after y."""
        length, more = x.shape[1], y.shape[1]
        encoded, bias = self.shared(x), self.encoder_bias(length, length)
        for block in self.encoder:
            encoded = block(encoded, bias)
        encoded = self.encoder_norm(encoded)
        causal = torch.full((more, more), torch.finfo(torch.float32).min).triu(1)
        decoded, bias = self.shared(y), self.decoder_bias(more, more) + causal
        for block in self.decoder:
            decoded = block(decoded, bias, encoded)
        return self.lm_head(self.decoder_norm(decoded) * decoded.shape[-1] ** -0.5)


def t5() -> Made:
    torch.manual_seed(0)
    return T5().eval(), (TEXT, TEXT[:, :4])


def swin() -> Made:
    torch.manual_seed(0)
    return Swin().eval(), _picture()
