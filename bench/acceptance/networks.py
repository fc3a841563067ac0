"""Small networks of the checks, as ONNX text and numbers of a seed, and data for them."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper, parser

Arrays = Mapping[str, np.ndarray]
HEAD = '<ir_version: 8, opset_import: ["": {opset}]>'
GRATINGS = """gratings (float[batch,1,32,32] picture) => (float[batch,4] scores, float[batch,4] logits) {
    c1 = Conv<kernel_shape=[5,5], pads=[2,2,2,2], strides=[2,2]>(picture, w1, b1)
    r1 = LeakyRelu<alpha=0.1>(c1)
    c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r1, w2, b2)
    d = Sub(c2, r1)
    r2 = Relu(d)
    c3 = Conv<kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]>(r2, w3, b3)
    r3 = Relu(c3)
    p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(r3)
    f = Flatten(p)
    logits = Gemm<transB=1>(f, wf, bf)
    scores = Softmax<axis=1>(logits)
}"""


def built(text: str, arrays: Arrays, opset: int = 17) -> ModelProto:
    """Return the network of ONNX text and its weights; nodes are called after their first output."""
    model = parser.parse_model(HEAD.format(opset=opset) + text)
    for node in model.graph.node:
        node.name = f"/{node.op_type}_{node.output[0]}"
    for name, array in arrays.items():
        array = np.asarray(array)
        array = array.astype(np.float32) if array.dtype == np.float64 else array
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def saved(folder: Path, text: str, arrays: Arrays, opset: int = 17, name: str = "model.onnx") -> str:
    """Write such a network, and return its path."""
    return stored(folder, built(text, arrays, opset), name)


def stored(folder: Path, model: ModelProto, name: str = "model.onnx") -> str:
    """Write a network, and return its path."""
    path = str(folder / name)
    onnx.save(model, path)
    return path


def data(folder: Path, name: str = "real.npz", **arrays: np.ndarray) -> tuple[str, str]:
    """Write a feed, and return the words that give it."""
    path = str(folder / name)
    np.savez(path, **arrays)
    return "--inputs", path


def pictures(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return gratings of four directions, float32 (count, 1, 32, 32), and which direction each has."""
    random = np.random.default_rng(seed)
    kinds = random.integers(0, 4, count)
    y, x = np.mgrid[:32, :32]
    angle = (kinds * np.pi / 4 + random.normal(0, 0.08, count))[:, None, None]
    waves = np.sin((x * np.cos(angle) + y * np.sin(angle)) * 0.8 + random.uniform(0, 6, count)[:, None, None])
    noisy = waves * 0.5 + 0.5 + random.normal(0, 0.1, waves.shape)
    return np.clip(noisy, 0, 1)[:, None].astype(np.float32), kinds


def gratings() -> dict[str, np.ndarray]:
    """Return weights of GRATINGS: random features, and a last layer fitted to 400 pictures by least squares."""
    import onnxruntime

    random = np.random.default_rng(23)

    def drawn(outputs: int, inputs: int, size: int) -> np.ndarray:
        return random.normal(0, np.sqrt(2 / (inputs * size * size)), (outputs, inputs, size, size))

    weights = {"w1": drawn(12, 1, 5), "w2": drawn(12, 12, 3), "w3": drawn(16, 12, 3)}
    weights |= {"b1": random.normal(0, 0.1, 12), "b2": random.normal(0, 0.1, 12), "b3": random.normal(0, 0.1, 16)}
    weights |= {"wf": np.zeros((4, 256)), "bf": np.zeros(4)}
    trunk = built(GRATINGS, weights)
    trunk.graph.output.append(onnx.helper.make_tensor_value_info("f", 1, None))
    session = onnxruntime.InferenceSession(trunk.SerializeToString())
    images, kinds = pictures(400, 1)
    found = session.run(["f"], {"picture": images})[0]
    rows = np.hstack([found, np.ones((len(found), 1))])
    fitted = np.linalg.solve(rows.T @ rows + np.eye(rows.shape[1]) * 0.5, rows.T @ (np.eye(4)[kinds] * 8 - 2))
    return weights | {"wf": fitted[:-1].T, "bf": fitted[-1]}
