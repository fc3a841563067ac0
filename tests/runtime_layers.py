"""Texts of models with one operator of ONNX Runtime each, which its CPU kernels compute; see runtime_operators."""

Q = "float xs, uint8 xz, float ys, uint8 yz"
LSTM = "float[5,2,6] x) => (float[?] y, float[?] h, float[?] c)"
LSTM_WEIGHTS = "uint8[2,6,32] w = {@w}, uint8[2,8,32] r = {@r}, float[2,64] b = {@b}"
CASES = {
    "QAttention": "(uint8[2,3,8] x) => (float[?] y) <float xs = {0.02}, uint8 xz = {120}, uint8[8,24] w = {@w}, "
    "float ws = {0.004}, uint8 wz = {130}, float[24] b = {@b}, int32[2] ends = {2, 3}> "
    "{ y = com.microsoft.QAttention <num_heads = 2> (x, w, b, xs, ws, ends, xz, wz) }",
    "QAttention, causal, a scale for each column": "(uint8[2,3,8] x) => (float[?] y) <float xs = {0.02}, "
    "uint8 xz = {120}, uint8[8,24] w = {@w}, float[24] ws = {@s}, uint8[24] wz = {@z}, float[24] b = {@b}> "
    "{ y = com.microsoft.QAttention <num_heads = 2, unidirectional = 1> (x, w, b, xs, ws, , xz, wz) }",
    "QEmbedLayerNormalization": "(int32[2,3] ids, int32[2,3] segments, int32[2,3] mask) => (float[?] y, int32[?] m) "
    "<uint8[9,8] w = {@w}, uint8[5,8] p = {@p}, uint8[2,8] t = {@t}, uint8[8] g = {@g}, uint8[8] o = {@o}, "
    "float s = {0.01}, uint8 z = {120}> { y, m = com.microsoft.QEmbedLayerNormalization <epsilon = 0.001> "
    "(ids, segments, w, p, t, g, o, mask, s, s, s, s, s, z, z, z, z, z) }",
    "QLinearConv, channels last": "(uint8[1,6,6,3] x) => (uint8[?] y) <float xs = {0.02}, uint8 xz = {120}, "
    "uint8[4,3,3,3] w = {@w}, float ws = {0.01}, uint8 wz = {128}, float ys = {0.05}, uint8 yz = {110}> "
    "{ y = com.microsoft.QLinearConv <channels_last = 1, pads = [1, 1, 0, 0]> (x, xs, xz, w, ws, wz, ys, yz) }",
    "QLinearAveragePool, channels last": f"(uint8[1,6,6,2] x, {Q}) => (uint8[?] y) {{ y = "
    "com.microsoft.QLinearAveragePool <kernel_shape = [2, 2], channels_last = 1> (x, xs, xz, ys, yz) }",
    "QLinearGlobalAveragePool, channels last": f"(uint8[1,5,5,2] x, {Q}) => (uint8[?] y) "
    "{ y = com.microsoft.QLinearGlobalAveragePool <channels_last = 1> (x, xs, xz, ys, yz) }",
    "QLinearWhere": f"(bool[2,3] c, uint8[2,3] x, {Q}, uint8[2,3] t, float ts, uint8 tz) => (uint8[?] y) "
    "{ y = com.microsoft.QLinearWhere(c, x, xs, xz, t, ts, tz, ys, yz) }",
    "QGemm, a scale for each column": "(uint8[2,6] x) => (float[?] y) <float xs = {0.02}, uint8 xz = {120}, "
    "uint8[4,6] w = {@w}, float[4] ws = {0.01, 0.02, 0.005, 0.04}, uint8[4] wz = {@z}, int32[4] b = {9, 200, -70, 4}> "
    "{ y = com.microsoft.QGemm <transB = 1, alpha = 1.0> (x, xs, xz, w, ws, wz, b) }",
    "NhwcMaxPool": "(uint8[1,6,6,2] x) => (uint8[?] y) "
    "{ y = com.microsoft.NhwcMaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) }",
    "FusedMatMul, batches from the front": "(float[3,2,5] x, float[5,2,4] s) => (float[?] y) "
    "{ y = com.microsoft.FusedMatMul <transBatchA = 1, transBatchB = 1> (x, s) }",
    "FusedMatMul, both": "(float[5,2,3] x, float[2,5,4] s) => (float[?] y) "
    "{ y = com.microsoft.FusedMatMul <transBatchA = 1, transA = 1, alpha = 0.5> (x, s) }",
    "TransposeMatMul": "(float[2,5,3] x, float[2,5,4] s) => (float[?] y) "
    "{ y = com.microsoft.TransposeMatMul <transA = 1> (x, s) }",
    "Range": "(int32 delta) => (int32[?] y) <int32 start = {1}, int32 end = {500}> "
    "{ y = com.microsoft.Range(start, end, delta) }",
    "GatherND": "(float[3,4] x) => (float[?] y) <int64[2,2] at = {0, 1, 2, 3}> { y = com.microsoft.GatherND(x, at) }",
    "Pad": "(float[2,3] x) => (float[?] y) <int64[4] pads = {0, 1, 2, 0}, float[1] v = {3.0}> "
    "{ y = com.microsoft.Pad <mode = \"constant\"> (x, pads, v) }",
    "Trilu": "(float[3,4] x) => (float[?] y) <int64 k = {1}> { y = com.microsoft.Trilu <upper = 0> (x, k) }",
    "DynamicQuantizeLSTM": f"({LSTM} <{LSTM_WEIGHTS}, float[2] ws = {{0.004, 0.003}}, uint8[2] wz = {{120, 130}}, "
    "float[2] rs = {0.002, 0.003}, uint8[2] rz = {128, 127}> { y, h, c = com.microsoft.DynamicQuantizeLSTM "
    "<hidden_size = 8, direction = \"bidirectional\"> (x, w, r, b, , , , , ws, wz, rs, rz) }",
    "GatherBlockQuantized": "(int64[2,3] at) => (float[?] y) <uint8[4,16] w = {@w}, float[4,2] s = {@s}> "
    "{ y = com.microsoft.GatherBlockQuantized <block_size = 16, bits = 4> (w, at, s) }",
    "GatherBlockQuantized, zero points": "(int64[2,3] at) => (float[?] y) <uint8[4,16] w = {@w}, float[4,2] s = {@s}, "
    "uint8[4,1] z = {@z}> { y = com.microsoft.GatherBlockQuantized <block_size = 16, bits = 4> (w, at, s, z) }",
    "GatherBlockQuantized, bytes": "(int64[2,3] at) => (float[?] y) <uint8[4,32] w = {@w}, float[4,2] s = {@s}, "
    "uint8[4,2] z = {@z}> { y = com.microsoft.GatherBlockQuantized <block_size = 16, bits = 8> (w, at, s, z) }",
    "MatMulBnb4": "(float[2,64] x) => (float[?] y) <uint8[96] w = {@w}, float[6] m = {@m}> "
    "{ y = com.microsoft.MatMulBnb4 <K = 64, N = 3, block_size = 32, quant_type = 1> (x, w, m) }",
    "MatMulBnb4, floats": "(float[2,64] x) => (float[?] y) <uint8[96] w = {@w}, float[6] m = {@m}> "
    "{ y = com.microsoft.MatMulBnb4 <K = 64, N = 3, block_size = 32, quant_type = 0> (x, w, m) }",
}  # fmt: skip
NEWER = {"Trilu": 14}
"""Operator sets from which there is a body."""
LOOSE = {"DynamicQuantizeLSTM": 0.02}
"""Where a kernel rounds what the types do not say: the hidden state of an LSTM to 8 bits at every step."""
WITHOUT_KERNEL = {
    "BiasDropout", "BiasSoftmax", "FusedMatMulActivation", "GemmFastGelu", "RelativePositionBias", "nhwc.QLinearConv",
}  # fmt: skip
"""Operators that ONNX Runtime has for GPUs only, or not in its wheels: their formulas are tried."""
