"""Faulty and simulated engines, and models, for tests and benchmarks; each name loads its module on first use.

It is written like a third-party package, with the names of `tensortriage.engines.sdk`
and `tensortriage.testing.sdk`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensortriage_testing.contradicting_engine import ContradictingEngine as ContradictingEngine
    from tensortriage_testing.decoders import gpt2_decoder as gpt2_decoder
    from tensortriage_testing.decoders import llama_decoder as llama_decoder
    from tensortriage_testing.fault import Fault as Fault
    from tensortriage_testing.fault import FaultKind as FaultKind
    from tensortriage_testing.faulty_engine import FaultyEngine as FaultyEngine
    from tensortriage_testing.models import conv_net as conv_net
    from tensortriage_testing.models import encoder as encoder
    from tensortriage_testing.models import feed_for as feed_for
    from tensortriage_testing.models import mlp as mlp
    from tensortriage_testing.models import residual_dag as residual_dag
    from tensortriage_testing.models import save_model as save_model
    from tensortriage_testing.quantized_models import quantized as quantized
    from tensortriage_testing.saturating_engine import SaturatingEngine as SaturatingEngine
    from tensortriage_testing.simulated.accelerator import SimulatedAccelerator as SimulatedAccelerator
    from tensortriage_testing.varying_engine import VaryingEngine as VaryingEngine

_NAMES = {
    "contradicting_engine": ("ContradictingEngine",),
    "decoders": ("gpt2_decoder", "llama_decoder"),
    "fault": ("Fault", "FaultKind"),
    "faulty_engine": ("FaultyEngine",),
    "models": ("conv_net", "encoder", "feed_for", "mlp", "residual_dag", "save_model"),
    "quantized_models": ("quantized",),
    "saturating_engine": ("SaturatingEngine",),
    "simulated.accelerator": ("SimulatedAccelerator",),
    "varying_engine": ("VaryingEngine",),
}
_HOMES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
