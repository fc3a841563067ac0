"""The healthy evaluations that an envelope is made of, run side by side and compared as their values arrive.

All members are the engine ``reference`` under one arithmetic or another, so what is wrong with an operator there is
wrong in all of them and widens nothing. Values are compared while they are computed; none is kept.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.member_errors import MemberError, MemberErrors, member_errors
from tensortriage.envelope.side_by_side import side_by_side
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage.values.store import TensorStore

CENTRE = EngineSpec("reference", {"rounding": "results"})
"""The model as its types say, every result correctly rounded."""

WITNESS = "witness"
"""Name under which stored values are compared with the centre, among the members."""


def member(options: Mapping[str, str]) -> EngineSpec:
    """Return the evaluation of the model under an arithmetic; its results are rounded to their types."""
    return EngineSpec("reference", {**CENTRE.options, **options})


def spread(
    lab: Lab,
    model: Model,
    feed: Feed,
    values: Sequence[str],
    members: Mapping[str, EngineSpec],
    *,
    centre: EngineSpec = CENTRE,
    witness: TensorStore | None = None,
    witness_name: str = "",
    witnessed: Sequence[str] | None = None,
    seen: Callable[[str, np.ndarray], None] | None = None,
    what: str = "the envelope",
) -> dict[str, Mapping[str, MemberError]]:
    """Return how far each member lies from the centre, value by value.

    Args:
        lab: Where engines are asked.
        model: The model (whole, or exploded).
        feed: Its inputs.
        values: Values to compare, in topological order.
        members: Evaluations by name.
        centre: What they are compared with.
        witness: Stored values to be compared with the centre as well, under the name `WITNESS`.
        witness_name: Tells answers about different witnesses apart.
        witnessed: Values at which that is done; None for all.
        seen: Told every value of the centre as it is computed; nothing where all answers are known.
        what: Said while it takes place.

    Raises:
        EngineError: When an evaluation fails, as for an operator without float64 arithmetic.
    """
    words = ("member errors", str(centre), list(values))
    keys = {name: lab.key(spec, model, feed, *words) for name, spec in members.items()}
    if witness is not None:
        witnessed = list(values if witnessed is None else witnessed)
        keys[WITNESS] = lab.key(centre, model, feed, "witness errors", witness_name, witnessed)
    known = {name: lab.case.checks.get(key, MemberErrors) for name, key in keys.items()}
    missing = [name for name, answer in known.items() if answer is None]
    found: dict[str, Mapping[str, MemberError]] = {
        name: answer.values for name, answer in known.items() if answer is not None
    }
    if not missing:
        return found
    if missing == [WITNESS]:
        values = witnessed or ()
    lab.progress(f"evaluating {what}")
    streams: dict[str, Iterator[tuple[str, np.ndarray]]] = {}
    stores: dict[str, TensorStore] = {}
    for name in missing:
        if name == WITNESS:
            assert witness is not None
            stores[name] = witness
        elif members[name].name == centre.name:
            streams[name] = lab.streamed(members[name], model, feed, values)
        else:
            stores[name], _ = lab.recorded(members[name], model, feed, values)
    collected: dict[str, dict[str, MemberError]] = {name: {} for name in missing}
    sources = [lab.streamed(centre, model, feed, values), *streams.values()]
    with side_by_side(sources, size=lambda item: item[1].nbytes) as (middle, *others):
        pairs = _pairs(middle, dict(zip(streams, others, strict=True)), stores, set(witnessed or ()), seen)
        for label, figure in member_errors(pairs):
            name, _, value = label.partition("\0")
            collected[name][value] = figure
    for name in missing:
        lab.case.checks.put(keys[name], f"{what}: {name}", MemberErrors(collected[name]), seconds=0.0)
    return found | collected


def _pairs(
    centre: Iterator[tuple[str, np.ndarray]],
    streams: Mapping[str, Iterator[tuple[str, np.ndarray]]],
    stores: Mapping[str, TensorStore],
    witnessed: Collection[str],
    seen: Callable[[str, np.ndarray], None] | None,
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield ``(member NUL value, centre, member)`` in the order in which the centre computes its values."""
    early: dict[str, dict[str, np.ndarray]] = {name: {} for name in streams}  # nothing, where orders are equal
    for value, exact in centre:
        if seen is not None:
            seen(value, exact)
        for name, stream in streams.items():
            while value not in early[name]:
                other, array = next(stream)
                early[name][other] = array
            if (array := early[name].pop(value)).shape == exact.shape:
                yield f"{name}\0{value}", exact, array
        for name, store in stores.items():
            if (
                value in store
                and (name != WITNESS or value in witnessed)
                and (array := np.asarray(store[value])).shape == exact.shape
            ):
                yield f"{name}\0{value}", exact, array
    for stream in streams.values():
        for _ in stream:  # let each session end
            pass
