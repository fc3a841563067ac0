"""Options that define when an output is right, with Polygraphy's meanings, and their tolerances."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tensortriage.compare.judgement.tolerance_options import NUMBERS, READ_NUMBERS, atol_field, rtol_field
from tensortriage.errors import UsageError
from tensortriage.values.options import flag, option, request

if TYPE_CHECKING:
    from tensortriage.compare.judgement.tolerance import PolygraphyTolerance, Tolerance
    from tensortriage.engines.base import Limits

JUDGE = "Judgement"
FUNCTIONS = {
    "simple": ("simple",),
    "l2": ("l2",),
    "cosine_similarity": ("cosine_similarity",),
    "psnr": ("psnr",),
    "snr": ("snr",),
    "distance_metrics": ("l2", "cosine_similarity"),
    "quality_metrics": ("psnr", "snr"),
}
"""Comparison functions; aliases stand for several."""
INDICES = "indices"
"""The comparison function that looks for values that have moved along their rows."""


THRESHOLDS = {
    "l2": ("--l2-threshold --l2-tolerance", "Largest L2 norm of the error."),
    "cosine_similarity": ("--cosine-similarity-threshold", "Smallest cosine similarity."),
    "psnr": ("--psnr-threshold --psnr-tolerance", "Smallest PSNR in dB."),
    "snr": ("--snr-threshold --snr-tolerance", "Smallest SNR in dB."),
}
"""Limits of one number of a whole tensor."""


def threshold_field(kind: str, *, rare: bool = True) -> Mapping[str, float]:
    """Declare a limit of one number of a whole tensor."""
    names, text = THRESHOLDS[kind]
    return option(names, NUMBERS, text, default_factory=dict, read=READ_NUMBERS, rare=rare)


@request
class JudgementOptions:
    """The tolerances of outputs."""

    # fmt: off
    atol: Mapping[str, float] = atol_field(
        "Absolute tolerance; an element passes within either tolerance. Without a tolerance the noise floor is the "
        "limit.", group=JUDGE)
    rtol: Mapping[str, float] = rtol_field()
    error_stat: Mapping[str, str] = option(
        "--check-error-stat", "[OUT:]STAT...", "Error statistic that is judged: elemwise, max, mean, median or "
        "quantile.", default_factory=dict, read="tensortriage.inputs.syntax:parse_words")
    check_average: bool = flag(
        "--check-average", "Judge the mean of each metric over all feeds instead of each feed separately.", rare=True)
    error_quantile: Mapping[str, float] = option(
        "--error-quantile", NUMBERS, "Which quantile is judged by --check-error-stat quantile  [default: 0.99].",
        default_factory=dict, read=READ_NUMBERS, rare=True)
    functions: tuple[str, ...] = option(
        "--compare --compare-func", "FUNC...", "Comparison functions: simple, indices, l2, cosine_similarity, psnr, "
        "snr, distance_metrics, quality_metrics.", default=())
    l2: Mapping[str, float] = threshold_field("l2")
    cosine_similarity: Mapping[str, float] = threshold_field("cosine_similarity")
    psnr: Mapping[str, float] = threshold_field("psnr")
    snr: Mapping[str, float] = threshold_field("snr")
    infinities_compare_equal: bool = flag(
        "--infinities-compare-equal", "Infinities of the same sign are equal.", rare=True)
    compare_func_script: str = option(
        "--compare-func-script", "FILE.py[:FUNC]", "compare_outputs(name, reference, target) -> bool; replaces other "
        "judgements.", default="", rare=True)
    index_tolerance: Mapping[str, float] = option(
        "--index-tolerance", NUMBERS, "Number of positions that an index may move, for --compare indices.",
        default_factory=dict, read="tensortriage.inputs.syntax:parse_places", rare=True)
    # fmt: on

    def tolerances(self, limits: "Limits") -> "list[Tolerance]":
        """Return the tolerances of the options; none without such options (the noise floor judges).

        Args:
            limits: Limits of a script that judges.

        Raises:
            UsageError: For an unknown function or statistic.
        """
        if self.compare_func_script:
            from tensortriage.cli.run.script_tolerance import ScriptTolerance

            return [ScriptTolerance(self.compare_func_script, limits)]
        from tensortriage.compare.judgement.tolerance import IndexTolerance, ThresholdKind, ThresholdTolerance

        functions = list(self.functions)
        if not functions and self._asks_simple():
            functions = ["simple"]
        if self.index_tolerance and INDICES not in functions:
            functions.append(INDICES)
        for kind in ThresholdKind:
            named = any(kind.value in FUNCTIONS.get(function, ()) for function in functions)
            functions += [kind.value] if getattr(self, kind.value) and not named else []
        found: list[Tolerance] = []
        for function in functions:
            if function == INDICES:
                found.append(IndexTolerance(self.index_tolerance or 0))
                continue
            if function not in FUNCTIONS:
                raise UsageError(
                    f"'{function}' is not a comparison function",
                    slug="compare-unknown",
                    cure="use one of: " + ", ".join([*FUNCTIONS, INDICES]),
                )
            for word in FUNCTIONS[function]:
                limited = getattr(self, word, None) or None
                found.append(self._simple() if word == "simple" else ThresholdTolerance(ThresholdKind(word), limited))
        return found

    def _asks_simple(self) -> bool:
        return bool(self.atol or self.rtol or self.error_stat or self.error_quantile or self.infinities_compare_equal)

    def _simple(self) -> "PolygraphyTolerance":
        from tensortriage.compare.judgement.tolerance import ErrorStat, PolygraphyTolerance

        return PolygraphyTolerance(
            atol=self.atol,
            rtol=self.rtol,
            check_error_stat={name: ErrorStat.parse(word) for name, word in self.error_stat.items()},
            error_quantile=self.error_quantile,
            infinities_compare_equal=self.infinities_compare_equal,
        )
