"""Normalizations; the precision that a model requests inside them (stash_type) is float64 like everything."""

import numpy as np

from tensortriage.engines.float64.kernels.call import Call, Output, kernel


def _per_channel(values: np.ndarray, rank: int) -> np.ndarray:
    return values.reshape(1, -1, *[1] * (rank - 2))


def _inverse_root(call: Call, variance: np.ndarray) -> np.ndarray:
    """Return 1 / sqrt(variance + epsilon) as the hardware computes it."""
    exact = np.asarray(1.0 / np.sqrt(variance + call.get("epsilon", 1e-5)))
    return call.arithmetic.functions.approximated("Rsqrt", exact)


def _standardized(call: Call, x: np.ndarray, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (x - mean) * factor, mean, and factor = 1 / sqrt(variance + epsilon) over axes."""
    mean = call.arithmetic.sums.mean(x, axes, keepdims=True)
    centred = x - mean
    factor = _inverse_root(call, call.arithmetic.sums.mean(centred * centred, axes, keepdims=True))
    centred *= factor
    return centred, mean, factor


@kernel("BatchNormalization")
def _batch_normalization(call: Call) -> Output:
    """BatchNormalization: ``y = (X - mean) / sqrt(var + epsilon) * scale + B``, per channel.

    X (N, C, ...), the other inputs (C). In training mode mean and variance are those of X, and the running ones follow.
    """
    x, scale, bias, mean, variance = call.inputs[:5]
    training = call.get("training_mode", 0) if call.version >= 14 else call.outputs > 1
    running: tuple[np.ndarray, ...] = ()
    if training:
        if call.version < 14:
            raise ValueError("training outputs of operator sets before 14 are not supported")
        axes = tuple(i for i in range(x.ndim) if i != 1)
        old_mean, old_variance, momentum = mean, variance, call.get("momentum", 0.9)
        mean, variance = np.mean(x, axis=axes), np.var(x, axis=axes)
        running = (
            old_mean * momentum + mean * (1.0 - momentum),
            old_variance * momentum + variance * (1.0 - momentum),
        )
    factor = call.arithmetic.functions.approximated("Rsqrt", scale / np.sqrt(variance + call.get("epsilon", 1e-5)))
    y = (x - _per_channel(mean, x.ndim)) * _per_channel(factor, x.ndim) + _per_channel(bias, x.ndim)
    return (y, *running)[: call.outputs]


@kernel("LayerNormalization")
def _layer_normalization(call: Call) -> Output:
    """LayerNormalization: ``y = (X - mean) / sqrt(var + epsilon) * Scale + B`` over the axes from `axis` on.

    Outputs y, the mean, and 1 / sqrt(var + epsilon), whose normalized axes are 1.
    """
    x, scale, bias = call[0], call[1], call[2]
    axis = call.get("axis", -1)
    axes = tuple(range(axis + x.ndim if axis < 0 else axis, x.ndim))
    y, mean, factor = _standardized(call, x, axes)
    y = y * scale
    return (y if bias is None else y + bias, mean, factor)[: call.outputs]


@kernel("RMSNormalization")
def _rms_normalization(call: Call) -> Output:
    """RMSNormalization: ``y = X / sqrt(mean(X * X) + epsilon) * scale`` over the axes from `axis` on."""
    x, axis = call[0], call.get("axis", -1)
    axes = tuple(range(axis + x.ndim if axis < 0 else axis, x.ndim))
    root = np.sqrt(call.arithmetic.sums.mean(x * x, axes, keepdims=True) + call.get("epsilon", 1e-5))
    return call.arithmetic.functions.approximated("Rsqrt", x / root) * call[1]


@kernel("InstanceNormalization")
def _instance_normalization(call: Call) -> Output:
    """InstanceNormalization: ``y = (X - mean) / sqrt(var + epsilon) * scale + B`` per sample and channel."""
    x = call[0]
    y, _, _ = _standardized(call, x, tuple(range(2, x.ndim)))
    return y * _per_channel(call[1], x.ndim) + _per_channel(call[2], x.ndim)


@kernel("GroupNormalization")
def _group_normalization(call: Call) -> Output:
    """GroupNormalization: ``y = (X - mean) / sqrt(var + epsilon) * scale + bias`` per sample and group.

    X (N, C, ...); scale and bias (num_groups) until operator set 20, (C) later.
    """
    x, groups = call[0], call.get("num_groups")
    y, _, _ = _standardized(call, x.reshape(x.shape[0], groups, -1), (2,))
    scale, bias = call[1], call[2]
    if call.version < 21:  # one number per group, later one per channel
        scale, bias = (np.repeat(values, x.shape[1] // groups) for values in (scale, bias))
    return y.reshape(x.shape) * _per_channel(scale, x.ndim) + _per_channel(bias, x.ndim)


@kernel("MeanVarianceNormalization")
def _mean_variance_normalization(call: Call) -> Output:
    """MeanVarianceNormalization: ``y = (X - mean) / (sqrt(mean((X - mean)**2)) + 1e-9)`` over `axes`."""
    axes = tuple(call.get("axes") or (0, 2, 3))
    x = call[0]
    centred = x - call.arithmetic.sums.mean(x, axes, keepdims=True)
    deviation = np.sqrt(call.arithmetic.sums.mean(centred * centred, axes, keepdims=True)) + 1e-9
    return call.arithmetic.functions.approximated("Rsqrt", centred / deviation)


@kernel("LpNormalization")
def _lp_normalization(call: Call) -> Output:
    """LpNormalization: ``y = x / norm`` of order `p`, 1 or 2, along an axis; 0 where the norm is 0."""
    x, axis = call[0], call.get("axis", -1)
    if call.get("p", 2) == 1:
        norm = call.arithmetic.sums.sum(np.abs(x), axis, keepdims=True)
    else:
        norm = np.sqrt(call.arithmetic.sums.sum(x * x, axis, keepdims=True))
    return np.divide(x, norm, out=np.zeros_like(x), where=norm != 0)


@kernel("LRN")
def _lrn(call: Call) -> Output:
    """LRN: ``y = x / (bias + alpha / size * sum of squares over size channels around)**beta``; X (N, C, ...)."""
    x, size = call[0], call.get("size")
    alpha, beta, bias = call.get("alpha", 1e-4), call.get("beta", 0.75), call.get("bias", 1.0)
    before = (size - 1) // 2
    squares = np.pad(x * x, ((0, 0), (before, size - 1 - before), *[(0, 0)] * (x.ndim - 2)))
    total = sum(squares[:, i : i + x.shape[1]] for i in range(size))
    return x / (bias + alpha / size * total) ** beta
