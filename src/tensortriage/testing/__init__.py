"""Public helpers for tests of engines and of what is built on them; each name loads its module on first use."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensortriage.testing.conformance import ConformanceReport as ConformanceReport
    from tensortriage.testing.conformance import check_engine_conformance as check_engine_conformance
    from tensortriage.testing.contradicting_engine import ContradictingEngine as ContradictingEngine
    from tensortriage.testing.decoders import gpt2_decoder as gpt2_decoder
    from tensortriage.testing.decoders import llama_decoder as llama_decoder
    from tensortriage.testing.fault import Fault as Fault
    from tensortriage.testing.fault import FaultKind as FaultKind
    from tensortriage.testing.faulty_engine import FaultyEngine as FaultyEngine
    from tensortriage.testing.models import conv_net as conv_net
    from tensortriage.testing.models import encoder as encoder
    from tensortriage.testing.models import feed_for as feed_for
    from tensortriage.testing.models import mlp as mlp
    from tensortriage.testing.models import residual_dag as residual_dag
    from tensortriage.testing.models import save_model as save_model
    from tensortriage.testing.quantized_models import quantized as quantized
    from tensortriage.testing.simulated.accelerator import SimulatedAccelerator as SimulatedAccelerator
    from tensortriage.testing.varying_engine import VaryingEngine as VaryingEngine

_NAMES = {
    "conformance": ("ConformanceReport", "check_engine_conformance"),
    "contradicting_engine": ("ContradictingEngine",),
    "decoders": ("gpt2_decoder", "llama_decoder"),
    "fault": ("Fault", "FaultKind"),
    "faulty_engine": ("FaultyEngine",),
    "models": ("conv_net", "encoder", "feed_for", "mlp", "residual_dag", "save_model"),
    "quantized_models": ("quantized",),
    "simulated.accelerator": ("SimulatedAccelerator",),
    "varying_engine": ("VaryingEngine",),
}
_HOMES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
