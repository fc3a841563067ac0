"""How a .tflite file keeps its weights: told of tensors and operators, without LiteRT."""

import numpy as np
import pytest

from tensortriage_engines.litert.worker.weights import numbers_of, weights_of


class Interpreter:
    """A file of given tensors and operators."""

    def __init__(self, tensors, ops=(), fed=()):
        self.tensors, self.ops, self.fed = tensors, list(ops), list(fed)

    def get_input_details(self):
        return [row for row, _ in self.fed]

    def get_tensor_details(self):
        return [row for row, _ in (*self.fed, *self.tensors)]

    def get_tensor(self, index):
        array = next(array for row, array in self.tensors if row["index"] == index)
        if array is None:
            raise ValueError("not kept")
        return array

    def _get_ops_details(self):
        return self.ops


def tensor(index, array, scales=(), axis=0, zeros=None, shape=None):
    told = {
        "scales": np.float32(scales),
        "zero_points": np.int32(zeros if zeros is not None else [0] * len(scales)),
        "quantized_dimension": axis,
    }
    row = {
        "index": index,
        "shape": np.int32(array.shape if shape is None else shape),
        "dtype": np.int8 if array is None else array.dtype.type,
        "quantization": (float(scales[0]), 0) if len(scales) == 1 else (0.0, 0),
        "quantization_parameters": told,
    }
    return row, array


def op(kind, inputs, outputs):
    return {"op_name": kind, "inputs": inputs, "outputs": outputs}


WHOLE = np.int8([[1, -2, 3], [4, 5, -6]])
REAL = tensor(20, np.zeros((2, 2), np.float32))


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        ([(np.float32, [4, 4], 0), (np.int8, [2, 2], 4)], "int8"),  # a few weights, with a scale a channel
        ([(np.float32, [4, 4], 0), (np.int8, [16], 1)], "int8"),  # biases alone: a GRU by onnx2tf
        ([(np.float32, [4, 4], 0), (np.int8, [1], 1), (np.int32, [2, 2], 0)], ""),
        ([(np.float32, [4, 4], 0), (np.float16, [2, 2], 0)], "fp16"),
    ],
)
def test_the_narrowest_format_of_weights_is_told(kept, told):
    tensors = [
        tensor(number + 5, np.zeros(shape, dtype), np.ones(scales))
        for number, (dtype, shape, scales) in enumerate(kept)
    ]
    assert weights_of(Interpreter(tensors, fed=[tensor(0, np.zeros((2, 2), np.int8), [1.0])])) == told


def test_integers_are_read_with_the_scales_of_their_axis():
    tensors = [
        tensor(1, WHOLE, [0.5, 2.0]),
        tensor(2, WHOLE, [0.5, 1.0, 2.0], 1),
        tensor(3, WHOLE, [0.5], zeros=[2]),
        tensor(4, np.int8([[7]]), [0.5]),  # exact: no weight that is rounded
        tensor(5, WHOLE),
        tensor(9, WHOLE, [1.0]),  # an operator's own, which none reads
    ]
    held, narrow = numbers_of(Interpreter([*tensors, REAL], [op("CONV_2D", [0, 1, 2, 3, 4, 5], [20])]))
    assert [numbers.tolist() for numbers, _ in held] == [
        [[0.5, -1.0, 1.5], [8.0, 10.0, -12.0]],
        [[0.5, -2.0, 6.0], [2.0, 5.0, -12.0]],
        [[-0.5, -2.0, 0.5], [1.0, 1.5, -4.0]],
    ]
    assert [step.shape for _, step in held] == [(2, 1), (1, 3), (1, 1)]
    assert narrow == [0, 1, 2]


def test_what_is_widened_first_is_met_by_no_integers():
    tensors = [tensor(1, WHOLE, [0.5]), tensor(2, WHOLE, [0.5]), REAL]
    ops = [op("DEQUANTIZE", [1], [20]), op("FULLY_CONNECTED", [0, 2], [21])]
    assert numbers_of(Interpreter(tensors, ops))[1] == [1]


def test_a_file_with_integers_between_operators_computes_in_them():
    tensors = [tensor(1, WHOLE, [0.5]), tensor(20, WHOLE, [0.5])]
    assert numbers_of(Interpreter(tensors, [op("FULLY_CONNECTED", [0, 1], [20])]))[1] is None


def test_what_the_runtime_did_not_keep_is_not_read():
    tensors = [tensor(1, None, [0.5], shape=[2, 3]), REAL]
    assert numbers_of(Interpreter(tensors, [op("CONV_2D", [1], [20])]))[0] == [None]
