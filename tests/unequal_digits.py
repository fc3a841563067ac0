"""The digits CNN with unequal channels between two convolutions: the same in float, lost in 8 bits."""

import numpy as np
import onnx
from onnx import numpy_helper

from running_cli import EXAMPLES


def write_unequal_digits(folder):
    """Write ``cnn.onnx``, ``cal.npz`` of 32 pictures, and ``test.npz`` of 150 others with their digits as ``label``."""
    model = onnx.load(EXAMPLES / "digits_cnn.onnx")
    weights = {one.name: one for one in model.graph.initializer}
    scale = np.exp(np.random.default_rng(0).normal(0.0, 2.5, 32)).astype(np.float32)
    shaped = {
        "onnx::Conv_71": scale[:, None, None, None],
        "onnx::Conv_72": scale,
        "block1.conv2.weight": 1.0 / scale[None, :, None, None],
    }  # Relu lies between them, which keeps positive factors
    for name, factors in shaped.items():
        weights[name].CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weights[name]) * factors, name))
    onnx.save(model, folder / "cnn.onnx")
    with np.load(EXAMPLES / "digits_labels.npz") as known:
        pictures, digits = (known["pixels"] / 16).astype(np.float32)[:, None], known["labels"]
    np.savez(folder / "cal.npz", **{f"{n}/image": pictures[n : n + 1] for n in range(32)})
    np.savez(folder / "test.npz", image=pictures[300:], label=digits[300:])
