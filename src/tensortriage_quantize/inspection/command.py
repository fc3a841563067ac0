"""``triage inspect quantizers``: does every pair of quantizers fit the values that reach it, and what does it cost?"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.sdk import (
    FeedRequest,
    answer,
    argument,
    command,
    error_size,
    external_data_field,
    magnitude,
    option,
    part,
    percent,
    samples_field,
)

if TYPE_CHECKING:
    from tensortriage_quantize.inspection.blocked_inspection import BlockRow
    from tensortriage_quantize.inspection.quantizer_rows import PairRow, QuantizersResult

EPILOG = """\b
Examples:
  triage inspect quantizers model_int8.onnx --inputs real.npz
  triage inspect quantizers model_int8.onnx --original model.onnx --inputs held_out/
"""
MOST_SHOWN = 20

DESIGNS = {
    "ReLU": "it is a ReLU as well: values below 0 are cut off on purpose",
    "ReLU6": "it is a ReLU6 as well: values below 0 and above 6 are cut off on purpose",
    "ReLU?": "it begins at 0 after an op that makes both signs: a ReLU was folded into it, or its zero point is lost, "
    "which only the float model shows (--original); it counts as a ReLU here",
    "7 bits": "7 bits on purpose, as all weights here (reduce_range): for kernels that sum in int16",
    "half range": "half of its range on purpose (as NNCF's overflow fix): for kernels that sum in int16",
    "smoothed": "a factor per input was moved into it on purpose, from the other operand (SmoothQuant)",
}
"""Intended effects of quantizers besides rounding, by the word in documents."""


@command(epilog=EPILOG)
def inspect_quantizers(
    model: Path = argument("MODEL"),
    original: Path | None = option(
        "--original", "MODEL", "The float model that MODEL was made from, for the original values of stored weights.",
        default=None, group="Model"),
    external_data_dir: Path | None = external_data_field(),
    feeding: FeedRequest = part(factory=FeedRequest, limits=None, most=samples_field(8, group="Inputs")),
    *,
    as_json: bool,
) -> None:  # fmt: skip
    """Judge every pair of QuantizeLinear and DequantizeLinear of MODEL, calibrated or learned in training.

    The model without its pairs is the reference. For each pair: the error at the outputs with this pair alone, and
    without only this pair; the range it represents against the values that reach it; and its error, divided into
    clipping and rounding.
    """
    from tensortriage.api import Model
    from tensortriage.envelope.sdk import feeds_that_run
    from tensortriage.sdk import Teller
    from tensortriage_quantize.inspection.quantizer_inspection import inspect_quantizers

    loaded = Model.load(model, external_data_dir=external_data_dir)
    with contextlib.closing(Teller(err=as_json)) as teller:
        found = inspect_quantizers(
            loaded,
            feeds_that_run(feeding, loaded),
            original=None if original is None else Model.load(original, external_data_dir=external_data_dir),
            progress=teller.progress,
        )
    answer(found, lines(found), as_json=as_json)


def lines(found: "QuantizersResult") -> Iterator[str]:
    """Yield a result as lines of text."""
    from tensortriage.sdk import count, error_size

    for blocked in found.blocks:
        yield from _block_lines(blocked)
    if found.error is None:
        return
    yield (
        f"{count(len(found.pairs), 'pair')} on {count(len(found.feeds), 'feed')} ({found.inputs} data); with all of "
        f"them outputs are off by {error_size(found.error)} (relative RMS)"
    )
    for number, row in enumerate(found.pairs[:MOST_SHOWN], 1):
        yield from row_lines(number, row)
    if len(found.pairs) > MOST_SHOWN:
        yield f"  ... and {len(found.pairs) - MOST_SHOWN} more that cost less: --json"
    if found.fixed:
        yield f"{count(len(found.fixed), 'weight')} stored quantized, assumed exact: name the float model (--original)"
    if found.remove:
        yield f"remove '{found.remove}' first: outputs are then off by {error_size(found.error_without)}"
    if found.recalibrate:
        yield f"recalibrate: ranges cut numbers off; include samples like {', '.join(found.recalibrate[:3])}"
    misfits = sum(row.kind not in ("", "fits") for row in found.pairs)
    if not misfits:
        yield "every pair that can be judged is within 3 dB of the best for these numbers"


TWICE = 1.9
"""So many times what samples give is said of a range that may be an honest one: of 300 samples with tails like
Student's t of 5 degrees the largest number is that much larger than of 64 others in one case of six."""


def _block_lines(row: "BlockRow") -> Iterator[str]:

    what = f"{row.dtype} weight" if row.weight else row.dtype
    off = (
        ""
        if row.error is None
        else f": off by {error_size(row.error)}, {error_size(row.best_error)} with the best scales"
    )
    yield f"'{row.node}' ({what}) in blocks of {row.block} along axis {row.axis}, {row.scales} scales{off}"
    right = (
        "nothing wrong" if row.error is not None else "nothing wrong is visible without the float model (--original)"
    )
    yield f"       {row.words or right}"


def row_lines(number: int, row: "PairRow") -> Iterator[str]:
    """Yield the lines about one pair."""
    left = "" if row.without is None else f", without it {error_size(row.without)}"
    what = f"{row.dtype} weight" if row.weight else row.dtype
    yield f"{number:4d} '{row.node}' ({what}): alone {error_size(row.alone)}{left}"
    if row.observed is None or row.representable is None or row.clipped is None:
        return
    met = f" on {row.observed_on}" if row.observed_on else ""
    yield (
        f"       holds {magnitude(row.representable[0], 4)} to {magnitude(row.representable[1], 4)}, meets "
        f"{magnitude(row.observed[0], 4)} to {magnitude(row.observed[1], 4)}{met}; {percent(row.clipped)} cut off; of "
        f"its error {percent(row.clipping_share or 0.0)} is clipping, the rest rounding"
    )
    if row.words:
        yield f"       {row.words}"
    held, most = (max(map(abs, ends)) for ends in (row.representable, row.observed))
    if row.observed_on and not row.words and held >= TWICE * most > 0.0:
        yield (
            f"       holds {held / most:.2g} times what any of these samples gives: its scale is too large, or was "
            "calibrated on larger numbers"
        )
    if row.design:
        yield f"       {DESIGNS[row.design]}"
