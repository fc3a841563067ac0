"""What int8 kernels without VNNI lose, beside what rounding to 8 bits costs: measured of an engine, and foreseen.

Kernels that exist on some processors only are part of the engine. Where they lose less than the file's own rounding,
which then becomes no more than 3 dB worse, the loss is one of the things that a healthy engine may do.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import difference
from tensortriage.engines.cpu_features import sums_in_int16
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.costs import Together, of_rewrite
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED
from tensortriage.envelope.limits import ROUNDED_ONCE
from tensortriage.envelope.setting import Floors, Setting
from tensortriage.envelope.unrounded_match import UNROUNDED
from tensortriage.errors import DataError, EngineError
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.quantization.int8_products import unsigned_weights
from tensortriage.model.quantization.int16_products import int16_products
from tensortriage.runs.lab import Lab
from tensortriage.values.text import error_size

_DRAWN = UNROUNDED.with_options({**UNROUNDED.options, "draw": "1"})
"""An unrounded file whose stored integers are another rounding of its weights."""


def cut_off(lab: Lab, engine: EngineSpec, model: Model, feed: Feed) -> float:
    """Return how far an engine is off on a model for int8 weights alone; 0 where it is not, or cannot be asked.

    It is asked for the same with weights in uint8, which stand for the same numbers; OpenVINO, which computes otherwise
    with these, is held against what is foreseen.
    """
    other = unsigned_weights(model) if sums_in_int16(engine.name) else None
    if other is None:
        return 0.0
    try:
        fed = check_feed(feed, model.inputs, casting=Casting.ROUND)
        made = lab.outputs(engine, model, fed)
        if engine.name != "openvino":
            return _apart(lab.outputs(engine, other, fed), made)
        saturated = int16_products(model) or model
        right, foreseen = (lab.outputs(CORRECTLY_ROUNDED, each, fed) for each in (model, saturated))
    except (EngineError, DataError):
        return 0.0
    return _apart(right, made) if _apart(foreseen, made) < _apart(right, made) else 0.0


def _apart(right: Mapping[str, np.ndarray], made: Mapping[str, np.ndarray]) -> float:
    """Return the largest error of outputs; 0 where a rounding more or less makes it."""
    lost = max((difference(right[name], made[name]) for name in right if name in made), default=0.0)
    return lost if lost > ROUNDED_ONCE else 0.0


def cut_off_in_words(reference: EngineSpec, lost: float) -> str:
    """Return why float64 takes a reference's place, as a clause."""
    return (
        f"float64 is the reference: {reference} adds products of 8-bit numbers in saturating int16 on this processor, "
        f"which has no VNNI, and is off by {error_size(lost)} for it"
    )


def of_int16(setting: Setting, floors: Floors, together: Together, values: Sequence[str]) -> dict[str, float]:
    """Return what such kernels lose at outputs, no more than what rounding to 8 bits costs them.

    Raises:
        EngineError: When the model cannot be evaluated.
        DataError: When the feed does not fit it.
    """
    if not sums_in_int16(setting.target.name):
        return {}
    found = of_rewrite(setting, floors, together, values)
    own = rounding_costs(setting) if any(found.values()) else {}
    return {name: min(lost, own.get(name, 0.0)) for name, lost in found.items()}


def rounding_costs(setting: Setting) -> Mapping[str, float]:
    """Return what rounding activations and weights costs outputs, without saying anything of the engine.

    Raises:
        EngineError: When the model cannot be evaluated.
    """
    plain, drawn = (setting.lab.outputs(spec, setting.model, setting.feed) for spec in (UNROUNDED, _DRAWN))
    costs = {
        name: (difference(setting.right(name), plain[name]), difference(plain[name], drawn[name])) for name in plain
    }
    return {name: math.hypot(*both) for name, both in costs.items() if all(map(math.isfinite, both))}
