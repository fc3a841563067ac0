"""ONNX Runtime in steps: its levels of optimization, and which graph transformers change a model.

The transformers appear in its log, at level INFO, and nowhere else: ``GraphTransformer GeluFusionL2 modified: 1 with
status: OK`` (onnxruntime/core/optimizer/graph_transformer.cc). The log goes to the standard error of the process, so
the model is built once in a process of its own.
"""

import os
import re
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tensortriage.engines.capabilities import NamesPasses, OffersLadder, TellsPlan
from tensortriage.engines.onnxruntime.settings import ladder, nominal_precision
from tensortriage.engines.options import read_options

_LINE = re.compile(r"GraphTransformer (\S+) modified: 1\b")
_SECONDS = 600
_INFO = 1
_CODE = f"""
import pathlib, sys
from tensortriage.engines.onnxruntime import engine as onnxruntime
onnxruntime.BUILD_LOG_LEVEL = {_INFO}
options = dict(word.split("=", 1) for word in sys.argv[2:])
onnxruntime.OnnxRuntimeEngine().compile(pathlib.Path(sys.argv[1]), options).close()
"""


RULES = (
    "EliminateIdentity", "EliminateSlice", "UnsqueezeElimination", "EliminateDropout", "ExpandElimination",
    "CastElimination", "CastChainElimination", "PreShapeNodeElimination", "NoopElimination", "DivMulFusion",
    "FuseReluClip", "GemmSumFusion", "GemmTransposeFusion", "NotWhereFusion", "ConvAddFusion", "ConvMulFusion",
    "ConvBNFusion", "Pad_Fusion", "MatMul_BatchNormalization_Fusion", "LabelEncoderFusion", "ClipQuantRewrite",
    "ReluQuantRewrite",
)  # fmt: skip
"""Rules of the transformers ``LevelN_RuleBasedTransformer``, each of which can be left out separately
(onnxruntime/core/optimizer/graph_transformer_utils.cc, GenerateRewriteRules)."""

PASSES = (
    "Level1_RuleBasedTransformer", "Level2_RuleBasedTransformer", "ConstantFolding", "ConstantSharing",
    "CommonSubexpressionElimination", "TransposeOptimizer", "MatMulAddFusion", "MatmulTransposeFusion",
    "MatMulScaleFusion", "ReshapeFusion", "FreeDimensionOverrideTransformer", "GeluFusionL1", "GeluFusionL2",
    "LayerNormFusionL1", "LayerNormFusionL2", "SimplifiedLayerNormFusion", "QDQPropagationTransformer",
    "EnsureUniqueDQForNodeUnit", "DoubleQDQPairsRemover", "WeightBiasQuantization", "QDQSelectorActionTransformer",
    "QDQFinalCleanupTransformer", "QDQS8ToU8Transformer", "Avx2WeightS8ToU8Transformer",
    "GemmActivationFusion", "MatMulIntegerToFloatFusion", "DynamicQuantizeMatMulFusion", "ConvActivationFusion",
    "ConvAddActivationFusion", "SkipLayerNormFusion", "BiasSkipLayerNormFusion", "EmbedLayerNormFusion",
    "AttentionFusion", "FastGeluFusion", "QuickGeluFusion", "BiasGeluFusion", "BiasSoftmaxFusion", "BiasDropoutFusion",
    "GatherSliceToSplitFusion", "GatherToSliceFusion", "GatherToSplitFusion", "SliceConcatToSpaceToDepthFusion",
    "MatMulActivationFusion", "MatMulNBitsFusion", "DQMatMulNBitsFusion", "GroupQueryAttentionFusion",
    "NhwcTransformer", "NchwcTransformer", "RemoveDuplicateCastTransformer",
)  # fmt: skip
"""Graph transformers of releases from 1.16 to 1.31; ONNX Runtime ignores those that a release lacks."""


class InSteps(OffersLadder, NamesPasses, TellsPlan):
    """Reports on builds of an engine with ONNX Runtime's options: `OffersLadder`, `NamesPasses`, `TellsPlan`."""

    options: ClassVar[Mapping[str, str]] = {}

    def ladder(self, options: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Return the levels of optimization up to the requested one; in fp32 first when the format is narrower."""
        return ladder(options, nominal_precision(read_options(options, self.options)))

    def tells_plan(self, options: Mapping[str, str]) -> bool:
        """Return whether sessions report their plan without another build: with a provider from a plugin."""
        return "ep" in options

    def passes(self, model: Path, options: Mapping[str, str]) -> Sequence[str]:
        """Return the graph transformers that change a model; costs a build in a process of its own.

        A worker does not report them: all that releases are known to have may be those.
        """
        if "ep" in options:
            return ()
        found = PASSES if "worker" in options else passes_of(model, options)
        of_rules = any(name.endswith("_RuleBasedTransformer") for name in found)
        whole = [name for name in found if not name.endswith("_RuleBasedTransformer")]
        return tuple(dict.fromkeys([*whole, *(RULES if of_rules else ())]))

    def without(self, options: Mapping[str, str], passes: Collection[str]) -> Mapping[str, str]:
        """Return the options with more graph transformers disabled."""
        disabled = dict.fromkeys([*read_options(options, self.options).words("disabled_optimizers"), *passes])
        return {**options, "disabled_optimizers": "+".join(disabled)} if disabled else dict(options)

    def leaving_out(self, passes: Sequence[str]) -> str:
        """Return the argument of a session in Python, and the session option of other languages."""
        entry = f'"optimization.disable_specified_optimizers", "{";".join(passes)}"'
        return (
            f"InferenceSession(..., disabled_optimizers={[*passes]}) in Python, AddConfigEntry({entry}) on the session "
            "options elsewhere"
        )


def passes_of(model: Path, options: Mapping[str, str]) -> Sequence[str]:
    """Return the transformers that change a model, each once, in order of first application; all where it is refused.

    Args:
        model: ONNX file.
        options: Options of the engine ``onnxruntime``.
    """
    # -P: modules are not looked for in the current folder, where a stranger's may lie.
    words = [sys.executable, "-P", "-c", _CODE, str(model), *(f"{key}={value}" for key, value in options.items())]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(dict.fromkeys(_LINE.findall(done.stderr))) if done.returncode == 0 else PASSES
