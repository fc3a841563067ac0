"""What is said of sums of products without making each of them: against the operator on magnitudes and squares."""

import numpy as np
import pytest
from onnx import helper

from models import of_nodes
from tensortriage.runs.analyses.sums.product_terms import applied, mean_of_squares, simple_bound

CASES = {
    "rows and columns": ("MatMul", {}, [(5, 7), (7, 3)]),
    "vectors": ("MatMul", {}, [(7,), (7, 3)]),
    "batches that broadcast": ("MatMul", {}, [(2, 1, 5, 7), (4, 7, 3)]),
    "gemm": ("Gemm", {"alpha": -2.0, "beta": 0.5, "transA": 1, "transB": 1}, [(7, 5), (3, 7), (3,)]),
    "convolution": ("Conv", {"pads": [1, 0, 2, 1], "strides": [2, 1], "group": 2}, [(2, 6, 9, 8), (8, 3, 3, 2), (8,)]),
    "of one axis": ("Conv", {"dilations": [2]}, [(1, 3, 12), (4, 3, 3)]),
    "transposed": ("ConvTranspose", {}, [(1, 3, 4, 4), (3, 2, 3, 3)]),
}


@pytest.mark.parametrize("case", CASES)
def test_means_and_bounds_are_those_of_every_product(case):
    op_type, attributes, shapes = CASES[case]
    rng = np.random.default_rng(3)
    operands = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    names = [f"i{number}" for number in range(len(shapes))]
    node = helper.make_node(op_type, names, ["y"], name="n", **attributes)
    (node,) = of_nodes([node], inputs=dict(zip(names, shapes, strict=True)), outputs={"y": ()}).graph.nodes
    squares, magnitudes = (applied(change, node, operands, version=17) for change in (np.square, np.abs))
    found = mean_of_squares(node, operands, magnitudes, version=17)
    assert found == pytest.approx(squares.mean(dtype=np.float64), rel=1e-5)
    assert simple_bound(node, operands) >= magnitudes.max()
