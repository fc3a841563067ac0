"""Share of digits read right: the task metric of the examples, and a model for your own ``--metric-script``.

A metric script defines one function,

    def metric(outputs: dict[str, numpy.ndarray], feed: dict[str, numpy.ndarray]) -> float

which is called once per sample with what a model returned and what it was fed, both by name, and returns one number;
**higher is better**. It may read files of its own (here the labels) and should raise ValueError on data it cannot
judge. Nothing of TensorTriage is imported.
"""

from pathlib import Path

import numpy as np

LABELS = Path(__file__).resolve().parent / "digits_labels.npz"


def _label_of_picture() -> dict[bytes, int]:
    with np.load(LABELS) as known:
        return {picture.tobytes(): int(label) for picture, label in zip(known["pixels"], known["labels"], strict=True)}


def _pictures(feed: dict[str, np.ndarray]) -> np.ndarray:
    """Return uint8 ``[batch, 8, 8]`` in 0 to 16 from an ``image`` in 0 to 1 or from ``pixels`` in 0 to 255."""
    if "image" in feed:
        scaled = feed["image"] * 16
    elif "pixels" in feed:
        scaled = feed["pixels"] * (16 / 255)
    else:
        raise ValueError(f"a feed of the digits examples has 'image' or 'pixels', this one has {sorted(feed)}")
    return np.rint(scaled).astype(np.uint8).reshape(-1, 8, 8)


def metric(outputs: dict[str, np.ndarray], feed: dict[str, np.ndarray]) -> float:
    """Return the accuracy, 0 to 1, of ``logits`` ``[batch, 10]``; a row with a NaN or Inf counts as read wrong."""
    known = _label_of_picture()
    pictures = _pictures(feed)
    unknown = sum(picture.tobytes() not in known for picture in pictures)
    if unknown:
        raise ValueError(f"{unknown} of {len(pictures)} pictures are not in {LABELS.name}, so their digit is unknown")
    labels = np.array([known[picture.tobytes()] for picture in pictures])
    logits = outputs["logits"]
    right = np.isfinite(logits).all(axis=1) & (logits.argmax(axis=1) == labels)
    return float(right.mean())
