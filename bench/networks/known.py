"""Well-known architectures by transformers, small, with random weights: functions for the engine ``torch``, too.

Nothing of `networks` is imported at the top: ``torch:FILE:NAME`` runs this file alone.
"""

import torch
import transformers as tf
from torch import nn

Network = tuple[nn.Module, object]
TEXT = torch.arange(1, 9).reshape(1, 8)
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
READERS = {
    "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32, "decoder_ffn_dim": 32,
}  # fmt: skip
PLAIN = {"attn_implementation": "eager"}  # the newer exporter refuses views of what the fused one gives
OPSET = 18


class Outputs(nn.Module):
    """A network of which the tensors are returned that are named, and nothing else; inputs go by name or in order."""

    def __init__(self, inner: nn.Module, *names: str, given: tuple[str, ...] = (), **settings: object) -> None:
        super().__init__()
        self.inner, self.names, self.given, self.settings = inner, names, given, settings

    def forward(self, x: torch.Tensor, y: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        """Return what was asked for."""
        inputs = (x,) if y is None else (x, y)
        named = dict(zip(self.given, inputs, strict=True)) if self.given else {}
        found = self.inner(*(() if named else inputs), **named, **self.settings)
        return tuple(getattr(found, name) for name in self.names)


def _made(build: object, config: object, inputs: object, *names: str, **settings: object) -> Network:
    torch.manual_seed(0)
    return Outputs(build(config).eval(), *names, **settings).eval(), inputs


def _picture(size: int = 32) -> torch.Tensor:
    return torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(1))


def resnet() -> Network:
    config = tf.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[2, 2], layer_type="basic")
    return _made(tf.ResNetForImageClassification, config, _picture(), "logits")


def mobilenet_v2() -> Network:
    config = tf.MobileNetV2Config(depth_multiplier=0.25, image_size=64, num_labels=10)
    return _made(tf.MobileNetV2ForImageClassification, config, _picture(64), "logits")


def convnext() -> Network:
    config = tf.ConvNextConfig(hidden_sizes=[8, 16, 16, 16], depths=[1, 2, 1, 1], image_size=32)
    return _made(tf.ConvNextForImageClassification, config, _picture(), "logits")


def vit() -> Network:
    config = tf.ViTConfig(image_size=32, patch_size=8, **SMALL)
    return _made(tf.ViTForImageClassification, config, _picture(), "logits")


def swin() -> Network:
    config = tf.SwinConfig(
        image_size=32,
        patch_size=2,
        embed_dim=16,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=4,
        num_labels=10,
        **PLAIN,
    )
    return _made(tf.SwinForImageClassification, config, _picture(), "logits")


def detr() -> Network:
    backbone = tf.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", out_features=["stage2"]
    )
    config = tf.DetrConfig(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone_config=backbone, backbone=None, d_model=16,
        num_queries=5, **(READERS | {"encoder_layers": 1, "decoder_layers": 1}),
    )  # fmt: skip
    return _made(tf.DetrForObjectDetection, config, _picture(64), "logits", "pred_boxes")


def bert() -> Network:
    config = tf.BertConfig(vocab_size=64, max_position_embeddings=32, **SMALL)
    return _made(tf.BertModel, config, (TEXT, torch.ones_like(TEXT)), "last_hidden_state", "pooler_output")


def minilm() -> Network:
    """Return a BERT of the size of all-MiniLM-L6-v2, with one text of 16 words."""
    config = tf.BertConfig(
        vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    )
    text = torch.randint(0, 30522, (1, 16), generator=torch.Generator().manual_seed(1))
    return _made(tf.BertModel, config, (text, torch.ones_like(text)), "last_hidden_state", "pooler_output")


def gpt2() -> Network:
    config = tf.GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2)
    return _made(tf.GPT2LMHeadModel, config, TEXT, "logits", use_cache=False)


def gpt2_cached() -> Network:
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


def llama() -> Network:
    config = tf.LlamaConfig(
        vocab_size=64, max_position_embeddings=32, num_key_value_heads=1, tie_word_embeddings=False, **SMALL
    )
    return _made(tf.LlamaForCausalLM, config, TEXT, "logits", use_cache=False)


def whisper() -> Network:
    config = tf.WhisperConfig(
        vocab_size=64, d_model=32, max_source_positions=16, max_target_positions=16, num_mel_bins=8,
        decoder_start_token_id=1, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        **(READERS | {"encoder_ffn_dim": 64, "decoder_ffn_dim": 64}),
    )  # fmt: skip
    sound = torch.randn(1, 8, 32, generator=torch.Generator().manual_seed(1))
    given = ("input_features", "decoder_input_ids")
    build = tf.WhisperForConditionalGeneration
    return _made(build, config, (sound, TEXT[:, :4]), "logits", given=given, use_cache=False)


def t5() -> Network:
    config = tf.T5Config(
        vocab_size=64, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2, feed_forward_proj="gated-gelu",
        relative_attention_num_buckets=8, relative_attention_max_distance=16, decoder_start_token_id=0, **PLAIN,
    )  # fmt: skip
    given, build = ("input_ids", "decoder_input_ids"), tf.T5ForConditionalGeneration
    return _made(build, config, (TEXT, TEXT[:, :4]), "logits", given=given, use_cache=False)


def made(group: str, name: str) -> object:
    """Return one of the set `known`, for the newer exporter."""
    from networks.made import Made

    module, inputs = globals()[name]()
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    feed = {f"x{place}": value for place, value in enumerate(given)}
    return Made(module, feed, exporter="dynamo", options={"opset_version": OPSET})
