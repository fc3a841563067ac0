"""Pictures, sounds and films for programs around a network, and what compression and other sensors do to them."""

from collections.abc import Callable

import numpy as np


def scenes(rng: np.random.Generator, count: int, height: int, width: int) -> np.ndarray:
    """Return pictures of 0 to 255 with edges, texture and a light from one side, ``[count, 3, height, width]``."""
    y, x = np.mgrid[:height, :width] / max(height, width)
    found = np.empty((count, 3, height, width))
    for at in range(count):
        picture = np.stack([0.25 + 0.5 * x * c + 0.3 * y * (1 - c) for c in rng.random(3)])
        for _ in range(14):
            cx, cy, rx, ry = *rng.random(2), *rng.uniform(0.03, 0.2, 2)
            inside = (abs(x - cx) < rx) & (abs(y - cy) < ry)
            waves = 0.1 * np.sin(rng.uniform(20, 90) * (x + rng.uniform(-1, 1) * y))
            picture = np.where(inside[None], rng.random((3, 1, 1)) + waves, picture)
        found[at] = picture + rng.normal(0, 0.015, picture.shape)
    return np.rint(255 * found.clip(0, 1))


def shrunk(pictures: np.ndarray, weights: tuple[float, ...] = (1, 1, 1)) -> np.ndarray:
    """Return pictures of a third of the size, each pixel the weighted mean of three by three, whole numbers."""
    share = np.outer(weights, weights) / np.sum(weights) ** 2
    n, c, height, width = pictures.shape
    return np.rint(np.einsum("ncyixj,ij->ncyx", pictures.reshape(n, c, height // 3, 3, width // 3, 3), share))


def boxed(pictures: np.ndarray, pad: float = 114, top: int = 10) -> np.ndarray:
    """Return pictures of 44 rows between bands, 64 rows."""
    return np.pad(pictures, [(0, 0), (0, 0), (top, 20 - top), (0, 0)], constant_values=pad)


def recording(seed: int) -> np.ndarray:
    """Return 0.7 s of a voice-like sound of 16 kHz: harmonics under moving formants, breath, and a noisy room."""
    t = np.arange(11200) / 16000
    rng = np.random.default_rng([seed, 9])
    pitch = 2 * np.pi * np.cumsum(140 + 35 * np.sin(7 * t + seed)) / 16000
    found = np.zeros_like(t)
    for k in range(1, 24):
        formants = sum(
            np.exp(-(((140 * k - f) / 220) ** 2)) for f in (600 + 250 * np.sin(9 * t), 1500 + 500 * np.cos(5 * t))
        )
        found += (0.05 / k + formants) * np.sin(k * pitch + k * k)
    loud = 0.15 + np.abs(np.sin(11 * t + seed)) ** 3
    return 0.12 * loud * found + rng.normal(0, 0.004, t.size) * (1 + np.sin(60 * t) ** 2)


def mels(wave: np.ndarray, hop: int = 160, begin: int = 0, slaney: bool = False) -> np.ndarray:
    """Return 64 frames of the logarithms of the energy in 24 bands, ``[64, 24]``."""
    frames = np.stack([np.pad(wave, 400)[400 + begin + hop * at :][:320] for at in range(64)]) * np.hanning(320)
    power = np.abs(np.fft.rfft(frames, 512)) ** 2
    hertz = np.arange(257) * 16000 / 512

    def scale(f: np.ndarray | float) -> np.ndarray:
        linear = np.asarray(f, float) * 3 / 200
        above = 15 + np.log(np.maximum(f, 1000) / 1000) / (np.log(6.4) / 27)
        return np.where(np.asarray(f) >= 1000, above, linear) if slaney else 2595 * np.log10(1 + np.asarray(f) / 700)

    edges = np.linspace(scale(20.0), scale(7600.0), 26)
    at = scale(hertz)
    up, down = (at - edges[:-2, None]) / np.diff(edges)[:-1, None], (edges[2:, None] - at) / np.diff(edges)[1:, None]
    return np.log(power @ np.maximum(0, np.minimum(up, down)).T + 1e-7)


def moving(seed: int, time: int) -> np.ndarray:
    """Return one frame of 0 to 1 of things that move, ``[3, 32, 32]``."""
    rng = np.random.default_rng([seed, 21])
    y, x = np.mgrid[:32, :32] / 32
    frame = np.stack([0.3 + 0.4 * c * y for c in rng.random(3)])
    for _ in range(6):
        (cx, cy), (vx, vy), size = rng.random(2), rng.normal(0, 0.02, 2), rng.uniform(0.08, 0.25)
        inside = (x - cx - vx * time) ** 2 + (y - cy - vy * time) ** 2 < size**2
        frame = np.where(inside[None], rng.random((3, 1, 1)) * (0.8 + 0.2 * np.sin(12 * x)), frame)
    return np.rint(255 * (frame + np.random.default_rng([seed, time]).normal(0, 0.01, frame.shape)).clip(0, 1)) / 255


def nv21(x: np.ndarray) -> np.ndarray:
    red, green, blue = np.moveaxis(x * 255, 1, 0)
    y = 0.299 * red + 0.587 * green + 0.114 * blue
    cb, cr = (red - y) * 0.713 + 128, (blue - y) * 0.564 + 128
    other = np.stack([y + 1.403 * (cr - 128), y - 0.714 * (cr - 128) - 0.344 * (cb - 128), y + 1.773 * (cb - 128)], 1)
    return np.rint(other).clip(0, 255) / 255


def noisy(share: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return a change by noise, as of another dither, another sensor or an augmentation."""

    def changed(x: np.ndarray) -> np.ndarray:
        y = x + np.random.default_rng(8).normal(0, share * x.astype(np.float64).std(), x.shape)
        return np.rint(y).clip(0, 255) if x.dtype == np.uint8 else y

    return changed  # fmt: skip


def jpeg(axes: tuple[int, int], step: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return what a compressed copy has: blocks of 8 by 8 whose cosine transform is rounded."""
    k = np.arange(8)
    basis = np.cos((2 * k[None] + 1) * k[:, None] * np.pi / 16) * np.where(k[:, None], 0.5, 8**-0.5)

    def changed(x: np.ndarray) -> np.ndarray:
        y = np.moveaxis(x.astype(np.float64), axes, (-2, -1))
        blocks = y.reshape(*y.shape[:-2], y.shape[-2] // 8, 8, y.shape[-1] // 8, 8)
        size = step * y.std() * (1 + np.add.outer(k, k) / 4)[:, None, :]
        coded = np.rint(np.einsum("ui,...yixj,vj->...yuxv", basis, blocks, basis) / size) * size
        y = np.einsum("ui,...yuxv,vj->...yixj", basis, coded, basis).reshape(y.shape)
        y = np.moveaxis(y, (-2, -1), axes)
        return np.rint(y).clip(0, 255) if x.dtype == np.uint8 else y

    return changed
