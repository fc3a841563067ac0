"""Small networks that the files, quantizers and programs of `causes_cases` are made from."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx
from feeds_cases import DEVIATION, MEAN
from onnx import numpy_helper
from reports import detector, model, normal


def _named(made: onnx.ModelProto) -> onnx.ModelProto:
    for node in made.graph.node:
        node.name = node.name or f"/{node.op_type}_{node.output[0]}"
    return made


def picture(count: int, size: tuple[int, int]) -> np.ndarray:
    """Return pictures, normalized as ImageNet's are."""
    y, x = np.mgrid[: size[0], : size[1]] / size[0]
    random = np.random.default_rng(3)
    planes = [0.5 + 0.3 * np.sin(5 * x + c + b) * np.cos(4 * y - c) + 0.1 * (random.random(x.shape) - 0.5)
              for b in range(count) for c in range(3)]  # fmt: skip
    whole = np.rint(255 * np.clip(planes, 0, 1)).reshape(count, 3, *size) / 255
    axes = (1, 3, 1, 1)
    return ((whole - np.reshape(MEAN, axes)) / np.reshape(DEVIATION, axes)).astype(np.float32)


def segmenter() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    made = model(
        """(float[1,3,18,20] x) => (float[1,6,18,20] mask) {
        c1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1, b)
        a1 = Relu(c1)
        mask = Conv<kernel_shape=[1,1]>(a1, w2) }""",
        w1=normal(1, 16, 3, 3, 3, scale=0.3), b=normal(2, 16), w2=normal(3, 6, 16, 1, 1, scale=0.3),
    )  # fmt: skip
    return made, {"x": picture(1, (18, 20))}


def labels() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    made = model(
        """(float[6,20] x) => (int64[6] label, float[6,7] scores) {
        c1 = MatMul(x, w1)
        a1 = Relu(c1)
        scores = MatMul(a1, w2)
        label = ArgMax<axis=1, keepdims=0>(scores) }""",
        w1=normal(1, 20, 16), w2=normal(2, 16, 7),
    )  # fmt: skip
    return made, {"x": normal(9, 6, 20)}


def attention() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    made = model(
        """(float[2,8,16] x, int64[2,8] mask) => (float[2,8,6] y) {
        q0 = MatMul(x, wq)
        k0 = MatMul(x, wk)
        v0 = MatMul(x, wv)
        q1 = Reshape(q0, heads)
        k1 = Reshape(k0, heads)
        v1 = Reshape(v0, heads)
        q = Transpose<perm=[0,2,1,3]>(q1)
        k = Transpose<perm=[0,2,3,1]>(k1)
        v = Transpose<perm=[0,2,1,3]>(v1)
        s = MatMul(q, k)
        t = Mul(s, scale)
        shown = Cast<to=9>(mask)
        seen = Unsqueeze(shown, axes)
        u = Where(seen, t, low)
        p = Softmax<axis=-1>(u)
        o = MatMul(p, v)
        o1 = Transpose<perm=[0,2,1,3]>(o)
        o2 = Reshape(o1, flat)
        where = Gather(table, places)
        res = Add(o2, where)
        ln = LayerNormalization<axis=-1>(res, g, bt)
        h = MatMul(ln, w1)
        hb = Add(h, b1)
        a = Relu(hb)
        y = MatMul(a, w2) }""",
        wq=normal(1, 16, 16, scale=0.4), wk=normal(2, 16, 16, scale=0.4), wv=normal(3, 16, 16, scale=0.4),
        heads=np.array([0, 0, 2, 8]), flat=np.array([0, 0, 16]), scale=np.float32(8**-0.5), low=np.float32(-1e4),
        axes=np.array([1, 2]), table=normal(11, 30, 16), places=np.arange(8), g=1 + normal(4, 16, scale=0.2),
        bt=normal(5, 16, scale=0.3), w1=normal(6, 16, 16, scale=0.4), b1=normal(7, 16), w2=normal(8, 16, 6, scale=0.4),
    )  # fmt: skip
    shown = (np.arange(8)[None] < np.array([[8], [5]])).astype(np.int64)
    return _named(made), {"x": normal(9, 2, 8, 16), "mask": shown}


def heads() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    made = model(
        """(float[2,3,16,16] x) => (float[2,4,8,8] a, float[2,4,8,8] b, float[2,4,8,8] c) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x, w1, b1)
        r1 = Relu(c1)
        c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r1, w2, b2)
        s1 = Sigmoid(c2)
        m1 = Mul(c2, s1)
        sum = Add(m1, r1)
        cc = Concat<axis=1>(sum, m1)
        a = Conv<kernel_shape=[1,1]>(cc, wa, ba)
        p1 = Exp(s1)
        d = Div(sum, p1)
        b0 = Conv<kernel_shape=[1,1]>(d, wb)
        b = Tanh(b0)
        c0 = Conv<kernel_shape=[1,1]>(m1, wc)
        c = HardSigmoid(c0) }""",
        w1=normal(1, 8, 3, 3, 3, scale=0.4), b1=normal(2, 8, scale=0.4), w2=normal(3, 8, 8, 3, 3, scale=0.2),
        b2=normal(4, 8, scale=0.4), wa=normal(7, 4, 16, 1, 1, scale=0.3), ba=normal(8, 4, scale=0.5),
        wb=normal(9, 4, 8, 1, 1, scale=0.4), wc=normal(10, 4, 8, 1, 1, scale=0.4),
    )  # fmt: skip
    return _named(made), {"x": normal(10, 2, 3, 16, 16)}


def classifier() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    made = model(
        """(float[4,3,24,24] x) => (float[4,8] y) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x, w1, b1)
        r1 = Relu(c1)
        c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r1, w2, b2)
        r2 = Relu(c2)
        s = Add(r2, r1)
        c3 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(s, w3, b3)
        r3 = Relu(c3)
        p = GlobalAveragePool(r3)
        f = Flatten(p)
        y = Gemm(f, w4, b4) }""",
        w1=normal(1, 16, 3, 3, 3, scale=0.35), b1=normal(2, 16, scale=0.2), w2=normal(3, 16, 16, 3, 3, scale=0.12),
        b2=normal(4, 16, scale=0.2), w3=normal(5, 32, 16, 3, 3, scale=0.12), b3=normal(6, 32, scale=0.2),
        w4=normal(7, 32, 8, scale=0.5), b4=normal(8, 8, scale=0.3),
    )  # fmt: skip
    return _named(made), {"x": picture(4, (24, 24))}


def pixels() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return the classifier for pixels from 0 to 255."""
    made, feed = classifier()
    put(made, "w1", array(made, "w1") / np.float32(60))
    return made, {"x": np.clip(feed["x"] * 57 + 120, 0, 255).astype(np.float32)}


NETWORKS: Mapping[str, Callable[[], tuple[onnx.ModelProto, dict[str, np.ndarray]]]] = {
    "detector": lambda: (detector(), {"images": picture(1, (32, 32))}),
    "segmenter": segmenter, "labels": labels, "attention": attention, "heads": heads, "classifier": classifier,
    "pixels": pixels,
}  # fmt: skip


def array(made: onnx.ModelProto, name: str) -> np.ndarray:
    """Return a constant."""
    return numpy_helper.to_array(next(tensor for tensor in made.graph.initializer if tensor.name == name))


def put(made: onnx.ModelProto, name: str, numbers: np.ndarray) -> None:
    """Replace a constant, or add one."""
    found = next((tensor for tensor in made.graph.initializer if tensor.name == name), None)
    found = made.graph.initializer.add() if found is None else found
    found.CopyFrom(numpy_helper.from_array(np.asarray(numbers), name))
