"""The oracle of a reduction in parts that another process can put together again: the model's files and golden values.

Arrays are sent as they are, so that the workers of a node share one copy. What the oracle learns from the whole (how it
fails, and the limits of its outputs) must be known before.
"""

import dataclasses
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

from tensortriage.compare.judgement.output_judge import OutputJudge
from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.reduce.engines.engine_oracle import EngineOracle
from tensortriage.reduce.engines.sample import GoldenSample
from tensortriage.reduce.failure import Failure
from tensortriage.reduce.pieces.pieces import Pieces
from tensortriage.reduce.request import Ends
from tensortriage.runs.lab import Lab
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import MemoryStore

Kind = TypeVar("Kind")
MODEL = "model.onnx"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class OracleParts:
    """An oracle in parts.

    Attributes:
        files: The model's files by name, bytes as uint8 arrays.
        samples: Feeds with their golden values.
        specs: Types and shapes of all values.
        ends: Which ends of the model may be cut off.
        frozen: Values that become constants.
        reference, target: Specs of the engines.
        limits: Of the target.
        judge: Decides whether an output fails, by limits that are known.
        expected: How the whole fails.
        identity: Digest of all that answers depend on besides the piece.
    """

    files: Mapping[str, np.ndarray]
    samples: tuple[tuple[Feed, Mapping[str, np.ndarray]], ...]
    specs: Mapping[str, ValueSpec]
    ends: Ends
    frozen: Mapping[str, np.ndarray]
    reference: EngineSpec
    target: EngineSpec
    limits: Limits
    judge: OutputJudge
    expected: Failure
    identity: str


def parts_of(oracle: EngineOracle, expected: Failure) -> OracleParts:
    """Take an oracle apart; its golden values are read into memory."""
    pieces = oracle.pieces
    with tempfile.TemporaryDirectory(prefix="triage-") as folder:
        pieces.model.save(Path(folder) / MODEL)
        files = {path.name: np.fromfile(path, np.uint8) for path in sorted(Path(folder).iterdir())}
    return OracleParts(
        files=files,
        samples=tuple(
            (sample.feed, {name: np.asarray(sample.golden[name]) for name in sample.golden.names()})
            for sample in oracle.samples
        ),
        specs=pieces.specs,
        ends=pieces.ends,
        frozen=pieces.frozen,
        reference=absolute(oracle.reference),
        target=absolute(oracle.target),
        limits=oracle.lab.limits,
        judge=dataclasses.replace(oracle.judge, measure=dict),
        expected=expected,
        identity=oracle.identity,
    )


def absolute(spec: EngineSpec) -> EngineSpec:
    """Return a spec whose script is found from any working directory."""
    if "file" not in spec.options:
        return spec
    return spec.with_options({**spec.options, "file": str(Path(spec.options["file"]).resolve())})


def put_together(parts: OracleParts) -> EngineOracle:
    """Make the oracle, whose files live as long as it does."""
    folder = Path(tempfile.mkdtemp(prefix="triage-"))
    for name, data in parts.files.items():
        data.tofile(folder / name)
    model = Model.load(folder / MODEL)
    oracle = EngineOracle(
        pieces=Pieces(model, specs=parts.specs, ends=parts.ends, frozen=parts.frozen),
        samples=tuple(GoldenSample(feed, MemoryStore(golden)) for feed, golden in parts.samples),
        reference=parts.reference,
        target=parts.target,
        judge=parts.judge,
        lab=Lab(limits=parts.limits),
        identity=parts.identity,
        expected=parts.expected,
    )
    weakref.finalize(oracle, shutil.rmtree, folder, ignore_errors=True)
    weakref.finalize(oracle, oracle.lab.close)
    return oracle
