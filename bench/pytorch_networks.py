"""Small networks of well-known architectures with random weights, for the engine ``torch``: see `pytorch.py`."""

import torch
import transformers as tf
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


def mobilenet() -> Made:
    config = tf.MobileNetV2Config(image_size=32, depth_multiplier=0.35, min_depth=8)
    return _made(tf.MobileNetV2ForImageClassification, config, _picture(), "logits")


def convnext() -> Made:
    config = tf.ConvNextConfig(hidden_sizes=[8, 16, 16, 16], depths=[1, 2, 1, 1], image_size=32)
    return _made(tf.ConvNextForImageClassification, config, _picture(), "logits")


def vit() -> Made:
    config = tf.ViTConfig(image_size=32, patch_size=8, **PICTURE)
    return _made(tf.ViTForImageClassification, config, _picture(), "logits")


def swin() -> Made:
    config = tf.SwinConfig(image_size=32, patch_size=2, window_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4])
    return _made(tf.SwinForImageClassification, config, _picture(), "logits")


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


def gpt2() -> Made:
    config = tf.GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2)
    return _made(tf.GPT2LMHeadModel, config, TEXT, "logits", use_cache=False)


def llama() -> Made:
    config = tf.LlamaConfig(
        vocab_size=64, max_position_embeddings=32, num_key_value_heads=1, tie_word_embeddings=False, **PICTURE
    )
    return _made(tf.LlamaForCausalLM, config, TEXT, "logits", use_cache=False)


def t5() -> Made:
    config = tf.T5Config(
        vocab_size=64, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2, decoder_start_token_id=0
    )

    class Both(nn.Module):
        """Encoder and decoder."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = tf.T5ForConditionalGeneration(config)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return self.inner(input_ids=x, decoder_input_ids=y, use_cache=False).logits

    torch.manual_seed(0)
    return Both().eval(), (TEXT, TEXT[:, :4])


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
