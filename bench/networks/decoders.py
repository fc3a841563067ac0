"""Small decoders of seven families with random weights, as PyTorch's exporters and Optimum write them."""

import dataclasses
import itertools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import torch
import transformers
from onnx import TensorProto, compose, helper
from transformers.cache_utils import DynamicCache, EncoderDecoderCache, LinearAttentionLayer

from networks.made import Made

LAYERS, WIDTH, HEADS, WORDS, KERNEL = 2, 48, 4, 97, 4
ENCODER, PAST, NEW, BATCH, WINDOW = 7, 5, 3, 2, 6
"""Sizes while exporting; all but the last stay open."""

Axes = Mapping[int, str]


@dataclasses.dataclass(frozen=True)
class Form:
    """What is exported: a network, what it takes and gives.

    Attributes:
        network: Takes the inputs in order, caches as a list at the end.
        inputs: Tensors, with the names of their open axes, by name.
        outputs: Names of open axes by name.
        caches: Likewise, what the list of caches holds.
    """

    network: torch.nn.Module
    inputs: Mapping[str, tuple[torch.Tensor, Axes]]
    outputs: Mapping[str, Axes]
    caches: Mapping[str, tuple[torch.Tensor, Axes]]

    def first(self) -> "Form":
        """Return the same of a first step, which gets no caches."""
        inputs = {name: (tensor[:, -NEW:].contiguous(), axes) for name, (tensor, axes) in self.inputs.items()}
        return dataclasses.replace(self, inputs=inputs, caches={})

    def made(self, exporter: str) -> Made:
        """Return the network with its axes open, for one of PyTorch's exporters."""
        feed: dict[str, object] = {name: tensor for name, (tensor, _) in self.inputs.items()}
        if self.caches:
            feed["caches"] = [tensor for tensor, _ in self.caches.values()]
        axes = {name: dict(axes) for name, (_, axes) in (*self.inputs.items(), *self.caches.items())}
        options: dict[str, object] = {"dynamic_axes": axes | {name: dict(axes) for name, axes in self.outputs.items()}}
        if exporter == "dynamo":
            free = [dict.fromkeys(each, torch.export.Dim.AUTO) for each in axes.values()]
            count = len(self.inputs)
            options = {"dynamic_shapes": ((*free[:count], *([free[count:]] if self.caches else [])),)}
        return Made(self.network.eval(), feed, list(self.outputs), exporter, options, list(axes))


class Step(torch.nn.Module):
    """A network whose caches are a list of tensors."""

    def __init__(self, inner: torch.nn.Module, run: Callable[..., tuple[torch.Tensor, ...]]) -> None:
        super().__init__()
        self.inner, self.run = inner, run

    def forward(self, *given: torch.Tensor | Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Return logits and what the caches hold now."""
        return self.run(self.inner, *given)


IDS = {0: "batch", 1: "sequence"}
TOTAL = {0: "batch", 1: "past + sequence"}
OLD, GROWN = {0: "batch", 2: "past"}, {0: "batch", 2: "past + sequence"}
SEEN = {0: "batch", 1: "encoder_sequence"}
CROSS = {0: "batch", 2: "encoder_sequence_out"}


def _ids(count: int = NEW) -> torch.Tensor:
    return torch.randint(0, WORDS, (BATCH, count))


def _cache(pairs: Sequence[torch.Tensor]) -> DynamicCache:
    cache = DynamicCache()
    for layer, (key, value) in enumerate(zip(pairs[::2], pairs[1::2], strict=True)):
        cache.update(key, value, layer)
    return cache


def _held(cache: DynamicCache) -> list[torch.Tensor]:
    return [array for layer in cache.layers for array in (layer.keys, layer.values)]


def _causal(
    inner: torch.nn.Module,
    ids: torch.Tensor,
    mask: torch.Tensor,
    positions: torch.Tensor,
    past: Sequence[torch.Tensor] = (),
) -> tuple[torch.Tensor, ...]:
    found = inner(
        input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=_cache(past), use_cache=True
    )
    return found.logits, *_held(found.past_key_values)


def _causal_form(inner: torch.nn.Module, heads: int) -> Form:
    rows = [torch.randn(BATCH, heads, PAST, WIDTH // HEADS) for _ in range(2 * LAYERS)]
    parts = [f"{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value")]
    inputs = {
        "input_ids": (_ids(), IDS),
        "attention_mask": (torch.ones(BATCH, PAST + NEW, dtype=torch.int64), TOTAL),
        "position_ids": (torch.arange(PAST, PAST + NEW).expand(BATCH, NEW).clone(), IDS),
    }
    caches = {f"past_key_values.{part}": (row, OLD) for part, row in zip(parts, rows, strict=True)}
    outputs = {"logits": IDS, **{f"present.{part}": GROWN for part in parts}}
    return Form(Step(inner, _causal), inputs, outputs, caches)


def llama() -> Form:
    """Rotary positions, RMSNorm, grouped queries."""
    config = transformers.LlamaConfig(
        num_hidden_layers=LAYERS, hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_attention_heads=HEADS,
        num_key_value_heads=2, vocab_size=WORDS, max_position_embeddings=128,
    )  # fmt: skip
    return _causal_form(transformers.LlamaForCausalLM(config), 2)


def gpt2() -> Form:
    """Learned positions, LayerNorm, GELU."""
    config = transformers.GPT2Config(n_layer=LAYERS, n_embd=WIDTH, n_head=HEADS, vocab_size=WORDS, n_positions=128)
    return _causal_form(transformers.GPT2LMHeadModel(config), HEADS)


def mistral() -> Form:
    """Attention that sees the last positions alone, in a cache that keeps all."""
    config = transformers.MistralConfig(
        num_hidden_layers=LAYERS, hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_attention_heads=HEADS,
        num_key_value_heads=2, vocab_size=WORDS, max_position_embeddings=128, sliding_window=WINDOW,
    )  # fmt: skip
    return _causal_form(transformers.MistralForCausalLM(config), 2)


@dataclasses.dataclass(frozen=True)
class Seq2Seq:
    """An encoder-decoder: Optimum exports its decoder twice, and merges both."""

    inner: torch.nn.Module
    heads: int
    mask: bool = True
    positions: bool = False

    def form(self, *, first: bool) -> Form:
        """Return the decoder that makes its cross-attention caches, or the one that gets them and gives them not."""
        inputs = {"input_ids": (_ids(), {0: "batch", 1: "sequence"})}
        if self.mask:
            inputs["encoder_attention_mask"] = torch.ones(BATCH, ENCODER, dtype=torch.int64), SEEN
        if first:
            inputs["encoder_hidden_states"] = torch.randn(BATCH, ENCODER, WIDTH), SEEN
        if self.positions:
            inputs["cache_position"] = torch.arange(0 if first else PAST, NEW + (0 if first else PAST)), {0: "sequence"}
        caches, outputs = {}, {"logits": IDS}
        for layer, side, part in itertools.product(range(LAYERS), ("decoder", "encoder"), ("key", "value")):
            rows = PAST if side == "decoder" else ENCODER
            axes = OLD if side == "decoder" else CROSS
            if not first:
                held = torch.randn(BATCH, self.heads, rows, WIDTH // self.heads)
                caches[f"past_key_values.{layer}.{side}.{part}"] = held, axes
            if first or side == "decoder":
                outputs[f"present.{layer}.{side}.{part}"] = GROWN if side == "decoder" else CROSS
        return Form(Step(self.inner, self._run(list(inputs))), inputs, outputs, caches)

    def _run(self, names: Sequence[str]) -> Callable[..., tuple[torch.Tensor, ...]]:
        def run(inner: torch.nn.Module, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
            named = dict(zip(names, given, strict=False))
            past = given[len(names)] if len(given) > len(names) else ()
            own = [array for layer in range(len(past) // 4) for array in past[4 * layer : 4 * layer + 2]]
            cross = [array for layer in range(len(past) // 4) for array in past[4 * layer + 2 : 4 * layer + 4]]
            cache = EncoderDecoderCache(_cache(own), _cache(cross))
            first = named.get("encoder_hidden_states")
            unused = torch.zeros(given[0].shape[0], ENCODER, WIDTH) if first is None else first
            told = {}
            if self.positions:
                told["decoder_position_ids"] = named["cache_position"].unsqueeze(0)
            if self.mask:
                told["attention_mask"] = named["encoder_attention_mask"]
                unused = unused if first is not None else torch.zeros(*named["encoder_attention_mask"].shape, WIDTH)
            outputs = transformers.modeling_outputs.BaseModelOutput(last_hidden_state=unused)
            found = inner(
                encoder_outputs=outputs, decoder_input_ids=given[0], past_key_values=cache, use_cache=True, **told
            )
            made = found.past_key_values
            sides = (made.self_attention_cache, made.cross_attention_cache)[: 1 if past else 2]
            layers = [side.layers[layer] for layer in range(LAYERS) for side in sides]
            return found.logits, *(array for layer in layers for array in (layer.keys, layer.values))

        return run


def t5() -> Seq2Seq:
    """Relative positions in buckets, RMSNorm, no scaling."""
    config = transformers.T5Config(
        num_layers=LAYERS, num_decoder_layers=LAYERS, d_model=WIDTH, d_kv=WIDTH // HEADS, d_ff=2 * WIDTH,
        num_heads=HEADS, vocab_size=WORDS, decoder_start_token_id=0,
    )  # fmt: skip
    return Seq2Seq(transformers.T5ForConditionalGeneration(config), HEADS)


def bart() -> Seq2Seq:
    """Learned positions counted from the cache, LayerNorm behind."""
    config = transformers.BartConfig(
        encoder_layers=LAYERS, decoder_layers=LAYERS, d_model=WIDTH, encoder_ffn_dim=2 * WIDTH,
        decoder_ffn_dim=2 * WIDTH,
        encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, vocab_size=WORDS, max_position_embeddings=128,
    )  # fmt: skip
    return Seq2Seq(transformers.BartForConditionalGeneration(config), HEADS)


def whisper() -> Seq2Seq:
    """Speech: the decoder is told positions, and sees all that was heard."""
    config = transformers.WhisperConfig(
        encoder_layers=LAYERS, decoder_layers=LAYERS, d_model=WIDTH, encoder_ffn_dim=2 * WIDTH,
        decoder_ffn_dim=2 * WIDTH,
        encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, vocab_size=WORDS, max_target_positions=64,
        max_source_positions=16, num_mel_bins=8, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=3,
    )  # fmt: skip
    return Seq2Seq(transformers.WhisperForConditionalGeneration(config), HEADS, mask=False, positions=True)


def mamba() -> Form:
    """A state-space model, a token a step: states of a convolution and of a recurrence, both rewritten at each step."""
    config = transformers.MambaConfig(
        num_hidden_layers=LAYERS, hidden_size=WIDTH, state_size=8, conv_kernel=KERNEL, vocab_size=WORDS
    )

    def run(inner: torch.nn.Module, ids: torch.Tensor, states: Sequence[torch.Tensor] = ()) -> tuple[torch.Tensor, ...]:
        cache = DynamicCache(config=config)
        states = states or [torch.zeros(ids.shape[0], inside, size) for _ in range(LAYERS) for size in (KERNEL, 8)]
        for layer in range(LAYERS):
            held = LinearAttentionLayer()
            held.conv_states[0], held.recurrent_states[0] = states[2 * layer].clone(), states[2 * layer + 1].clone()
            held.is_conv_states_initialized[0] = held.is_recurrent_states_initialized[0] = True
            held.has_previous_state[0] = True
            held.conv_kernel_size[0] = KERNEL
            held.dtype, held.device = ids.dtype, ids.device
            cache.layers[layer] = held
        found = inner(input_ids=ids, cache=cache, use_cache=True)
        return found.logits, *(x for each in cache.layers for x in (each.conv_states[0], each.recurrent_states[0]))

    axes, inside = {0: "batch"}, 2 * WIDTH
    caches, outputs = {}, {"logits": axes}
    for layer in range(LAYERS):
        for name, size in (("conv", KERNEL), ("ssm", 8)):
            caches[f"past_{name}_states.{layer}"] = torch.randn(BATCH, inside, size), axes
            outputs[f"present_{name}_states.{layer}"] = axes
    return Form(Step(transformers.MambaForCausalLM(config), run), {"input_ids": (_ids(1), axes)}, outputs, caches)


FAMILIES: Mapping[str, Callable[[], Form | Seq2Seq]] = {
    "llama": llama, "gpt2": gpt2, "mistral": mistral, "t5": t5, "bart": bart, "whisper": whisper, "mamba": mamba,
}  # fmt: skip


NETWORKS: Mapping[str, tuple[str, str, str]] = {
    "bart-merged": ("bart", "legacy", "merged"),
    "t5-merged": ("t5", "legacy", "merged"),
    "whisper-merged": ("whisper", "dynamo", "merged"),
    "llama": ("llama", "dynamo", ""),
    "gpt2": ("gpt2", "legacy", ""),
    "mamba": ("mamba", "dynamo", ""),
}
"""Family, exporter and kind, by name."""


def made(group: str, name: str) -> Made:
    """Return one of the set `decoders`, with the inputs of a later step."""
    family, exporter, kind = NETWORKS[name]
    with tempfile.TemporaryDirectory() as folder:
        model = onnx.load(export(family, exporter, Path(folder) / "decoder.onnx", kind=kind))
    maker = FAMILIES[family]()
    later = (maker if isinstance(maker, Form) else maker.form(first=False)).made(exporter).arrays()
    if kind == "merged":
        first = maker.form(first=True).made(exporter).arrays()  # what the first step alone takes
        later = first | later | {"use_cache_branch": np.array([True])}
    return Made(model, later)


def export(family: str, exporter: str, path: Path, *, kind: str = "", gain: float = 2.5, seed: int = 0) -> Path:
    """Export a decoder.

    Args:
        family: A name of `FAMILIES`.
        exporter: ``legacy`` or ``dynamo``.
        path: The file.
        kind: ``merged`` of two, or of an encoder-decoder ``with-past``.
        gain: Of weights, so that every layer and position counts.
        seed: Of weights.
    """
    torch.manual_seed(seed)
    made = FAMILIES[family]()
    inner = made.inner if isinstance(made, Seq2Seq) else made.network
    inner.eval()
    with torch.no_grad():
        for weight in inner.parameters():
            if weight.ndim > 1:
                weight.mul_(gain)
    if kind == "merged":
        forms = (made.first(), made) if isinstance(made, Form) else (made.form(first=True), made.form(first=False))
        parts = []
        with tempfile.TemporaryDirectory() as name:
            for form in forms:
                form.made(exporter).write(Path(name) / "part.onnx")
                parts.append(onnx.load(Path(name) / "part.onnx"))
        onnx.save(merged(*parts), path)
    else:
        (made if isinstance(made, Form) else made.form(first=False)).made(exporter).write(path)
    return path


def merged(first: onnx.ModelProto, later: onnx.ModelProto) -> onnx.ModelProto:
    """Return both in one, as Optimum merges them: what the later one does not give is empty."""
    given = {value.name for value in later.graph.output}
    lacking = [value for value in first.graph.output if value.name not in given]
    order = {value.name: place for place, value in enumerate(first.graph.output)}
    branches, inputs, weights = [], {}, []
    for word, model in (("later", later), ("first", first)):
        graph = compose.add_prefix_graph(model.graph, f"{word}/", rename_inputs=False, rename_outputs=False)
        for value in lacking if word == "later" else ():
            sizes = [d.dim_value for d in value.type.tensor_type.shape.dim]
            tensor = helper.make_tensor("empty", TensorProto.FLOAT, [0, *(size or 1 for size in sizes[1:])], [])
            name = f"{word}/{value.name}"
            graph.node.append(helper.make_node("Constant", [], [name], value=tensor, name=f"{name}/Constant"))
            graph.output.append(value)
        outputs = sorted(graph.output, key=lambda value: order[value.name])
        for node in graph.node:
            for names in (node.output, node.input):
                names[:] = [f"{word}/{name}" if name in order else name for name in names]
        for value in outputs:
            value.name = f"{word}/{value.name}"
        inputs |= {value.name: value for value in graph.input}
        weights.extend(graph.initializer)
        branches.append(helper.make_graph(graph.node, word, [], outputs))
    node = helper.make_node(
        "If", ["use_cache_branch"], list(order), name="optimum::if", then_branch=branches[0], else_branch=branches[1]
    )
    flag = helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1])
    graph = helper.make_graph([node], "merged", [*inputs.values(), flag], first.graph.output, weights)
    return helper.make_model(
        graph, opset_imports=first.opset_import, ir_version=min(first.ir_version, 10), functions=[*first.functions]
    )
