"""The options of ``triage run`` that say when an output is right: tolerances, statistics, functions, scripts.

`tensortriage.cli.run.tolerance_options` turns them into tolerances.
"""

from tensortriage.cli.options import TOLERANCE_LISTS, option, together, tolerance_options

JUDGE = "Judgement"
NUMBERS = "[OUT:]NUMBER..."

JUDGEMENT_LISTS = (
    *TOLERANCE_LISTS,
    "--check-error-stat",
    "--error-quantile",
    "--compare",
    "--compare-func",
    "--postprocess",
    "--postprocess-func",
    "--l2-threshold",
    "--l2-tolerance",
    "--cosine-similarity-threshold",
    "--psnr-threshold",
    "--psnr-tolerance",
    "--snr-threshold",
    "--snr-tolerance",
    "--index-tolerance",
)

judgement_options = together(
    tolerance_options(
        JUDGE,
        "Absolute tolerance; an element passes within either tolerance. Without a tolerance the noise floor is "
        "the limit.",
    ),
    option(
        "--check-error-stat",
        "error_stat",
        multiple=True,
        metavar="[OUT:]STAT...",
        heading=JUDGE,
        help="Error statistic that is judged: elemwise, max, mean, median or quantile.",
    ),
    option(
        "--check-average",
        is_flag=True,
        heading=JUDGE,
        rare=True,
        help="Judge the mean of each metric over all feeds instead of every feed by itself.",
    ),
    option(
        "--error-quantile",
        multiple=True,
        metavar=NUMBERS,
        heading=JUDGE,
        rare=True,
        help="Which quantile is judged by --check-error-stat quantile  [default: 0.99].",
    ),
    option(
        "--compare",
        "--compare-func",
        "functions",
        multiple=True,
        metavar="FUNC...",
        heading=JUDGE,
        help="Comparison functions: simple, indices, l2, cosine_similarity, psnr, snr, distance_metrics, "
        "quality_metrics.",
    ),
    option(
        "--l2-threshold",
        "--l2-tolerance",
        "l2",
        multiple=True,
        metavar=NUMBERS,
        heading=JUDGE,
        rare=True,
        help="Largest L2 norm of the error.",
    ),
    option(
        "--cosine-similarity-threshold",
        "cosine",
        multiple=True,
        metavar=NUMBERS,
        heading=JUDGE,
        rare=True,
        help="Smallest cosine similarity.",
    ),
    option(
        "--psnr-threshold",
        "--psnr-tolerance",
        "psnr",
        multiple=True,
        metavar=NUMBERS,
        heading=JUDGE,
        rare=True,
        help="Smallest PSNR in dB.",
    ),
    option(
        "--snr-threshold",
        "--snr-tolerance",
        "snr",
        multiple=True,
        metavar=NUMBERS,
        heading=JUDGE,
        rare=True,
        help="Smallest SNR in dB.",
    ),
    option(
        "--infinities-compare-equal",
        is_flag=True,
        heading=JUDGE,
        rare=True,
        help="Infinities of the same sign are equal.",
    ),
    option(
        "--compare-func-script",
        default="",
        metavar="FILE.py[:FUNC]",
        heading=JUDGE,
        rare=True,
        help="compare_outputs(name, reference, target) -> bool; replaces other judgements.",
    ),
    option(
        "--metric-script",
        default="",
        metavar="FILE.py[:FUNC]",
        heading=JUDGE,
        help="Task metric: metric(outputs, feed) -> float, larger is better; reported per engine.",
    ),
    option("--validate", is_flag=True, heading=JUDGE, help="NaN or Inf in any output is a failure."),
    option(
        "--postprocess",
        "--postprocess-func",
        "postprocess",
        multiple=True,
        metavar="[OUT:]top-K[,axis=A]...",
        heading=JUDGE,
        rare=True,
        help="Replace outputs by the indices of their K largest.",
    ),
    option(
        "--postprocess-func-script",
        default="",
        metavar="FILE.py[:FUNC]",
        heading=JUDGE,
        rare=True,
        help="postprocess_outputs(outputs) -> outputs, for every engine.",
    ),
    option(
        "--no-shape-check",
        is_flag=True,
        heading=JUDGE,
        rare=True,
        help="Compare outputs of equal size and different shape as flat arrays.",
    ),
    option(
        "--index-tolerance",
        multiple=True,
        metavar=NUMBERS,
        heading=JUDGE,
        rare=True,
        help="How many places an index may have moved, for --compare indices.",
    ),
)
"""The judgement options, listed in this order."""
