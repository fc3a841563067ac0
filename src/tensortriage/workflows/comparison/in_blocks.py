"""Compare a model that does not fit into memory: block by block, each a comparison of its own, put together as one."""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tensortriage.compare.cuts import Cuts
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.report.run_result import CompareResult
from tensortriage.runs.blocks.block_walk import BlockWalk, FedBlock
from tensortriage.runs.feeds.feed_request import FeedRequest, feeds
from tensortriage.runs.lab import Lab
from tensortriage.runs.tally import Tally
from tensortriage.workflows.common.memory_cuts import CutModel
from tensortriage.workflows.common.output_selection import OutputChoice, chosen_values
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage.workflows.comparison.pairing import Gathered
from tensortriage.workflows.comparison.participants import Recorder

CompareBlock = Callable[[CompareRequest, Recorder | None], CompareResult]


def can_be_cut(request: CompareRequest) -> bool:
    """Return whether the comparison may be done block by block: two engines, one model, tensors as they are."""
    return (
        request.reference is not None
        and bool(request.targets)
        and not request.saved
        and request.target_model is None
        and request.postprocess is None
        and request.metric is None
    )


def compare_in_blocks(
    request: CompareRequest,
    cut: CutModel,
    *,
    compare: CompareBlock,
    record: Recorder | None,
    on_feed: Callable[[int, Feed], None] | None,
    say: Callable[[str], None],
) -> CompareResult:
    """Compare block by block.

    Args:
        request: The comparison of the whole.
        cut: The model, cut.
        compare: Makes one comparison.
        record: Sees the wanted outputs.
        on_feed: Sees every feed of the whole model.
        say: Receives progress lines.
    """
    assert request.reference is not None
    wanted = frozenset(chosen_values(cut.model, request.outputs))
    samples = tuple(feeds(request.feeding, cut.model))
    for number, feed in enumerate(samples if on_feed else ()):
        assert on_feed is not None
        on_feed(number, feed)
    results: list[CompareResult] = []
    with Lab(limits=request.limits, progress=say) as own:
        lab = own.remembering
        for made in BlockWalk(cut.model, samples, cut.blocks, reference=request.reference, lab=lab):
            say(f"comparing block {made.number} of {len(cut.blocks)}")
            results.append(compare(_of_block(request, made, wanted), _only(wanted, record)))
            if request.fail_fast and not results[-1].passed:
                break
    return _together(results, cut.cuts, lab.tally, {feed.name: feed.origin.value for feed in samples})


def _of_block(request: CompareRequest, made: FedBlock, wanted: frozenset[str]) -> CompareRequest:
    """Return the comparison of one block: its wanted values, and those that later blocks read."""
    outputs = OutputChoice()
    if request.outputs.is_everything and not request.outputs.exclude:
        outputs = request.outputs
    elif request.outputs.mark or request.outputs.exclude or request.outputs.by_type:
        own = Model.load(made.path)
        inside = [value for value in own.graph.values if value in wanted]
        outputs = OutputChoice((*inside, *(spec.name for spec in own.outputs)))
    return dataclasses.replace(
        request,
        model=made.path,
        feeding=FeedRequest(given=made.feeds),
        outputs=outputs,
        external_data_dir=None,
        strict=False,
        in_blocks=False,
    )


def _only(wanted: frozenset[str], record: Recorder | None) -> Recorder | None:
    """Return a recorder that skips values which only cross a border."""
    if record is None:
        return None

    def record_wanted(participant: str, number: int, outputs: Mapping[str, np.ndarray]) -> None:
        if found := {name: array for name, array in outputs.items() if name in wanted}:
            record(participant, number, found)

    return record_wanted


def _together(results: Sequence[CompareResult], cuts: Cuts, tally: Tally, samples: Mapping[str, str]) -> CompareResult:
    """Put the comparisons of blocks together."""
    first = results[0]
    gathered = Gathered()
    for item in itertools.chain.from_iterable(result.comparisons for result in results):
        found = item.comparison
        gathered.add(found.target, item.feed, found.rows, found.unmatched, found.paired)
    moved: dict[str, bool] = {}
    for result in results:
        moved |= {name: moved.get(name, False) or changed for name, changed in result.moved.items()}
    builds = sum((Counter(result.builds_by_engine) for result in results), Counter(tally.builds_by_engine))
    return dataclasses.replace(
        first,
        feeds=dict(samples),
        moved=moved,
        comparisons=gathered.comparisons(first.reference),
        invalid=tuple(found for result in results for found in result.invalid),
        outcomes={
            name: next((r.outcomes[name] for r in results if not r.outcomes[name].ok), outcome)
            for name, outcome in first.outcomes.items()
        },
        builds=builds.total(),
        builds_by_engine=dict(builds),
        checks=tally.checks + sum(result.checks for result in results),
        build_seconds=round(tally.build_seconds + sum(result.build_seconds for result in results), 3),
        run_seconds=round(tally.run_seconds + sum(result.run_seconds for result in results), 3),
        commands=tuple(dict.fromkeys(command for result in results for command in result.commands)),
        disagreements=tuple(found for result in results for found in result.disagreements),
        unevaluated=next((result.unevaluated for result in results if result.unevaluated), ""),
        unjudged=next((result.unjudged for result in results if result.unjudged), ""),
        cuts=cuts,
    )
