"""Fixes other than fp32: another format, or an equivalent rewrite that needs fewer bits.

A remedy is offered when it has been seen to work: the rewritten model's outputs are good enough against the original's
reference, on the engine, with fewer nodes kept than without it.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

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
"""Time for measuring what each node of a rewritten model does."""


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
        bench: Where candidates run.
        model: The original.
        precision: The lower format.
        recorded: Types of its values.
        fewer_than: Nodes that have to be kept without a remedy.
        output: The mixed model, beside which the models of remedies are written; None for nowhere.
    """
    found = []
    for name, what, low, rewrite in _known(precision):
        with contextlib.suppress(TriageError):  # a rewritten model that cannot be typed or emulated is no remedy
            made = rewrite(model)
            if made is not None:
                remedy = _tried(bench, made, low, recorded, name, what, fewer_than, output)
                found += [remedy] if remedy is not None else []
    return tuple(found)


def _known(precision: Precision) -> Iterator[tuple[str, str, Precision, Rewrite]]:
    """Yield name, description, format and rewriting of each remedy."""
    if precision is Precision.FP16:
        yield "bf16", "bf16 instead of fp16: the range of fp32, three bits less", Precision.BF16, lambda m: m
        yield (
            "clamp-constants",
            "constants beyond the range of fp16 brought into it",
            precision,
            lambda m: clamp_constants(m, precision),
        )
        yield "scale-query", "a scale, as of attention scores, moved before its product", precision, scale_query
    yield "layer-normalization", "normalizations written out made LayerNormalization", precision, fuse_layer_norms


def _tried(
    bench: EngineSetup,
    model: Model,
    precision: Precision,
    recorded: Mapping[str, ValueSpec],
    name: str,
    what: str,
    fewer_than: int,
    output: Path | None,
) -> PrecisionAlternative | None:
    """Return a remedy when it works with fewer nodes."""
    able = raised(model, precision)
    names = {node_output for node in able.graph.nodes for node_output in node.outputs}
    names |= {spec.name for spec in able.inputs}
    specs = value_specs(able, {key: spec for key, spec in recorded.items() if key in names})
    _, emulation, candidates = open_typed(bench, able, precision, specs, typed=True, seconds=SECONDS)
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
        file = str(output.with_name(f"{output.stem}_{name}{output.suffix}"))
        candidates.model(kept).save(file)
    return PrecisionAlternative(name, what, len(kept), reading.error, file)
