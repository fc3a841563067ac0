"""Every kernel says what it computes, and calls its inputs what the operator specifications call them."""

import re

import onnx
import pytest

from tensortriage.engines.float64.kernels import kernel_for, kernel_names

OWN = [name for name in sorted(kernel_names()) if "<locals>" not in kernel_for(name).__qualname__]
"""Without the rows of tables such as that of numpy's functions."""


def test_most_kernels_are_functions_of_their_own():
    assert len(OWN) > 120


@pytest.mark.parametrize("operator", OWN)
def test_a_kernel_is_documented_in_the_words_of_its_operator(operator):
    text = kernel_for(operator).__doc__
    assert text
    named = re.search(rf"\b{operator}\(([^)]*)\)", text)
    if named:
        words = [word for word in re.split(r",\s*", named[1]) if word not in ("", "...")]
        assert set(words) <= {item.name for item in onnx.defs.get_schema(operator).inputs}
