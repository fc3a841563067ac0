"""Engine files: a model built for TensorRT, and what was told about the build."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensortriage.engines.capabilities import BuildsFiles
from tensortriage.engines.registry import create
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineMissing


@dataclasses.dataclass(frozen=True, slots=True)
class BuiltEngine:
    """An engine file.

    Attributes:
        model: The ONNX file it was built from.
        output: The file.
        version: Version of TensorRT.
        precision: Precision word that was asked for; ``mixed`` for the types of the model.
        bytes: Size of the file.
        sha256: Digest of the file.
        seconds: Time that the build took.
        command: The trtexec command line that builds the same.
        findings: What the builder's log says, by kind: ``count`` and some ``lines``.
    """

    model: str
    output: str
    version: str
    precision: str
    bytes: int
    sha256: str
    seconds: float
    command: str
    findings: Mapping[str, Any]
    format: str = "tensortriage.engine/1"


def build_engine(model: Path, output: Path, options: Mapping[str, str]) -> BuiltEngine:
    """Build a TensorRT engine and write it; TensorRT-RTX does this without a GPU.

    Args:
        model: ONNX file.
        output: File to write.
        options: Options of the engine ``tensorrt``.

    Raises:
        EngineMissing: When TensorRT is not installed.
        UsageError: For an option or a value that is not understood.
        EngineError: When the build fails, crashes, hangs or runs out of memory.
    """
    engine = create(EngineSpec("tensorrt"))
    available = engine.availability()
    if not isinstance(engine, BuildsFiles) or (not available.version and "worker" not in options):
        raise EngineMissing(
            f"engine 'tensorrt' cannot be used here: {available.reason}", slug="engine-missing", cure=available.cure
        )
    info = engine.build_only(model, engine.saving(options, output))
    return BuiltEngine(
        model=str(model),
        output=str(output),
        version=info["version"],
        precision=info["precision"],
        bytes=info["plan_bytes"],
        sha256=info["plan_sha256"],
        seconds=round(info["build_seconds"], 3),
        command=info["trtexec"],
        findings=info["log"]["findings"],
    )
