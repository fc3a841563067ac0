"""Attributes in ONNX's text syntax; each is read back by ONNX's own parser."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from meant_otherwise import meant, model
from tensortriage_meanings.calls import text
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.search import sites_of
from tensortriage_meanings.site import Meaning
from tensortriage_meanings.table.sets import SETS
from tensortriage_meanings.table.signatures import SIGNATURES


def read_back(attribute):
    header = '<domain: "m", opset_import: ["" : 17]>'
    return onnx.parser.parse_function(f"{header} f () => (y) {{ y = Op<a={text(attribute)}>() }}").node[0].attribute[0]


@pytest.mark.parametrize("value", [3, 0.16666667, "half_pixel", (1, 2), (0.5, 1e-5)])
def test_plain_attributes(value):
    found = onnx.helper.get_attribute_value(read_back(value))
    assert (found.decode() if isinstance(found, bytes) else tuple(found) if isinstance(value, tuple) else found) == (
        pytest.approx(value) if not isinstance(value, str) else value
    )


@pytest.mark.parametrize(
    "array", [np.array([-1, 16]), np.array([[0.1, 2]], np.float32), np.array(3.5), np.array([True, False])]
)
def test_tensors_keep_every_bit(array):
    found = onnx.numpy_helper.to_array(read_back(ir.tensor(array)).t)
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)


EXPORTED = """g (float[2,12] x) => (float[4,2,3] y) {
    [k] shape = Constant<value = int64[3] {2, 4, 3}>()
    [r] h = Reshape(x, shape)
    [t] y = Transpose<perm=[1,0,2]>(h)
}"""


def test_constants_that_exporters_write_as_nodes_are_no_ops_of_a_set():
    """PyTorch writes shapes as Constant nodes: a set that had one ended in an internal error."""
    rewriter = Rewriter(model(EXPORTED))
    ways = [one for table in (SETS, SIGNATURES) for one in sites_of(rewriter, table)]
    assert ways
    assert not [one for one in ways if "k" in one]
    for one in ways:
        rewriter.rewritten(one)


def test_a_tensor_within_an_attribute_is_written():
    one = model("g (int64[2] x) => (float[2,3] y) { [n] y = ConstantOfShape<value = float[1] {0.3}>(x) }")
    assert meant(one, SETS, "its result had the other sign")


def test_a_body_that_cannot_be_written_is_no_way():
    rewriter = Rewriter(model("g (float[2] x) => (float[2] y) { [n] y = Tanh(x) }"))
    with pytest.raises(ValueError, match="cannot be written"):
        rewriter.rewritten({"n": Meaning("nothing", body="(x) => (y) { y = Op<a=array([1])>(x) }")})
