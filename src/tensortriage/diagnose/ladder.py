"""The ladder: the guide's questions in order of cost; `tensortriage.diagnose.climb` asks them until one is decisive.

Each is a rung (`tensortriage.diagnose.rungs.rung`): a question with the evidence that it reads and adds, its cost and
its possible verdicts. Rungs of other packages name the question that they follow (`complete`). The table of
docs/diagnose.md is made of this one by docs/make_ladder.py.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tensortriage.diagnose.rungs.fusion.fusion import fusion_fault
from tensortriage.diagnose.rungs.fusion.transformations import configurations, transformation
from tensortriage.diagnose.rungs.number_format.format_range import scan_ranges
from tensortriage.diagnose.rungs.number_format.overflow import out_of_range
from tensortriage.diagnose.rungs.number_format.predicted import rounding
from tensortriage.diagnose.rungs.number_format.stages import (
    expected_choices,
    freedoms_taken,
    ill_conditioned,
    integer_arithmetic,
    rounding_by_chance,
    whole_model_freedom,
)
from tensortriage.diagnose.rungs.number_format.typed_file import typed_file, unexplained_format
from tensortriage.diagnose.rungs.operators.deciding_element import deciding_elements
from tensortriage.diagnose.rungs.operators.faulty_op import local_fault, local_faults
from tensortriage.diagnose.rungs.operators.in_place_run import in_place_run
from tensortriage.diagnose.rungs.operators.layerwise import layer_wise
from tensortriage.diagnose.rungs.operators.layout import layout, outputs_in_place
from tensortriage.diagnose.rungs.operators.origin import nonfinite
from tensortriage.diagnose.rungs.other_model.changed import model_changed, other_model
from tensortriage.diagnose.rungs.premises.comparable_outputs import (
    above_the_floor,
    compare_outputs,
    reference_is_sound,
    says_nothing,
)
from tensortriage.diagnose.rungs.premises.made_up_anew import says_more_of_two_models, says_more_than_noise
from tensortriage.diagnose.rungs.premises.random_data import random_data
from tensortriage.diagnose.rungs.premises.second_opinion import second_reference
from tensortriage.diagnose.rungs.premises.training_mode import left_in_training
from tensortriage.diagnose.rungs.premises.within_noise import within_noise
from tensortriage.diagnose.rungs.quantization.int16_sums import saturating_reference, saturating_sums
from tensortriage.diagnose.rungs.quantization.lost_signal import signal_lost
from tensortriage.diagnose.rungs.quantization.quantized_model import (
    check_quantizers,
    quantized_model,
    sound_quantization,
)
from tensortriage.diagnose.rungs.quantization.represents_network import represents_network
from tensortriage.diagnose.rungs.quantization.stored_weights import stored_weights
from tensortriage.diagnose.rungs.rung import Rung
from tensortriage.diagnose.rungs.variation.contradicted import contradicted
from tensortriage.diagnose.rungs.variation.intermittent import build_to_build
from tensortriage.diagnose.rungs.variation.repeated import run_to_run
from tensortriage.errors import EngineMissing
from tensortriage.values.registered import EntryPoint, registered

GROUP = "tensortriage.rungs"
"""Entry-point group of rungs of other packages; its entry's name shows the user which package registers it."""

CONCLUDED = "what is at fault?"
"""The place of other packages' rungs that add facts about a fault; they read `Evidence.concluded`."""

BEFORE: tuple[Rung, ...] = (left_in_training, reference_is_sound, saturating_reference, stored_weights)
"""The first questions."""

OF_ANOTHER_MODEL: tuple[Rung, ...] = (
    says_more_of_two_models,
    other_model,
    represents_network,
    quantized_model,
    signal_lost,
    typed_file,
    model_changed,
)
"""Questions where the target runs another model; that model is investigated then."""

OF_THE_NUMBERS: tuple[Rung, ...] = (check_quantizers,)
"""Questions before those about the target's outputs."""

OF_THE_FIRST_RUN: tuple[Rung, ...] = (compare_outputs, scan_ranges)
"""Questions that are always asked, including which values evaluated for the floors are beyond formats."""

OF_THE_OUTPUTS: tuple[Rung, ...] = (
    says_more_than_noise,
    second_reference,
    above_the_floor,
    run_to_run,
    build_to_build,
)
"""Questions about available outputs."""

ONCE_IT_PASSES: tuple[Rung, ...] = (says_nothing, sound_quantization, within_noise, unexplained_format)
"""Questions about a target that does not fail."""

ONCE_IT_FAILS: tuple[Rung, ...] = (
    outputs_in_place,
    out_of_range,
    layer_wise,
    contradicted,
    rounding,
    expected_choices,
    integer_arithmetic,
    saturating_sums,
    ill_conditioned,
    configurations,
    nonfinite,
    local_fault,
    in_place_run,
    deciding_elements,
    freedoms_taken,
    whole_model_freedom,
    contradicted,
    local_faults,
    rounding_by_chance,
    layout,
    fusion_fault,
    transformation,
)
"""Questions, in this order, once the target is known to fail."""

BESIDE_ROUNDING: tuple[Rung, ...] = (local_fault, in_place_run, freedoms_taken)
"""Questions where rounding explains the outputs but not the inner values."""

IN_THE_END: tuple[Rung, ...] = (random_data,)
"""Questions where nothing is wrong."""

OWN: tuple[Rung, ...] = (
    *BEFORE,
    *OF_ANOTHER_MODEL,
    *OF_THE_NUMBERS,
    *OF_THE_FIRST_RUN,
    *OF_THE_OUTPUTS,
    *ONCE_IT_PASSES,
    *ONCE_IT_FAILS,
    *IN_THE_END,
)
"""Every question of this package, in order; one is asked twice."""


def ladder() -> tuple[Rung, ...]:
    """Return every question, in order.

    Raises:
        EngineMissing: As `complete`.
    """
    return (*complete(OWN), *of_a_fault())


def of_a_fault() -> tuple[Rung, ...]:
    """Return the questions about a fault that the ladder has ended with; raises as `complete`."""
    return tuple(complete(_by_place().get(CONCLUDED, ())))


def complete(rungs: Iterable[Rung]) -> Iterator[Rung]:
    """Yield questions, each followed by those that other packages add after it.

    Raises:
        EngineMissing: When a registered rung cannot be imported, is none, or has no place (``rung-broken``).
    """
    for rung in rungs:
        yield rung
        yield from complete(_by_place().get(rung.title, ()))


@functools.cache
def _by_place() -> Mapping[str, Sequence[Rung]]:
    """Return registered rungs by the title that they follow, in order of names."""
    found: dict[str, list[Rung]] = {}
    titles = {CONCLUDED, *(rung.title for rung in OWN)}
    loaded = [(point, _loaded(point)) for point in registered(GROUP).values()]
    titles.update(rung.title for _, rung in loaded)
    for point, rung in loaded:
        if rung.after not in titles:
            raise _broken(point, f"it comes after '{rung.after}', which is not a question of the ladder")
        found.setdefault(rung.after, []).append(rung)
    return found


def _loaded(point: EntryPoint) -> Rung:
    try:
        found = point.load()
    except Exception as error:  # importing a module of somebody else may raise anything
        raise _broken(point, f"{type(error).__name__}: {error}") from error
    if not isinstance(found, Rung):
        raise _broken(point, f"{point.value} is not a rung")
    return found


def _broken(point: EntryPoint, why: str) -> EngineMissing:
    return EngineMissing(
        f"the rung '{point.name}' of the package {point.distribution} cannot be loaded: {why}",
        slug="rung-broken",
        cure=f"install another release of {point.distribution}, or remove it",
    )
