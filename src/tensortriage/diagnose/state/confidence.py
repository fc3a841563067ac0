"""How sure each kind of evidence makes a verdict: one table, each figure with its reason.

Stated confidence is checked against observed correctness by ``bench/truth.py``, decile by decile.
"""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Confidence:
    """How sure a verdict is.

    Attributes:
        real: Share of such verdicts that are right, on real data.
        random: Likewise on random data, which may miss what real data do to a model.
        reason: Why not more, and not less.
    """

    real: float
    random: float
    reason: str

    def on(self, inputs: str) -> float:
        """Return the confidence on ``real`` or ``random`` inputs."""
        return self.real if inputs == "real" else self.random


ROUNDING_EXPLAINS = Confidence(
    0.95, 0.85, "the size of the error is predicted within 3 dB; a fault of just that size cannot be excluded"
)
FREEDOMS_EXPLAIN = Confidence(
    0.9, 0.8, "as for rounding, with a freedom that was recognised by its size; it has a wider margin than rounding"
)
REFERENCE_CONTRADICTED = Confidence(
    0.95, 0.95, "two implementations that share no kernels agree against the reference on equal operands"
)
REFERENCE_OUTSIDE = Confidence(
    0.9, 0.85, "no healthy evaluation of the model comes near the reference; an error of our own kernels is possible"
)
