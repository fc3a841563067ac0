"""What ``triage run`` says of a user's program, or of outputs that it saved, that are beyond their limits."""

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from tensortriage.api import CompareRequest
from tensortriage.sdk import TriageError
from tensortriage_feeds.check.check import compare_feed_files
from tensortriage_feeds.check.request import FeedFilesRequest
from tensortriage_feeds.check.text import difference_lines
from tensortriage_feeds.shared_memory import told_of


def told(request: CompareRequest, model: Path, saved: Sequence[Path]) -> Iterator[str]:
    """Yield what is known of the program, and of each file of its outputs."""
    with contextlib.suppress(TriageError):  # the comparison says why it cannot be run
        yield from told_of(request)
    for path in saved if request.feeding.paths else ():
        yield from _of_saved(request, model, path)


def _of_saved(request: CompareRequest, model: Path, saved: Path) -> Iterator[str]:
    """Yield of which inputs, or of which meaning of an operator, saved outputs are; and the command that says it."""
    inputs = Path(request.feeding.paths[0])
    reference = {} if request.reference is None else {"reference": str(request.reference)}
    files = FeedFilesRequest(
        mine=inputs, theirs=saved, model=model, external_data_dir=request.external_data_dir, **reference
    )
    try:
        found = compare_feed_files(files)
    except TriageError:
        found = None
    if found is not None and not found.same:
        lines = difference_lines(found)
        yield from (line if isinstance(line, str) else "".join(text for text, _ in line) for line in lines)
    yield f"  next: {shlex.join(['triage', 'check', 'feed', str(inputs), str(saved), '--model', str(model)])}"
