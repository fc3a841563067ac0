"""``triage check consistency``: does an engine contradict itself? No reference is needed."""

import contextlib
import sys

from tensortriage.sdk import answer, command
from tensortriage_steps.consistency.request import ConsistencyRequest

EPILOG = """\b
Examples:
  triage check consistency model.onnx --target openvino --inputs real.npz
  triage check consistency model.onnx --target tensorrt:precision=fp16 --rows 16
  triage check consistency model.onnx --target script:my_engine.py --json

\b
Exit codes: 0 the engine is consistent; 1 it is not; 4 nothing about rows could be tested: the model takes one row,
or mixes rows itself.
"""


@command(epilog=EPILOG)
def check_consistency(request: ConsistencyRequest, as_json: bool) -> None:
    """Does an engine contradict itself? No reference needed.

    Equal rows of MODEL must give equal results. Tried are the same row several times in a batch, rows in other places,
    batches of other sizes, rows of padding, positions that a mask hides, and the same feed again, from memory that lies
    otherwise, with other numbers of threads and next to another stream. The engine need not keep what MODEL itself does
    not keep.
    """
    from tensortriage.sdk import Teller
    from tensortriage_steps.consistency.check import check_consistency as check
    from tensortriage_steps.consistency.text import consistency_lines

    with contextlib.closing(Teller(err=as_json)) as teller:
        report = check(request, say=teller.progress)
    lines = consistency_lines(report.answers, report.unasked, rows=report.rows, made_up=report.made_up_rows)
    answer(report, lines, as_json=as_json)
    sys.exit(report.exit_code)
