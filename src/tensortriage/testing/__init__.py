"""Public helpers for tests of engines and of what is built on them; each name loads its module on first use."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensortriage.testing.conformance import ConformanceReport, check_engine_conformance
    from tensortriage.testing.decoders import gpt2_decoder, llama_decoder
    from tensortriage.testing.fault import Fault, FaultKind
    from tensortriage.testing.faulty_engine import FaultyEngine
    from tensortriage.testing.models import conv_net, encoder, feed_for, mlp, residual_dag, save_model
    from tensortriage.testing.planted import Planted
    from tensortriage.testing.planted_kinds import planted_cases
    from tensortriage.testing.quantized_models import quantized
    from tensortriage.testing.simulated.accelerator import SimulatedAccelerator
    from tensortriage.testing.varying_engine import VaryingEngine

_HOMES = {
    "ConformanceReport": "tensortriage.testing.conformance",
    "Fault": "tensortriage.testing.fault",
    "FaultKind": "tensortriage.testing.fault",
    "FaultyEngine": "tensortriage.testing.faulty_engine",
    "Planted": "tensortriage.testing.planted",
    "SimulatedAccelerator": "tensortriage.testing.simulated.accelerator",
    "VaryingEngine": "tensortriage.testing.varying_engine",
    "check_engine_conformance": "tensortriage.testing.conformance",
    "conv_net": "tensortriage.testing.models",
    "encoder": "tensortriage.testing.models",
    "feed_for": "tensortriage.testing.models",
    "gpt2_decoder": "tensortriage.testing.decoders",
    "llama_decoder": "tensortriage.testing.decoders",
    "mlp": "tensortriage.testing.models",
    "planted_cases": "tensortriage.testing.planted_kinds",
    "quantized": "tensortriage.testing.quantized_models",
    "residual_dag": "tensortriage.testing.models",
    "save_model": "tensortriage.testing.models",
}
__all__ = [
    "ConformanceReport",
    "Fault",
    "FaultKind",
    "FaultyEngine",
    "Planted",
    "SimulatedAccelerator",
    "VaryingEngine",
    "check_engine_conformance",
    "conv_net",
    "encoder",
    "feed_for",
    "gpt2_decoder",
    "llama_decoder",
    "mlp",
    "planted_cases",
    "quantized",
    "residual_dag",
    "save_model",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
