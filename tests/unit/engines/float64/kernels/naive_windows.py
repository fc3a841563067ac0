"""Window operators written as their definition: one loop per output element."""

import itertools
import math

import numpy as np


def geometry(spatial, kernel, strides, dilations, pads, ceil_mode):
    """Return the number of windows per axis, by the formula of the operator specification."""
    counts = []
    for axis, size in enumerate(spatial):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        total = size + pads[axis] + pads[axis + len(spatial)]
        count = (math.ceil if ceil_mode else math.floor)((total - reach) / strides[axis]) + 1
        if ceil_mode and (count - 1) * strides[axis] >= size + pads[axis]:
            count -= 1
        counts.append(count)
    return counts


def windows(x, kernel, strides, dilations, pads, ceil_mode=False):
    """Yield per window its place, and the (kernel place, input place) pairs of its taps; None for outside places."""
    spatial = x.shape[2:]
    counts = geometry(spatial, kernel, strides, dilations, pads, ceil_mode)
    for place in itertools.product(*map(range, counts)):
        taps = []
        for tap in itertools.product(*map(range, kernel)):
            where = [p * s + t * d - b for p, s, t, d, b in zip(place, strides, tap, dilations, pads, strict=False)]
            inside = all(0 <= w < n for w, n in zip(where, spatial, strict=True))
            taps.append((tap, tuple(where) if inside else None, tuple(where)))
        yield place, taps


def convolution(x, weight, strides, dilations, pads, groups):
    """Return the convolution, accumulated in Python floats."""
    counts = geometry(x.shape[2:], weight.shape[2:], strides, dilations, pads, False)
    y = np.zeros((x.shape[0], weight.shape[0], *counts))
    per_group_in, per_group_out = weight.shape[1], weight.shape[0] // groups
    for place, taps in windows(x, weight.shape[2:], strides, dilations, pads):
        for n, m, c in itertools.product(range(x.shape[0]), range(weight.shape[0]), range(per_group_in)):
            channel = m // per_group_out * per_group_in + c
            for tap, where, _ in taps:
                if where is not None:
                    y[(n, m, *place)] += float(x[(n, channel, *where)]) * float(weight[(m, c, *tap)])
    return y
