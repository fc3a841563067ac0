"""An engine on a processor without VNNI, on any processor: int8 kernels that add pairs of products in saturating int16.

The arithmetic and the order of the pairs are those of ONNX Runtime's kernels for AVX2, with the same results: of
products between pairs of quantizers as they are fused, of operators on integers as they stand. As a script engine::

    from tensortriage_testing import SaturatingEngine as Engine
"""

from collections.abc import Mapping
from typing import ClassVar

from tensortriage.engines.sdk import Model, Options, Session, ValueSpec
from tensortriage.testing.sdk import int16_products
from tensortriage_testing.fault import Fault
from tensortriage_testing.faulty_engine import FaultyEngine


class SaturatingEngine(FaultyEngine):
    """ONNX Runtime as without VNNI; ``fused=false`` as it runs pairs of quantizers unoptimized, which is exact."""

    name: ClassVar[str] = "saturating"
    options: ClassVar[Mapping[str, str]] = {
        **FaultyEngine.options,
        "fused": "false for one that computes in floating point between pairs of quantizers (default true)",
    }

    def _open(self, original: Model, fault: Fault | None, specs: Mapping[str, ValueSpec], given: Options) -> Session:
        model = int16_products(original, fused=given.boolean("fused", default=True)) or original
        return super()._open(model, fault, specs, given)
