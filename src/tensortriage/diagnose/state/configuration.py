"""Findings about the target's options: which give right answers, and which break them."""

from tensortriage.engines.spec import EngineSpec
from tensortriage.frozen_dataclass import frozen_dataclass


@frozen_dataclass
class Configuration:
    """Between which configurations the answer breaks.

    Attributes:
        works: The most aggressive configuration tried that gives right answers on every feed.
        breaks: The setting of the first wrong configuration, in words.
        passes: The fewest optimizer passes whose presence breaks it; empty when the engine does not report them.
        disabled: The passes left out in ``works``.
    """

    works: EngineSpec
    breaks: str
    broken: EngineSpec
    passes: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()

    @property
    def transformation(self) -> str:
        """The breaking options, in words."""
        return " + ".join(self.passes) if self.passes else self.breaks
