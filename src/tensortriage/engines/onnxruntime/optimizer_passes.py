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

        A worker does not report them.
        """
        return () if {"worker", "ep"} & {*options} else passes_of(model, options)

    def without(self, options: Mapping[str, str], passes: Collection[str]) -> Mapping[str, str]:
        """Return the options with more graph transformers disabled."""
        disabled = dict.fromkeys([*read_options(options, self.options).words("disabled_optimizers"), *passes])
        return {**options, "disabled_optimizers": "+".join(disabled)} if disabled else dict(options)


def passes_of(model: Path, options: Mapping[str, str]) -> Sequence[str]:
    """Return the transformers that change a model, each once, in order of first application; empty when unknown.

    Args:
        model: ONNX file.
        options: Of the engine ``onnxruntime``.
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
    return tuple(dict.fromkeys(_LINE.findall(done.stderr))) if done.returncode == 0 else ()
