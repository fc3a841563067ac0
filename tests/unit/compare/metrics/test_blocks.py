import numpy as np
import pytest

from tensortriage.compare.metrics import blocks


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (70_000,), (2, 3, 70_000), (3, 1, 2, 40_000), (70_001, 1, 2)])
@pytest.mark.parametrize("flat", [True, False])
def test_blocks_cover_every_element_once_in_order(shape, flat):
    array = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    source = array.reshape(-1) if flat else array
    position = 0
    for start, index in blocks.cut(shape, flat=flat):
        block = blocks.take(source, index)
        assert start == position
        assert 0 < block.size <= blocks.BLOCK
        assert block.ndim == 1
        np.testing.assert_array_equal(block, np.arange(start, start + block.size))
        position += block.size
    assert position == array.size


def test_a_contiguous_block_is_a_view_and_a_strided_one_a_copy():
    array = np.zeros((4, 6), np.float32)
    assert np.shares_memory(blocks.take(array.reshape(-1), slice(3, 9)), array)
    assert not np.shares_memory(blocks.take(array[:, ::2], (slice(0, 4),)), array)


@pytest.mark.parametrize("size", [1, 100, blocks.ROW, blocks.ROW + 1, 3 * blocks.ROW + 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inner_products_and_sums(size, dtype):
    rng = np.random.default_rng(size)
    left, right = rng.standard_normal((2, 3, size)).astype(dtype)
    expected = (left.astype(np.float64) * right).sum(axis=1)
    np.testing.assert_allclose(blocks.inner_products(left, right), expected, rtol=1e-5, atol=1e-4)
    sums = blocks.inner_products(left, blocks.ones(np.dtype(dtype)))
    np.testing.assert_allclose(sums, left.astype(np.float64).sum(axis=1), rtol=1e-5, atol=1e-4)
    assert blocks.inner_products(left[0], right[0]).shape == ()


def test_a_sum_of_many_equal_numbers_keeps_its_digits():
    values = np.full(blocks.BLOCK, 0.1, np.float32)
    assert float(blocks.inner_products(values, blocks.ones(values.dtype))) == pytest.approx(
        float(np.float32(0.1)) * blocks.BLOCK, rel=1e-6
    )
