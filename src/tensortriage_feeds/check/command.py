"""``triage check feed``: which transform turns one file of inputs into another?"""

import contextlib
import sys

from tensortriage.sdk import answer, command
from tensortriage_feeds.check.request import FeedFilesRequest

EPILOG = """\b
Examples:
  triage check feed right.npz from_the_app.npz
  triage check feed right.npz from_the_app.npz --model model.onnx
  triage check feed photo.npy from_the_app.npy --json

\b
Exit codes: 0 the inputs are the same; 1 they differ in a known way; 4 they differ in an unknown way.
"""


@command(epilog=EPILOG)
def check_feed_files(request: FeedFilesRequest, as_json: bool) -> None:
    """Which transform turns the inputs in MINE into those in THEIRS?

    Tried are channels, scales, means and deviations (fitted where they are none of the usual ones), layouts, flips,
    crops, letterboxes, interpolations, types, tokens, masks, and the order of inputs; two or three of them may come
    together. Files are what --inputs takes.
    """
    from tensortriage.sdk import Teller
    from tensortriage_feeds.check.check import compare_feed_files
    from tensortriage_feeds.check.text import difference_lines

    with contextlib.closing(Teller(err=as_json)) as teller:
        report = compare_feed_files(request, say=teller.progress)
    answer(report, difference_lines(report), as_json=as_json)
    sys.exit(report.exit_code)
