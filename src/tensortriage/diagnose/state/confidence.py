"""How sure each kind of evidence makes a verdict: one table, each figure with its reason.

Stated confidence is checked against observed correctness by ``bench/truth.py``, decile by decile (bench/RESULTS.md,
"Truth"): of 459 verdicts stated at 0.9 to 1.0 (0.95 in the mean) 455 were right with their culprit (0.99), of 4 stated
at 0.85 two, of 2 stated at 0.5 none. Single rows were not observed often enough to be separated, but for `unfailing`.
"""

from tensortriage.frozen_dataclass import frozen_dataclass


@frozen_dataclass
class Confidence:
    """The confidence of a verdict, with its basis.

    Attributes:
        real: Share of such verdicts that are right, on real data.
        random: Likewise on random data, which may miss effects of real data on a model.
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
    0.9, 0.8, "as for rounding, plus a freedom recognised by its size, with a wider margin than rounding"
)
REFERENCE_CONTRADICTED = Confidence(
    0.95, 0.95, "two implementations that share no kernels agree against the reference on equal operands"
)
REFERENCE_OUTSIDE = Confidence(
    0.9, 0.85, "no healthy evaluation of the model comes near the reference; an error of our own kernels is possible"
)

OBSERVED = Confidence(1.0, 1.0, "the verdict is the observation itself: no inference lies between them")
SILENT_REFERENCE = Confidence(
    0.9, 0.9, "agreement with a constant proves nothing; that the constant is wrong is not certain"
)
IN_ANOTHER_LAYOUT = Confidence(
    0.97,
    0.97,
    "the values are the reference's in another order, which is not chance; the model may intend it",
)
FED_OTHERWISE = Confidence(
    0.97, 0.95, "the reference on another input gives the target's outputs, which happens by chance once in a thousand"
)
MISSHAPEN_OP = Confidence(
    0.97, 0.97, "a wrong shape or type explains the failure, but an earlier op may have caused it"
)
EXCHANGED_OUTPUTS = Confidence(
    0.99, 0.99, "outputs hold each other's values; only a model with exchanged names in its file would look alike"
)
ALL_OUTPUTS_MOVED = Confidence(0.95, 0.95, "every failing output is in another order, but no op was seen to cause it")
SOME_OUTPUTS_MOVED = Confidence(
    0.7, 0.7, "only some failing outputs are in another order; the others need another explanation"
)
NONFINITE_BORN = Confidence(
    0.97, 0.97, "the first op in the run with finite operands and a NaN or Inf result; marking may have moved it"
)
NONFINITE_BORN_ALONE = Confidence(0.9, 0.9, "seen on golden operands, which the target's own run need not have")
NONFINITE_MISLED = Confidence(
    0.7, 0.7, "its operands were already off, and whether it does so on golden ones is unknown"
)
NONFINITE_UNBLAMED = Confidence(0.6, 0.6, "the place is known, but no op is wrong in isolation")
OVERFLOW_PROVEN = Confidence(0.99, 0.99, "keeping the values in range cures the output")
OVERFLOW_LIKELY = Confidence(
    0.85, 0.85, "a value is beyond the format, but avoiding it did not remove most of the error"
)
NUMBERS_FLUSHED = Confidence(
    0.85, 0.85, "a subnormal number that became zero was seen on the way; a fault at other elements may hide behind it"
)
INTEGER_ARITHMETIC = Confidence(
    0.9, 0.8, "predicted within 3 dB by biases in int32; other freedoms of integer kernels are not looked at"
)
QUANTIZATION_COSTS = Confidence(
    0.9, 0.75, "all quantizers fit the values they quantize; they were not calibrated for random numbers"
)
DESTROYED = Confidence(
    0.95,
    0.95,
    "measured on the reference; a small change could make the file resemble the network by chance",
)
AMPLIFIED = Confidence(
    0.9, 0.9, "one ulp at the inputs, or a tie, moves outputs as much, and every op alone is healthy"
)
AMPLIFIED_UNPROVEN = Confidence(
    0.6, 0.6, "one ulp at the inputs moves outputs as much, but the ops could not be run in isolation"
)
FUSION_CURED = Confidence(0.98, 0.98, "marking values, which breaks the fusion, cures the output")
ROUNDS_INSIDE = Confidence(0.5, 0.5, "the ops are known; whether their kernel is coarse or wrong is not")
FUSION_IN_THE_WHOLE = Confidence(0.85, 0.85, "marking cures it, but no piece of the model shows it")
CURED_BY_SETTING = Confidence(0.95, 0.9, "the outputs are right with one setting off, which changes nothing else")
KEPT_BUILD = Confidence(0.97, 0.97, "other weights under the same names change nothing, so others are run")
TRANSFORMATION_CURED = Confidence(0.9, 0.9, "without the transformation the outputs are right")
TRANSFORMATION_HELPS = Confidence(0.75, 0.75, "without the transformation the outputs are better, not right")
CHANGED_UNNAMED = Confidence(0.9, 0.9, "the models differ in their outputs, but no node was seen to cause it")
GIVEN_FILE = Confidence(
    0.9, 0.9, "the file is not what the engine builds here; it may be of another model or another release"
)
MOVES_UNNAMED = Confidence(0.8, 0.8, "runs differ, but none of the tensors once marked: the race may be anywhere")
UNDECIDED = Confidence(
    0.5, 0.5, "the failure is certain, its cause is not: more measurements would name one about half the time"
)
BUILDS_UNTOLD = Confidence(0.95, 0.95, "builds were seen to differ; how often is known from a few builds only")


def blamed(explained: float, *, at_most: float = 1.0) -> float:
    """Return the confidence in culprits that explain a share of the output error when injected or undone.

    Half, for a cause that explains nothing is as likely to be innocent as not; the rest grows with the share, and is
    certain only where injection explains all. Below half of the error nothing is blamed, unless a remedy proved it.

    Args:
        explained: The share.
        at_most: Where that ends; `FUSED` for sets of ops.
    """
    return 0.5 + (at_most - 0.5) * explained


FUSED = 0.95
"""Most confidence in a set of ops that is wrong only together: a smaller set may do the same where it was not tried."""

LEAST_BLAMED = 0.5
"""Share of the error that counts as explained at least where a culprit is proven in another way (a remedy, a NaN)."""


def unfailing(samples: int, inputs: str) -> float:
    """Return the confidence in a match: of those on one feed of the corpus, 96 % were right (``bench/truth.py``).

    More samples divide the chance of a miss. On random data more than twice that chance is assumed, which was not
    measured: their effect on a model is not that of real data.
    """
    return 1.0 - (0.04 if inputs == "real" else 0.1) / samples


def passing_real_data(samples: int) -> float:
    """Return the confidence that failures on random data are the data's: as `unfailing` on the real ones."""
    return unfailing(samples, "real")
