"""Types that no operator schema gives: those of ONNX Runtime's own operators, as it infers them.

ONNX has no schemas of the domain com.microsoft (EmbedLayerNormalization, DecoderMaskedMultiHeadAttention, ...). ONNX
Runtime infers the types of every value when it loads a model, and states those of outputs.
"""

import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tensortriage.errors import EngineError
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.mark_outputs import markable, select_outputs
from tensortriage.values.spec import ValueSpec


def known_specs(model: Model, outputs_of: Callable[[Path], Iterable[ValueSpec]]) -> Mapping[str, ValueSpec]:
    """Return the specs of every value: from the model and schemas, else from ONNX Runtime if it accepts the model.

    Args:
        model: The model.
        outputs_of: Builds a file for ONNX Runtime and returns its report of the outputs.
    """
    specs = dict(value_specs(model))
    unknown = [name for name in markable(model) if name not in specs or specs[name].dtype is None]
    if not unknown:
        return specs
    with tempfile.TemporaryDirectory(prefix="triage-types-") as folder:
        try:
            reported = outputs_of(select_outputs(model, unknown).save(Path(folder) / "model.onnx"))
        except EngineError:
            return specs
        specs.update((spec.name, spec) for spec in reported)
    return value_specs(model, specs)
