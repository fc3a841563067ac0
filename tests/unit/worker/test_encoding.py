"""Elements of less than a byte, packed as ONNX packs them."""

import numpy as np
import onnx_ir as ir
from hypothesis import given
from hypothesis import strategies as st

from tensortriage.values.dtype import DType
from tensortriage_worker.encoding import pack, unpack

SUB_BYTE = [DType.INT4, DType.UINT4, DType.FLOAT4E2M1, DType.INT2, DType.UINT2]


@given(st.sampled_from(SUB_BYTE), st.lists(st.integers(0, 255), max_size=17))
def test_packing_is_the_one_of_onnx_and_inverts(dtype, codes):
    # Expected bytes: onnx_ir's own writer of ONNX raw data.
    array = np.array([code % (1 << dtype.bits) for code in codes], np.float64)
    if dtype.name.startswith("INT"):
        array -= 1 << (dtype.bits - 1)
    array = array.astype(dtype.numpy)
    packed = pack(array.view(np.uint8), dtype.bits)
    assert packed.tobytes() == ir.tensor(array, dtype=ir.DataType(dtype.value)).tobytes()
    back = unpack(packed, dtype.bits, array.size, signed=False).view(dtype.numpy)
    assert (back == array).all()


def test_unpacking_restores_the_sign():
    # 0xF is -1 in two's complement of 4 bits, 0x8 is -8, 0x7 is 7 (low element first).
    assert unpack(np.array([0x8F, 0x07], np.uint8), 4, 3, signed=True).tolist() == [-1, -8, 7]
    assert unpack(np.array([0b00011011], np.uint8), 2, 4, signed=True).tolist() == [-1, -2, 1, 0]
