"""How a model that does not fit into memory was cut, in words, to be shown next to the numbers that depend on it."""

from tensortriage.frozen_dataclass import frozen_dataclass


@frozen_dataclass
class Cuts:
    """The blocks into which a model was cut.

    Attributes:
        blocks: How many there are.
        borders: Names of the results of each block that later blocks use.
        weight_bytes: Size of the model's weights.
        memory_bytes: Memory that may be used.
    """

    blocks: int
    borders: tuple[tuple[str, ...], ...]
    weight_bytes: int
    memory_bytes: int

    def in_words(self) -> str:
        """Return in one sentence why and where it was cut, and which faults that hides."""
        places = [_place(names) for names in self.borders[:_MOST]]
        more = len(self.borders) - len(places)
        listed = ", ".join(places) + (f" and {more} more" if more > 0 else "")
        return (
            f"{size_words(self.weight_bytes)} of weights do not fit into {size_words(self.memory_bytes)}: run in "
            f"{self.blocks} blocks, cut behind {listed}; each block is fed with the reference's values, so errors are "
            "those that originate in it, and a fusion across a cut, with its faults, cannot happen here"
        )


_MOST = 6


def _place(names: tuple[str, ...]) -> str:
    return f"'{names[0]}'" + (f" (+{len(names) - 1})" if len(names) > 1 else "") if names else "nothing"


def size_words(count: int) -> str:
    """Return a number of bytes in words."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
