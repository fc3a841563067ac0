"""Small networks of which 8-bit models are made: a residual block with pooling, and an attention."""

import numpy as np

W = "{" + ", ".join(str(round(float(x), 3)) for x in np.random.default_rng(0).standard_normal(36)) + "}"
RESIDUAL = f"""
    g (float[1, 2, 8, 8] x) => (float[1, 2] y) <int64[2] space = {{2, 3}}, float[2, 2, 3, 3] v = {W},
    float[2, 2, 3, 3] w = {W}, float[2] b = {{1, 2}}> {{
        [first] a = Conv <pads = [1, 1, 1, 1]> (x, v, b)
        [relu] r = Relu(a)
        [second] c = Conv <pads = [1, 1, 1, 1]> (r, w)
        [add] d = Add(c, r)
        [relu2] e = Relu(d)
        [pool] p = MaxPool <kernel_shape = [2, 2]> (e)
        [third] f = Conv <pads = [1, 1, 1, 1]> (p, w)
        [mean] m = ReduceMean <keepdims = 0> (f, space)
        [out] y = Identity(m)
    }}"""
ATTENTION = f"""
    g (float[2, 6] x) => (float[2, 6] y) <float[6, 6] w = {W}, float[6] b = {{1, 2, 3, 4, 5, 6}}> {{
        [project] h = MatMul(x, w)
        [bias] q = Add(b, h)
        [turn] t = Transpose <perm = [1, 0]> (q)
        [scores] s = MatMul(q, t)
        [mix] y = MatMul(s, q)
    }}"""
