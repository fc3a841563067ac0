"""The output that a metric looks at, where several could be meant."""

import re
from collections.abc import Mapping

import numpy as np

Arrays = Mapping[str, np.ndarray]


def chosen(outputs: Arrays, words: str, least_axes: int = 1) -> str:
    """Return the output with one of the words in its name, else the first, of those that hold enough axes.

    Args:
        outputs: By name.
        words: A regular expression, of small letters.
        least_axes: How many axes it has at least.

    Raises:
        ValueError: When there is none.
    """
    able = [name for name, array in outputs.items() if array.ndim >= least_axes and array.dtype.kind in "fVbiu"]
    if not able:
        raise ValueError(f"no output has {least_axes} axes or more of numbers: {', '.join(outputs)}")
    return next((name for name in able if re.search(words, name.lower())), able[0])


def right(name: str, reference: Arrays | None) -> np.ndarray:
    """Return the reference's output.

    Raises:
        ValueError: When there is none to agree with.
    """
    if not reference or name not in reference:
        raise ValueError("there are neither labels nor a reference's outputs to agree with")
    return np.asarray(reference[name])
