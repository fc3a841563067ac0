from typing import TypeAlias

import numpy as np

# The arguments of add_run:
#   type       0 to 3 for float16, bfloat16, float32, float64
#   reference  elements of that type, or their bits: contiguous and aligned
#   target     as many
#   sample     float64, which errors of sampled elements are written to
#   start      flat index of the first element
#   stride     every element whose flat index is a multiple of it is sampled
#   block      elements that are computed in one type: float where it serves, else double
#   bounds     what the maxima of a block must be between, or zero, for float to serve
# Its results: elements sampled, the worst ones as BlockTotals keeps them, its totals from `compared` to `target_max`.
# ValueError: the sides differ in size, are not aligned, or there is no room for the sample.

_Counts: TypeAlias = tuple[int, int, int, int, int, int, int, int]
_Sums: TypeAlias = tuple[float, float, float, float, float, float, float, float, float, float, float]

def add_run(
    type: int,
    reference: np.ndarray,
    target: np.ndarray,
    sample: np.ndarray,
    start: int,
    stride: int,
    block: int,
    bounds: tuple[float, float],
    /,
) -> tuple[int, list[tuple[float, int]], _Counts, _Sums]: ...
