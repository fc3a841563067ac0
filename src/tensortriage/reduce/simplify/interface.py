"""Fewer samples, fewer outputs, fewer inputs."""

import numpy as np

from tensortriage.model.transforms.mark_outputs import freeze, needed_for
from tensortriage.reduce.reduction_result import Shrunk
from tensortriage.reduce.repro.repro_case import Repro, ReproSample
from tensortriage.reduce.simplify.trials import Trials
from tensortriage.values.dtype import DType
from tensortriage.values.text import whole_number


def drop_samples(repro: Repro, trials: Trials) -> tuple[Repro, Shrunk | None]:
    """Keep one sample, if the case fails with it alone."""
    count = len(repro.samples)
    if count == 1:
        return repro, None
    first = whole_number(trials.local.sample) or 0
    for number in sorted(range(count), key=lambda number: number != first):
        alone = Repro(repro.model, (repro.samples[number],))
        if trials.fails_alike(alone):
            return alone, Shrunk("samples", True, f"{count} -> 1")
    return repro, Shrunk("samples", False, f"all {count} are needed: it fails on none of them alone")


def drop_outputs(repro: Repro, trials: Trials) -> tuple[Repro, Shrunk | None]:
    """Keep one output, if it still fails there."""
    names = [spec.name for spec in repro.model.outputs]
    if len(names) == 1:
        return repro, None
    for name in sorted(names, key=lambda name: name != trials.local.value):
        model = needed_for(repro.model, [name])
        kept = {spec.name for spec in model.inputs}
        samples = tuple(
            ReproSample({k: v for k, v in sample.inputs.items() if k in kept}, {name: sample.outputs[name]})
            for sample in repro.samples
        )
        if trials.fails_alike(Repro(model, samples)):
            return Repro(model, samples), Shrunk("outputs", True, f"{len(names)} -> 1 ('{name}')")
    return repro, Shrunk("outputs", False, f"all {len(names)} are kept: it needs more than one")


def fold_inputs(repro: Repro, trials: Trials) -> tuple[Repro, Shrunk | None]:
    """Make constants of the inputs, all but the largest floating-point one, where it then still fails."""
    names = [spec.name for spec in repro.model.inputs]
    if len(names) < 2 or len(repro.samples) != 1:
        return repro, None
    sample = repro.samples[0]
    stays = max(names, key=lambda name: (_is_float(sample.inputs[name]), sample.inputs[name].nbytes))
    kept: list[str] = []
    for name in names:
        if name == stays:
            continue
        model = freeze(repro.model, {name: sample.inputs[name]})
        left = {k: v for k, v in repro.samples[0].inputs.items() if k != name}
        folded = Repro(model, (ReproSample(left, repro.samples[0].outputs),))
        if trials.fails_alike(folded):
            repro = folded
        else:
            kept.append(name)
    done = f"{len(names)} -> {len(kept) + 1}, the others are constants now"
    if kept:
        done += "; as constants it does not fail with " + ", ".join(f"'{name}'" for name in kept)
    return repro, Shrunk("inputs", len(kept) + 1 < len(names), done)


def _is_float(array: np.ndarray) -> bool:
    return DType.from_numpy(array.dtype).is_float
