"""Recurrent layers of OpenVINO as ONNX: batch before time, gates in another order, biases added up."""

import numpy as np

from tensortriage_engines.openvino.intermediate import Layer
from tensortriage_engines.openvino.network import OnnxGraph, Untranslatable, onnx_type

_GATES = {"LSTMSequence": (1, 3, 0, 2), "GRUSequence": (0, 1, 2), "RNNSequence": (0,)}
"""Where each gate of ONNX's order is in OpenVINO's."""
_PLAIN = {"LSTMSequence": "sigmoid,tanh,tanh", "GRUSequence": "sigmoid,tanh", "RNNSequence": "tanh"}


def sequence(network: OnnxGraph, layer: Layer) -> None:
    """Write an LSTM, a GRU or an RNN."""
    kind, size = layer.kind.removesuffix("Sequence"), int(layer.data["hidden_size"])
    if layer.data.get("activations", _PLAIN[layer.kind]).replace(" ", "") != _PLAIN[layer.kind] or layer.data.get(
        "clip", "0"
    ) not in ("0", "inf"):
        raise Untranslatable(layer, "with other functions than usual")
    states = 2 if kind == "LSTM" else 1
    weights = [network.constant(layer, 2 + states + number) for number in range(3)]
    after = layer.flag("linear_before_reset")
    given = [_gates(layer.kind, array, size) for array in weights[:2]] + [
        _bias(layer.kind, weights[2], size, after=after)
    ]
    fixed = [network.fixed(f"{layer.name}/{key}", array) for key, array in zip("WRB", given, strict=True)]
    batch_first = network.between(layer, "Transpose", [network.value(layer, 0)], "time_first", perm=[1, 0, 2])
    first = [
        network.between(layer, "Transpose", [network.value(layer, 1 + number)], f"state_{number}", perm=[1, 0, 2])
        for number in range(states)
    ]
    lengths = network.between(layer, "Cast", [network.value(layer, 1 + states)], "lengths", to=onnx_type("i32"))
    attributes = {"hidden_size": size, "direction": layer.data.get("direction", "forward").lower()}
    if kind == "GRU":
        attributes["linear_before_reset"] = int(after)
    names = network.results(layer)
    made = [network.fresh(f"{layer.name}/made_{number}") for number in range(1 + states)]
    network.node(kind, layer.name, [batch_first, *fixed, lengths, *first], made, **attributes)
    for number, (name, value) in enumerate(zip(names, made, strict=True)):
        perm = [1, 0, 2] if number else [2, 1, 0, 3]
        network.node("Transpose", f"{layer.name}/given_{number}", [value], [name], perm=perm)
    network.give(layer, names)


def _gates(kind: str, array: np.ndarray, size: int) -> np.ndarray:
    """Return weights with the gates in ONNX's order."""
    count = len(_GATES[kind])
    parts = array.reshape(array.shape[0], count, size, *array.shape[2:])
    return np.ascontiguousarray(parts[:, list(_GATES[kind])]).reshape(array.shape)


def _bias(kind: str, array: np.ndarray, size: int, *, after: bool) -> np.ndarray:
    """Return the biases of input and state one behind the other."""
    if kind == "GRUSequence" and after:
        inner = np.concatenate([np.zeros_like(array[:, : 2 * size]), array[:, 3 * size :]], axis=1)
        return np.concatenate([array[:, : 3 * size], inner], axis=1)
    own = _gates(kind, array, size)
    return np.concatenate([own, np.zeros_like(own)], axis=1)
