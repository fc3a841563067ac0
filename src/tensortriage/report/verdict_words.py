"""The meaning of each verdict, in one place for all renderers.

The words of `VerdictKind` are for files and scripts; a person who meets ``fusion-fault`` for the first time needs a
title and one sentence. How loud a verdict is, its `Tone`, is always shown as a word and a sign too, never by colour
alone.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tensortriage.diagnose.state.verdict import Culprit, VerdictKind
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.report.tables import Tone
from tensortriage.values.text import count, error_size

BREAKERS = "these tensors restore the answer when they are marked as outputs"


@frozen_dataclass
class KindWords:
    """A verdict in words.

    Attributes:
        title: A few words, capitalised, without full stop.
        meaning: The general meaning of this verdict, one sentence.
        tone: How loud it is.
    """

    title: str
    meaning: str
    tone: Tone


def _problem(title: str, meaning: str) -> KindWords:
    return KindWords(title, meaning, Tone.PROBLEM)


KIND_WORDS: Mapping[VerdictKind, KindWords] = MappingProxyType(
    {
        VerdictKind.MATCH: KindWords(
            "The outputs match", "Every output is within the noise floor, or the tolerance that was given.", Tone.GOOD
        ),
        VerdictKind.INPUT_SENSITIVE: KindWords(
            "Fails on random data only",
            "Real inputs pass; the random ones drive the model outside its working range.",
            Tone.NOTICE,
        ),
        VerdictKind.ROUNDING: KindWords(
            "Rounding explains the error",
            "The number format, and choices that the hardware may make, explain the error: no op needs to be wrong.",
            Tone.NOTICE,
        ),
        VerdictKind.COMPARISON_UNSOUND: _problem(
            "The comparison itself is not sound",
            "Reference and target cannot be compared as they are, so nothing can be said about the target yet.",
        ),
        VerdictKind.MODEL_CHANGED: _problem(
            "The two models differ",
            "The target runs a different model from the reference's: the answer changed before any engine ran.",
        ),
        VerdictKind.NON_FINITE: _problem(
            "NaN or Inf that the reference does not have",
            "The target produces NaN or Inf where the reference is finite.",
        ),
        VerdictKind.RANGE_OVERFLOW: _problem(
            "A value the number format cannot hold",
            "A finite value of the reference exceeds the range of the target's format.",
        ),
        VerdictKind.LOCAL_FAULT: _problem(
            "An op computes wrong numbers",
            "Fed with correct inputs, the op still returns wrong results on the target.",
        ),
        VerdictKind.FUSION_FAULT: _problem(
            "Ops go wrong only when fused", "Each op is right alone; the fused region of the target is wrong."
        ),
        VerdictKind.LAYOUT: _problem(
            "The numbers are right but in the wrong place", "The target's values are a permutation of the reference's."
        ),
        VerdictKind.QUANTIZATION: _problem(
            "Quantization makes the numbers wrong",
            "A scale, zero point or sum of quantized numbers is wrong, or the target quantizes without being asked to.",
        ),
        VerdictKind.INTERMITTENT: _problem(
            "Builds of one model give different answers", "The same model built again gives another answer."
        ),
        VerdictKind.NONDETERMINISTIC_RUN: _problem(
            "The same engine gives different answers", "Running one built engine twice on one input gives two results."
        ),
        VerdictKind.BUILD_FAILED: _problem("The engine refuses the model", "The target could not build the model."),
        VerdictKind.ENGINE_CRASH: _problem("The engine crashes", "The process of the target died."),
        VerdictKind.ENGINE_HANG: _problem("The engine hangs", "The target did not finish within its time limit."),
        VerdictKind.INCONCLUSIVE: KindWords(
            "Not decided",
            "The evidence does not single out one explanation; the steps name the missing evidence.",
            Tone.UNSURE,
        ),
    }
)


_EFFECTS: Mapping[VerdictKind, str] = MappingProxyType(
    {
        VerdictKind.LOCAL_FAULT: "computes wrong numbers",
        VerdictKind.NON_FINITE: "returns NaN or Inf",
        VerdictKind.RANGE_OVERFLOW: "leaves the range of the number format",
        VerdictKind.LAYOUT: "returns right numbers in wrong places",
        VerdictKind.FUSION_FAULT: "goes wrong only when fused",
    }
)
"""Description of a verdict's first culprit, where its error gives none."""


LOST_WORDS = _problem(
    "Half of an output is lost to rounding",
    "No op needs to be wrong, but an output that has lost half of its signal is of no use.",
)
"""The words of a verdict that is lost, whatever explains it."""


_SHORT_CHANGE = re.compile(r"^has [^,;]{,60} instead of [^,;]{,60}|(?<=in another way: )has [^,;]+")
"""The first changed attribute in a culprit's reason."""


def headline(kind: VerdictKind, culprits: Sequence[Culprit]) -> str:
    """Return op, module and effect in a few words; the meaning of the verdict where no op is to blame.

    Example:
        ``Gelu blocks.2.mlp.1 (node_gelu_2) returns 1.03 times the right value``
    """
    title = KIND_WORDS[kind].title
    if kind.exit_code != 1 or not culprits:
        return title
    first, more = culprits[0], len({culprit.node for culprit in culprits}) - 1
    joined = "or" if len({culprit.value for culprit in culprits}) == 1 else "and"  # of one value any may be wrong
    others = f" ({joined} {count(more, 'more op')})" if more else ""
    effect = _EFFECTS.get(kind, "")
    if not effect:
        seen = _SHORT_CHANGE.search(first.reason) if kind is VerdictKind.MODEL_CHANGED else None
        return f"{title}: {place_of(first)}{f' {seen[0]}' if seen else ''}{others}"
    if kind is VerdictKind.LOCAL_FAULT and first.local_error is not None:
        effect = first.effect or f"is off by {error_size(first.local_error)}"
    return f"{place_of(first)} {effect}{others}"


def place_of(culprit: Culprit) -> str:
    """Return operator, module and node: ``Gelu blocks.2.mlp.1 (node_gelu_2)``."""
    module = culprit.origin.module if culprit.origin.tells_more(culprit.node) else ""
    return f"{culprit.op_type} {module} ({culprit.node})" if module else f"{culprit.op_type} {culprit.node}"
