"""Positions that a mask or a length hides: their values may have no effect."""

import numpy as np

from tensortriage.api import Feed
from tensortriage_steps.consistency.relations import ClaimKind, EqualityClaim


def masked_relation(feed: Feed) -> EqualityClaim | None:
    """Return the claim that positions hidden by a mask or a length have no effect; None where no input hides any.

    A mask is an input of zeros and ones, two axes, that is called so; a length is an integer for each row. Inputs that
    share the first two axes hold other numbers in the right run where they are hidden. Where nothing is hidden, the
    last quarter of every row is, in both runs.
    """
    found = _hidden(feed)
    if found is None:
        return None
    name, hidden, left = found
    shape = hidden.shape
    changed = dict(left)
    for other, array in left.items():
        if other != name and array.ndim >= 2 and array.shape[:2] == shape:
            places = hidden.reshape(*shape, *[1] * (array.ndim - 2))
            changed[other] = np.where(places, np.flip(array, axis=1), array)
    if all(np.array_equal(changed[other], left[other]) for other in left):
        return None
    return EqualityClaim(
        ClaimKind.MASKED,
        f"are the positions that '{name}' hides without effect?",
        Feed(f"hidden by {name}", left, feed.origin),
        Feed(f"hidden by {name}, other numbers there", changed, feed.origin),
    )


def _hidden(feed: Feed) -> tuple[str, np.ndarray, dict[str, np.ndarray]] | None:
    """Return the input that hides positions, where (bool, rows by positions), and the feed with something hidden."""
    tensors = dict(feed.tensors)
    for name, array in feed.tensors.items():
        if "mask" in name.lower() and array.ndim == 2 and array.dtype.kind in "iufb" and np.isin(array, (0, 1)).all():
            mask = array.copy()
            if mask.all():
                mask[:, -max(1, mask.shape[1] // 4) :] = 0
            tensors[name] = mask
            return name, np.asarray(mask == 0), tensors
        steps = _steps(feed, name) if "len" in name.lower() else 0
        if steps:
            lengths = (
                array if (array < steps).any() else np.minimum(array, max(1, steps - steps // 4)).astype(array.dtype)
            )
            tensors[name] = lengths
            return name, np.arange(steps)[None, :] >= lengths.reshape(-1, 1), tensors
    return None


def _steps(feed: Feed, name: str) -> int:
    """Return along how many positions the numbers of an input can be lengths; 0 when they cannot."""
    lengths = feed.tensors[name]
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or not lengths.size:
        return 0
    sizes = [a.shape[1] for n, a in feed.tensors.items() if n != name and a.ndim >= 2 and len(a) == len(lengths)]
    return next((size for size in sizes if lengths.min() > 0 and lengths.max() <= size), 0)
