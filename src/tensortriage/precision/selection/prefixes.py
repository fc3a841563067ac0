"""The two searches that Polygraphy has: how many of the first (or last) nodes must be kept?

They are offered for comparison and habit. Sensitive nodes are seldom neighbours, so what they find keeps everything
before the last of them. Unlike Polygraphy's, nothing kept and everything kept are asked about first.
"""

from collections.abc import Callable, Sequence


def bisected(items: Sequence[str], enough: Callable[[Sequence[str]], bool]) -> list[str]:
    """Return the shortest prefix that is enough, by halving; all items are known to be enough, and none not to be."""
    low, high = 0, len(items)
    while high - low > 1:
        middle = (low + high) // 2
        if enough(items[:middle]):
            high = middle
        else:
            low = middle
    return list(items[:high])


def linear(items: Sequence[str], enough: Callable[[Sequence[str]], bool]) -> list[str]:
    """Return the shortest prefix that is enough, one more at a time."""
    for count in range(1, len(items)):
        if enough(items[:count]):
            return list(items[:count])
    return list(items)
