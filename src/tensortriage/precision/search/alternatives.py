"""Fixes other than fp32: another format, or an equivalent rewrite that needs fewer bits.

A remedy is offered when it has been seen to work: the rewritten model's outputs are good enough against the original's
reference, on the engine, with fewer nodes kept than without it.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tensortriage.errors import TriageError
from tensortriage.model.mixed_precision.equivalent_rewrites import clamp_constants, fuse_layer_norms, scale_query
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.precision.plan import PrecisionAlternative
from tensortriage.precision.search.shared_parts import open_typed
from tensortriage.precision.selection.switchable_model import raised
from tensortriage.precision.selection.typed_candidates import EngineSetup
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec

Rewrite = Callable[[Model], Model | None]
SECONDS = 30.0
"""Time to measure the effect of each node of a rewritten model."""


def other_ways(
    bench: EngineSetup,
    model: Model,
    precision: Precision,
    recorded: Mapping[str, ValueSpec],
    *,
    fewer_than: int,
    output: Path | None,
) -> tuple[PrecisionAlternative, ...]:
    """Return the remedies that were seen to work with fewer nodes kept.

    Args:
        bench: Runs candidates.
        model: The original.
        precision: The lower format.
        recorded: Types of its values.
        fewer_than: Nodes that have to be kept without a remedy.
        output: The mixed model, next to which the models of remedies are written; None to write none.
    """
    found = []
    for way in _known(precision):
        with contextlib.suppress(TriageError):  # a rewritten model that cannot be typed or emulated is no remedy
            made = way.rewrite(model)
            if made is not None:
                remedy = _tried(bench, made, way, recorded, fewer_than, output)
                found += [remedy] if remedy is not None else []
    return tuple(found)


class _Way(NamedTuple):
    """A remedy that may be tried."""

    name: str
    what: str
    precision: Precision
    rewrite: Rewrite


def _known(precision: Precision) -> Iterator[_Way]:
    """Yield the remedies that there are for a format."""
    if precision is Precision.FP16:
        yield _Way("bf16", "bf16 instead of fp16: the range of fp32, three bits less", Precision.BF16, lambda m: m)
        clamped = functools.partial(clamp_constants, precision=precision)
        yield _Way(
            "clamp-constants", "constants beyond the range of fp16 replaced by values within it", precision, clamped
        )
        yield _Way("scale-query", "a scale, e.g. of attention scores, moved before its product", precision, scale_query)
    yield _Way(
        "layer-normalization", "decomposed normalizations fused to LayerNormalization", precision, fuse_layer_norms
    )


def _tried(
    bench: EngineSetup,
    model: Model,
    way: _Way,
    recorded: Mapping[str, ValueSpec],
    fewer_than: int,
    output: Path | None,
) -> PrecisionAlternative | None:
    """Return a remedy when it works with fewer nodes."""
    able = raised(model, way.precision)
    names = {node_output for node in able.graph.nodes for node_output in node.outputs}
    names |= {spec.name for spec in able.inputs}
    specs = value_specs(able, {key: spec for key, spec in recorded.items() if key in names})
    _, emulation, candidates = open_typed(bench, able, way.precision, specs, typed=True, seconds=SECONDS)
    with contextlib.closing(emulation):
        if fewer_than == 1 and not emulation.read(()).within:
            return None
        choice = emulation.fewest()
    if choice is None or len(choice.kept) >= fewer_than:
        return None
    kept = choice.kept
    reading = candidates.read(kept)
    if not reading.within:
        return None
    file = ""
    if output is not None:
        file = str(output.with_name(f"{output.stem}_{way.name}{output.suffix}"))
        candidates.model(kept).save(file)
    return PrecisionAlternative(way.name, way.what, len(kept), reading.error, file)
