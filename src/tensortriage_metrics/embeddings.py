"""The cosine of embeddings: do vectors point where they should?"""

import numpy as np

from tensortriage_metrics.choice import Arrays, chosen, right


def cosine(
    outputs: Arrays, feed: Arrays, labels: np.ndarray | Arrays | None = None, reference: Arrays | None = None
) -> np.ndarray:
    """Return the cosine of each row with the label of its shape, if there is one, else with the reference's row.

    Two vectors of zeros point the same way; one of zeros, or with a NaN, scores 0.

    Args:
        outputs: Outputs of the model; vectors ``[rows, ...]``, or one vector.
        feed: The feed.
        labels: Vectors, where they are known.
        reference: Outputs of the reference.
    """
    name = chosen(outputs, "embed|feature|pool|hidden|latent|vector")
    found = np.asarray(outputs[name])
    usable = isinstance(labels, np.ndarray) and labels.shape == found.shape and labels.dtype.kind == "f"
    wanted = np.asarray(labels) if usable else right(name, reference)
    rows = len(found) if found.ndim > 1 else 1
    one, other = (array.astype(np.float64).reshape(rows, -1) for array in (found, wanted))
    sizes = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    with np.errstate(all="ignore"):
        cosines = np.where(sizes > 0, (one * other).sum(axis=1) / sizes, ~(one.any(axis=1) | other.any(axis=1)))
    return np.where(np.isfinite(cosines), np.clip(cosines, -1.0, 1.0), 0.0)
