"""Bodies of attention; every expected value is what ONNX Runtime's CPU kernel gives."""

import onnx
import pytest

from runtime_operators import same_as_the_kernel, written
from tensortriage.model.model import Model
from tensortriage.model.operator_bodies.replace_nodes import with_bodies

QKV = "float[2,3,8] q, float[2,5,8] k, float[2,5,8] v"
CASES = {
    "MultiHeadAttention": f"({QKV}, float[24] b, int32[2,5] mask, float[1,2,3,5] bias) => (float[?] y) "
    "{ y = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, v, b, mask, bias) }",
    "MultiHeadAttention, values of another size": "(float[2,3,8] q, float[2,5,8] k, float[2,5,12] v, float[28] b) => "
    "(float[?] y) { y = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, v, b) }",
    "MultiHeadAttention, causal after a past": "(float[2,3,8] q, float[2,3,8] k, float[2,3,8] v, float[2,2,4,4] pk, "
    "float[2,2,4,4] pv) => (float[?] y, float[?] ok, float[?] ov) { y, ok, ov = "
    "com.microsoft.MultiHeadAttention <num_heads = 2, unidirectional = 1, scale = 0.3> (q, k, v, , , , pk, pv) }",
    "Attention": "(float[2,3,8] x, int32[2,3] mask) => (float[?] y) <float[8,24] w = {@w}, float[24] b = {@b}> "
    "{ y = com.microsoft.Attention <num_heads = 2> (x, w, b, mask) }",
    "Attention, causal after a past": "(float[2,3,8] x, float[2,2,2,4,4] past) => (float[?] y, float[?] now) "
    "<float[8,24] w = {@w}, float[24] b = {@b}> "
    "{ y, now = com.microsoft.Attention <num_heads = 2, unidirectional = 1> (x, w, b, , past) }",
    "RotaryEmbedding": "(float[2,3,8] x, int64[2,3] at) => (float[?] y) <float[7,2] c = {@c}, float[7,2] d = {@d}> "
    "{ y = com.microsoft.RotaryEmbedding (x, at, c, d) }",
    "RotaryEmbedding, neighbours": "(float[2,2,3,4] x, int64[2,3] at) => (float[?] y) "
    "<float[7,2] c = {@c}, float[7,2] d = {@d}> { y = com.microsoft.RotaryEmbedding <interleaved = 1> (x, at, c, d) }",
    "Attention, a mask for every query": "(float[2,3,8] x, int32[2,3,3] mask) => (float[?] y) "
    "<float[8,24] w = {@w}, float[24] b = {@b}> "
    "{ y = com.microsoft.Attention <num_heads = 2, mask_filter_value = -3.0> (x, w, b, mask) }",
    "Attention, lengths": "(float[2,3,8] x) => (float[?] y) <float[8,24] w = {@w}, float[24] b = {@b}, "
    "int32[2] ends = {2, 3}> { y = com.microsoft.Attention <num_heads = 2> (x, w, b, ends) }",
    "Attention, lengths and starts": "(float[2,3,8] x) => (float[?] y) <float[8,24] w = {@w}, float[24] b = {@b}, "
    "int32[4] ends = {2, 3, 0, 1}> { y = com.microsoft.Attention <num_heads = 2> (x, w, b, ends) }",
    "Attention, values of another size": "(float[2,3,8] x) => (float[?] y) <float[8,20] w = {@w}, float[20] b = {@b}> "
    "{ y = com.microsoft.Attention <num_heads = 2, qkv_hidden_sizes = [8, 8, 4]> (x, w, b) }",
    "MultiHeadAttention, lengths": f"({QKV}) => (float[?] y) <int32[2] ends = {{5, 2}}> "
    "{ y = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, v, , ends) }",
    "RotaryEmbedding, one offset": "(float[2,3,8] x, int64[1] at) => (float[?] y) <float[7,2] c = {@c}, "
    "float[7,2] d = {@d}> { y = com.microsoft.RotaryEmbedding (x, at, c, d) }",
    "RotaryEmbedding, a part of each head": "(float[2,3,8] x, int64[2,3] at) => (float[?] y) <float[7,1] c = {@c}, "
    "float[7,1] d = {@d}> "
    "{ y = com.microsoft.RotaryEmbedding <num_heads = 2, rotary_embedding_dim = 2> (x, at, c, d) }",
    "MultiHeadAttention, heads apart": "(float[2,3,8] q, float[2,2,5,4] k, float[2,2,5,4] v) => (float[?] y) "
    "{ y = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, v) }",
}  # fmt: skip


@pytest.mark.parametrize("opset", [11, 21])
@pytest.mark.parametrize("case", CASES)
def test_a_body_computes_what_the_kernel_does(case, opset, tmp_path):
    same_as_the_kernel(CASES[case], opset, tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("case", "was", "now"),
    [
        ("Attention", "int32[2,3] mask", "int32[2,1,3,3] mask"),  # which no CPU kernel takes
        ("Attention", "num_heads = 2", "num_heads = 2, do_rotary = 1"),
        ("Attention", "b, mask)", "b, mask, , , mask)"),  # the length of a past in one buffer
        ("MultiHeadAttention", "mask, bias)", "mask, bias, , , mask)"),
        ("MultiHeadAttention", "{ y =", "{ y, , , s ="),  # the scores
        ("RotaryEmbedding", "(x, at", "<rotary_embedding_dim = 2> (x, at"),  # of how many heads is not said
        ("RotaryEmbedding", "(x, at", "<is_packed_batching = 1> (x, at"),
        ("RotaryEmbedding", "at, c, d)", "at, c)"),
    ],
)
def test_a_form_without_body_stays(tmp_path, case, was, now):
    assert was in CASES[case]
    onnx.save(written(CASES[case].replace(was, now), 17), tmp_path / "m.onnx")
    loaded = Model.load(tmp_path / "m.onnx")
    assert [node.op_type for node in with_bodies(loaded).graph.nodes] == [case]
