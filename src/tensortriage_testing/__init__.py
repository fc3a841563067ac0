"""Faulty and simulated engines, and models, for tests and benchmarks; each name loads its module on first use.

It is written like a third-party package, with the names of `tensortriage.engines.sdk`
and `tensortriage.testing.sdk`.
"""

from typing import TYPE_CHECKING

from tensortriage.engines.sdk import on_first_use

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

__getattr__ = on_first_use(__name__, __file__)
