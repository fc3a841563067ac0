"""Does a target that was not told to compute in a narrow format compute in one? Its outputs show it.

Engines take bf16 or fp16 by themselves where the processor has it (OpenVINO, ARM's kernels, phone GPUs). Where every
number of the outputs is one of such a format, with larger errors than rounding the right ones to it, the target is
judged as one that was asked for that format.
"""

import dataclasses

import numpy as np

from tensortriage.diagnose.sdk import (
    Answer,
    Evidence,
    Findings,
    Investigation,
    Precision,
    TriageError,
    Unsound,
    compare_outputs,
    lay_out,
    narrow_nodes,
    narrowed,
    rung,
    scan_ranges,
)
from tensortriage.envelope.sdk import resolve

QUESTION = "do the outputs show a narrower format than was asked for?"
_FORMATS = {"bfloat16": Precision.BF16, "float16": Precision.FP16}


@rung(
    QUESTION,
    reads=("results",),
    gives=("results", "ranges", "shown_format"),
    cost="a build and a run, if they do, in that format",
    after="is the given file at fault, or the engine's own build?",
)
def computed_format(inv: Investigation, evidence: Evidence) -> Answer | None:
    """Look at the numbers of the outputs; the questions after it are about the format that they show."""
    question = inv.question
    told = "precision" in question.target.options or resolve(question.target).precision is not Precision.FP32
    if evidence.worst_feed.passes or told or question.target_model is not None or narrow_nodes(inv.model):
        return None
    try:
        shown = _shown(inv, evidence)
        if shown is None:
            return None
        target = question.target.with_options({**question.target.options, "precision": shown.value})
        inv.lab.outputs(target, inv.model, evidence.feed)
        asking = inv.about(dataclasses.replace(question, target=target))
        results = compare_outputs(asking, evidence)
    except (TriageError, Unsound):
        return None
    if results.verdict is not None:
        return None
    words = f"every number of its outputs is one of {shown.value}, though fp32 was asked for: set the engine to fp32"
    inv.record.answered(QUESTION, f"yes, and it is judged by that: {words}", format=shown.value)
    ranges = scan_ranges(asking, evidence).findings
    return Answer(findings=Findings(**results.findings, **ranges, shown_format=words), question=asking.question)


def _shown(inv: Investigation, evidence: Evidence) -> Precision | None:
    """Return the format that all outputs in floating point show on the worst feed; None where some do not."""
    golden, made = inv.golden.outputs(evidence.feed), inv.deployed(evidence.feed)
    seen = set()
    for name in evidence.worst_feed.metrics:
        right, array = np.asarray(golden[name]), np.asarray(made[name])
        if array.dtype != np.float32 or right.shape != array.shape:
            continue
        if np.array_equal(array, np.rint(array)):  # whole numbers are numbers of any format
            return None
        floor = evidence.worst_feed.floors.target.get(name, 0.0)
        found = narrowed(lay_out(right, array, floor=floor if np.isfinite(floor) else 0.0))
        seen.add(_FORMATS.get(found.evidence["format"]) if found and found.slug == "narrow-format" else None)
    return seen.pop() if len(seen) == 1 else None
