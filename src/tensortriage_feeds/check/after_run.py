"""Sentences of ``triage run`` about a user's program, or about outputs it saved, that are beyond their limits."""

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tensortriage.api import CompareRequest, Model
from tensortriage.diagnose.sdk import PLAIN, Lab, error_size, is_foreign
from tensortriage.envelope.sdk import feeds_that_run
from tensortriage.sdk import TriageError
from tensortriage_feeds.check.check import compare_feed_files
from tensortriage_feeds.check.request import FeedFilesRequest
from tensortriage_feeds.check.saved_outputs import SavedOutputs
from tensortriage_feeds.check.text import difference_lines
from tensortriage_feeds.returned import cure_of, in_words
from tensortriage_feeds.shared_memory import overwritten

SECONDS = 5.0
"""How long `run` looks for inputs, and for a meaning, that give saved outputs: about as long as a comparison, and most
are found in it (bench/meanings.py: 0.1 to 6 s). ``triage check feed``, which it names, takes its time."""


def told(request: CompareRequest, model: Path, saved: Sequence[Path]) -> Iterator[str]:
    """Yield what is known of the program, and of each file of its outputs."""
    with contextlib.suppress(TriageError):  # the comparison says why it cannot be run
        yield from _of_programs(request)
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
        found = compare_feed_files(files, seconds=SECONDS)
    except TriageError:
        found = None
    if found is not None and not found.same:
        lines = difference_lines(found)
        yield from (line if isinstance(line, str) else "".join(text for text, _ in line) for line in lines)
    yield f"  next: {shlex.join(['triage', 'check', 'feed', str(inputs), str(saved), '--model', str(model)])}"


def _of_programs(request: CompareRequest) -> Iterator[str]:
    """Yield what is known of what programs do to their outputs."""
    targets = [target for target in request.targets if is_foreign(target.name)]
    if not targets or request.model is None:
        return
    model = Model.load(request.model, external_data_dir=request.external_data_dir)
    with Lab(limits=request.limits) as lab:
        for target in targets:
            feed = feeds_that_run(request.feeding, model, lab)[0]
            for each in overwritten(lab, model, feed, request.reference or PLAIN, target):
                yield f"{target}: {each.words}, so that it is off by {error_size(each.error)}"
                yield f"cure: {each.cure}"
            made = {name: np.asarray(array) for name, array in lab.outputs(target, model, feed).items()}
            if changed := SavedOutputs(model, request.reference or PLAIN, made, lab).returned(feed.tensors):
                yield f"{target} changes what its network computes: {in_words(changed)}"
                yield f"cure: {cure_of(changed)}"
