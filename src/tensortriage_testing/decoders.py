"""Small decoders with a cache of keys and values, as exporters write GPT-2 and Llama, for questions about steps.

Every layer has its own mask and its own rotary tables' rows, so that a fault of one layer can be planted. Weights are
drawn as in `tensortriage_testing.models`: the logits depend on every layer, and the attention on every position.
"""

import math

import numpy as np

from tensortriage.engines.sdk import DType
from tensortriage_testing.graph_writer import GraphWriter, ModelProto, floats, integers

POSITIONS = 128
"""Longest sequence."""
_SHARPNESS = 1.5
"""Gain of queries and keys: attention that neither is uniform nor looks at one position alone."""


def gpt2_decoder(
    *, layers: int = 4, heads: int = 2, depth: int = 40, vocabulary: int = 101, seed: int = 0
) -> ModelProto:
    """Return a decoder with LayerNorm, learned positions and GELU; caches are ``past_key_values.N.key`` and so on.

    Inputs: ``input_ids [batch, sequence]``, ``attention_mask [batch, past + sequence]``, ``position_ids`` and the
    caches ``[batch, heads, past, depth]``; outputs: ``logits [batch, sequence, vocabulary]`` and ``present.N.key``.

    Args:
        layers: Decoder layers.
        heads: Attention heads.
        depth: Channels of a head.
        vocabulary: Number of token ids.
        seed: Seed of the weights.
    """
    return _Decoder(layers, heads, depth, vocabulary, seed, rotary=False).model()


def llama_decoder(
    *, layers: int = 4, heads: int = 2, depth: int = 40, vocabulary: int = 101, seed: int = 0
) -> ModelProto:
    """Return a decoder with RMSNorm, rotary positions and SwiGLU; caches are ``past_key_N`` and ``present_key_N``.

    Otherwise as `gpt2_decoder`.
    """
    return _Decoder(layers, heads, depth, vocabulary, seed, rotary=True).model()


class _Decoder:
    """Writes one decoder."""

    def __init__(self, layers: int, heads: int, depth: int, vocabulary: int, seed: int, *, rotary: bool) -> None:
        self.graph = GraphWriter(seed)
        self.layers, self.heads, self.depth, self.vocabulary = layers, heads, depth, vocabulary
        self.width = heads * depth
        self.rotary = rotary

    def model(self) -> ModelProto:
        g, width = self.graph, self.width
        words = g.normal("model.embed_tokens.weight", (self.vocabulary, width), 0.9)
        x = g.op("Gather", words, "input_ids", name="/model/embed_tokens/Gather", axis=0)
        if not self.rotary:
            table = g.normal("model.positions.weight", (POSITIONS, width), 0.4)
            place = g.op("Gather", table, "position_ids", name="/model/positions/Gather", axis=0)
            x = g.op("Add", x, place, name="/model/Add")
        visible = self._visible()
        inputs = [
            integers("input_ids", "batch", "sequence"),
            integers("attention_mask", "batch", "past + sequence"),
            integers("position_ids", "batch", "sequence"),
        ]
        outputs = [floats("logits", "batch", "sequence", self.vocabulary)]
        for layer in range(self.layers):
            x = self._layer(x, visible, layer)
            for word in ("key", "value"):
                past, present = self._cache(layer, word)
                inputs.append(floats(past, "batch", self.heads, "past", self.depth))
                outputs.append(floats(present, "batch", self.heads, "past + sequence", self.depth))
        x = self._norm(x, "/model/norm")
        g.op("MatMul", x, g.normal("lm_head.weight", (width, self.vocabulary), 2 / math.sqrt(width)), name="/lm_head")
        g.publish("logits")
        return g.finish("decoder", inputs, outputs)

    def _cache(self, layer: int, word: str) -> tuple[str, str]:
        if self.rotary:
            return f"past_{word}_{layer}", f"present_{word}_{layer}"
        return f"past_key_values.{layer}.{word}", f"present.{layer}.{word}"

    def _visible(self) -> str:
        """Return the keys that each query sees, ``[batch, 1, sequence, past + sequence]``: shown, and not after it."""
        g = self.graph
        size = g.op("Shape", "attention_mask", name="/model/mask/Shape")
        total = g.op("Gather", size, g.weight("one_axis", np.int64(1)), name="/model/mask/Gather", axis=0)
        keys = g.op("Range", g.weight("first", np.int64(0)), total, g.weight("step", np.int64(1)),
                    name="/model/mask/Range")  # fmt: skip
        given = g.op("Shape", "input_ids", name="/model/mask/Shape_1")
        count = g.op("Gather", given, g.weight("one_axis", np.int64(1)), name="/model/mask/Gather_1", axis=0)
        past = g.op("Sub", total, count, name="/model/mask/Sub")
        queries = g.op("Range", past, total, g.weight("step", np.int64(1)), name="/model/mask/Range_1")
        column = g.op("Unsqueeze", queries, g.indices("last_axis", 1), name="/model/mask/Unsqueeze")
        before = g.op("LessOrEqual", keys, column, name="/model/mask/LessOrEqual")
        shown = g.op("Cast", "attention_mask", name="/model/mask/Cast", to=DType.BOOL.value)
        shown = g.op("Unsqueeze", shown, g.indices("middle_axes", 1, 2), name="/model/mask/Unsqueeze_1")
        return g.op("And", before, shown, name="/model/mask/And")

    def _layer(self, x: str, visible: str, layer: int) -> str:
        g, name = self.graph, f"/model/layers.{layer}"
        attended = self._attention(self._norm(x, f"{name}/input_norm"), visible, layer)
        x = g.op("Add", x, attended, name=f"{name}/Add")
        fed = self._feed_forward(self._norm(x, f"{name}/post_norm"), f"{name}/mlp")
        return g.op("Add", x, fed, name=f"{name}/Add_1")

    def _attention(self, x: str, visible: str, layer: int) -> str:
        g, name = self.graph, f"/model/layers.{layer}/self_attn"
        query, key, value = (self._heads(x, f"{name}/{word}") for word in ("q_proj", "k_proj", "v_proj"))
        if self.rotary:
            query, key = self._rotated(query, key, name)
        caches = {}
        for word, new in (("key", key), ("value", value)):
            past, present = self._cache(layer, word)
            g.op("Concat", past, new, name=f"{name}/Concat_{word}", axis=2)
            caches[word] = g.publish(present)
        turned = g.op("Transpose", caches["key"], name=f"{name}/Transpose", perm=[0, 1, 3, 2])
        products = g.op("MatMul", query, turned, name=f"{name}/MatMul")
        scores = g.op("Mul", products, g.scalar("root", 1 / math.sqrt(self.depth)), name=f"{name}/Mul")
        masked = g.op("Where", visible, scores, g.scalar("hidden", -1e9), name=f"{name}/Where")
        weights = g.op("Softmax", masked, name=f"{name}/Softmax", axis=-1)
        mixed = g.op("MatMul", weights, caches["value"], name=f"{name}/MatMul_1")
        merged = g.op("Transpose", mixed, name=f"{name}/Transpose_1", perm=[0, 2, 1, 3])
        flat = g.op("Reshape", merged, g.indices("merged", 0, 0, self.width), name=f"{name}/Reshape")
        return self._linear(flat, f"{name}/o_proj", self.width, self.width, 1.0)

    def _heads(self, x: str, name: str) -> str:
        g = self.graph
        gain = 1.0 if name.endswith("v_proj") else _SHARPNESS
        flat = self._linear(x, name, self.width, self.width, gain)
        split = g.op("Reshape", flat, g.indices("split", 0, 0, self.heads, self.depth), name=f"{name}/Reshape")
        return g.op("Transpose", split, name=f"{name}/Transpose", perm=[0, 2, 1, 3])

    def _rotated(self, query: str, key: str, name: str) -> tuple[str, str]:
        """Turn pairs of channels by angles that grow with the position (Su et al., RoFormer, eq. 34)."""
        g, half = self.graph, self.depth // 2
        angles = np.outer(np.arange(POSITIONS), 10000.0 ** (-np.arange(half) / half))
        doubled = np.concatenate([angles, angles], axis=1)
        turns = []
        for word, table in (("cos", np.cos(doubled)), ("sin", np.sin(doubled))):
            rows = g.op("Gather", g.weight(f"rotary.{word}", table), "position_ids",
                        name=f"{name}/rotary/Gather_{word}", axis=0)  # fmt: skip
            turns.append(g.op("Unsqueeze", rows, g.indices("head_axis", 1), name=f"{name}/rotary/Unsqueeze_{word}"))
        cosine, sine = turns
        return (
            self._turned(query, cosine, sine, f"{name}/rotary/q"),
            self._turned(key, cosine, sine, f"{name}/rotary/k"),
        )

    def _turned(self, x: str, cosine: str, sine: str, name: str) -> str:
        g, half = self.graph, self.depth // 2
        ends = {"first_half": (0, half), "second_half": (half, self.depth)}
        first, second = (
            g.op("Slice", x, g.indices(f"{word}.start", low), g.indices(f"{word}.end", high),
                 g.indices("channels", 3), name=f"{name}/Slice_{word}")
            for word, (low, high) in ends.items()
        )  # fmt: skip
        negated = g.op("Neg", second, name=f"{name}/Neg")
        swapped = g.op("Concat", negated, first, name=f"{name}/Concat", axis=3)
        straight = g.op("Mul", x, cosine, name=f"{name}/Mul")
        across = g.op("Mul", swapped, sine, name=f"{name}/Mul_1")
        return g.op("Add", straight, across, name=f"{name}/Add")

    def _feed_forward(self, x: str, name: str) -> str:
        g, inner = self.graph, 3 * self.width // 2
        hidden = self._linear(x, f"{name}/up_proj", self.width, inner, 1.4)
        if self.rotary:
            gate = self._linear(x, f"{name}/gate_proj", self.width, inner, 1.4)
            opened = g.op("Sigmoid", gate, name=f"{name}/act/Sigmoid")
            hidden = g.op("Mul", g.op("Mul", gate, opened, name=f"{name}/act/Mul"), hidden, name=f"{name}/Mul")
        else:
            ratio = g.op("Div", hidden, g.scalar("root_two", math.sqrt(2)), name=f"{name}/act/Div")
            share = g.op("Add", g.op("Erf", ratio, name=f"{name}/act/Erf"), g.scalar("one", 1), name=f"{name}/act/Add")
            product = g.op("Mul", hidden, share, name=f"{name}/act/Mul")
            hidden = g.op("Mul", product, g.scalar("half", 0.5), name=f"{name}/act/Mul_1")
        return self._linear(hidden, f"{name}/down_proj", inner, self.width, 1.0)

    def _linear(self, x: str, name: str, fan_in: int, fan_out: int, gain: float) -> str:
        weight = self.graph.normal(f"{name}.weight", (fan_in, fan_out), gain / math.sqrt(fan_in))
        product = self.graph.op("MatMul", x, weight, name=f"{name}/MatMul")
        if self.rotary:
            return product
        return self.graph.op("Add", product, self.graph.normal(f"{name}.bias", (fan_out,), 0.02), name=f"{name}/Add")

    def _norm(self, x: str, name: str) -> str:
        g = self.graph
        gain = g.normal(f"{name}.weight", (self.width,), 0.1, mean=1)
        if not self.rotary:
            shift = g.normal(f"{name}.bias", (self.width,), 0.1)
            return g.op("LayerNormalization", x, gain, shift, name=f"{name}/LayerNormalization", axis=-1, epsilon=1e-5)
        square = g.op("Pow", x, g.scalar("two", 2), name=f"{name}/Pow")
        mean = g.op("ReduceMean", square, name=f"{name}/ReduceMean", axes=[-1], keepdims=1)
        root = g.op("Sqrt", g.op("Add", mean, g.scalar("epsilon", 1e-6), name=f"{name}/Add"), name=f"{name}/Sqrt")
        return g.op("Mul", g.op("Div", x, root, name=f"{name}/Div"), gain, name=f"{name}/Mul")
