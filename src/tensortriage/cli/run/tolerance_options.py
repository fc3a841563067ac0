"""From the judgement options of ``triage run`` to tolerances, with Polygraphy's meanings and defaults."""

from collections.abc import Sequence

import numpy as np

from tensortriage.cli.option_values import JudgementValues
from tensortriage.compare.judgement.index_tolerance import IndexTolerance
from tensortriage.compare.judgement.judgement import Basis, Judgement
from tensortriage.compare.judgement.tolerance import (
    ErrorStat,
    PolygraphyTolerance,
    ThresholdKind,
    ThresholdTolerance,
    Tolerance,
)
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.engines.base import Limits
from tensortriage.errors import UsageError
from tensortriage.inputs.syntax import parse_named, parse_number
from tensortriage.runs.scripts import COMPARE, ScriptFunction

FUNCTIONS = {
    "simple": (None,),
    "l2": (ThresholdKind.L2,),
    "cosine_similarity": (ThresholdKind.COSINE_SIMILARITY,),
    "psnr": (ThresholdKind.PSNR,),
    "snr": (ThresholdKind.SNR,),
    "distance_metrics": (ThresholdKind.L2, ThresholdKind.COSINE_SIMILARITY),
    "quality_metrics": (ThresholdKind.PSNR, ThresholdKind.SNR),
}
"""Comparison functions; None stands for absolute and relative tolerances. Aliases stand for several."""

INDICES = "indices"
"""The comparison function that asks how far values have moved along their rows."""


def tolerances_of(given: JudgementValues, limits: Limits) -> list[Tolerance]:
    """Return the tolerances that the options ask for; none when they ask for none (the noise floor judges).

    Args:
        given: The options.
        limits: Of a script that judges.

    Raises:
        UsageError: For an unknown function, statistic or a malformed number.
    """
    if given["compare_func_script"]:
        return [ScriptTolerance(given["compare_func_script"], limits)]
    functions = list(given["functions"])
    simple = any((
        given["atol"], given["rtol"], given["error_stat"], given["error_quantile"], given["infinities_compare_equal"],
    ))  # fmt: skip
    if simple and not functions:
        functions = ["simple"]
    if given["index_tolerance"] and INDICES not in functions:
        functions.append(INDICES)
    limited = thresholds_of(given)
    functions += [kind.value for kind, texts in limited.items() if texts and not covered(kind, functions)]
    found: list[Tolerance] = []
    for function in functions:
        if function == INDICES:
            found.append(IndexTolerance(parse_named(given["index_tolerance"], parse_places) or 0))
            continue
        if function not in FUNCTIONS:
            raise UsageError(
                f"'{function}' is not a comparison function",
                slug="compare-unknown",
                cure="use one of: " + ", ".join([*FUNCTIONS, INDICES]),
            )
        for kind in FUNCTIONS[function]:
            found.append(simple_tolerance(given) if kind is None else threshold(kind, limited[kind]))
    return found


def covered(kind: ThresholdKind, functions: Sequence[str]) -> bool:
    """Whether one of the functions named already stands for a kind."""
    return any(kind in FUNCTIONS.get(function, ()) for function in functions)


def simple_tolerance(given: JudgementValues) -> PolygraphyTolerance:
    """Return the tolerance of ``simple``."""
    stats = {name: ErrorStat.parse(word) for name, word in parse_named(given["error_stat"], str).items()}
    return PolygraphyTolerance(
        atol=parse_named(given["atol"], parse_number),
        rtol=parse_named(given["rtol"], parse_number),
        check_error_stat=stats,
        error_quantile=parse_named(given["error_quantile"], parse_number),
        infinities_compare_equal=given["infinities_compare_equal"],
    )


def parse_places(text: str) -> float:
    """Return a whole number of places.

    Raises:
        UsageError: For anything else (``index-tolerance-invalid``).
    """
    number = parse_number(text)
    if number < 0 or number != int(number):
        raise UsageError(f"{text} is not a number of places", slug="index-tolerance-invalid", cure="give 0, 1, 2, ...")
    return number


def thresholds_of(given: JudgementValues) -> dict[ThresholdKind, tuple[str, ...]]:
    """Return the thresholds given for each function."""
    return {
        ThresholdKind.L2: given["l2"],
        ThresholdKind.COSINE_SIMILARITY: given["cosine"],
        ThresholdKind.PSNR: given["psnr"],
        ThresholdKind.SNR: given["snr"],
    }


def threshold(kind: ThresholdKind, texts: Sequence[str]) -> ThresholdTolerance:
    """Return the tolerance of a threshold function."""
    return ThresholdTolerance(kind, parse_named(texts, parse_number) or None)


class ScriptTolerance:
    """Judges by a user's function ``compare_outputs(name, reference, target) -> bool``.

    Args:
        script: ``FILE.py[:FUNCTION]``.
        limits: Bounds on every call.
    """

    def __init__(self, script: str, limits: Limits) -> None:
        self._script = script
        self._function = ScriptFunction(script, COMPARE, limits)

    def judge(self, name: str, metrics: Metrics, reference: np.ndarray, target: np.ndarray) -> Judgement:
        """See `Tolerance`."""
        within = self._function.truth(name, reference, target)
        return Judgement(within, self._script, 0.0 if within else float("inf"), Basis.USER)
