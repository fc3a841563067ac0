"""The feeds that lose most by a task metric, written for a diagnosis.

Samples are forgotten as they are run, so that memory stays flat; the few that turn out worst are read once more.
"""

from pathlib import Path

from tensortriage.compare.task_metric import MOST_WORST
from tensortriage.inputs.files.data_file import Iteration, Kind
from tensortriage.inputs.files.save_data import save
from tensortriage.model.model import Model
from tensortriage.report.run_result import CompareResult
from tensortriage.runs.feeds.feed_request import feeds
from tensortriage.workflows.comparison.compare_request import CompareRequest


def save_worst(request: CompareRequest, result: CompareResult, path: Path) -> int:
    """Write the feeds that lose most on any target, in the order in which they were run; return how many there are.

    Args:
        request: The comparison.
        result: Its result.
        path: The file; not written where no sample loses.
    """
    ranked = [[sample.feed for sample in compared.worst] for compared in result.task_comparisons]
    longest = max(map(len, ranked), default=0)
    turns = (names[place] for place in range(longest) for names in ranked if place < len(names))
    wanted = list(dict.fromkeys(turns))[:MOST_WORST]
    if not wanted or request.model is None:
        return 0
    model = Model.load(request.model, external_data_dir=request.external_data_dir)
    found = (feed for feed in feeds(request.feeding, model) if feed.name in wanted)
    save(path, [("", (Iteration(dict(feed.tensors)) for feed in found))], kind=Kind.INPUTS)
    return len(wanted)
