"""Measurements of a model on a target and on healthy engines: two questions, a process for each.

The documents go from these processes to the command, which puts them into the file of a model.
"""

import dataclasses
from collections.abc import Mapping

from tensortriage_fleet.baseline.figures import KeptTensor

Outputs = Mapping[str, Mapping[str, KeptTensor]]
"""By feed and output; a part that the graph puts into an output is one more, ``NAME[axis A, FROM:TO]``."""


@dataclasses.dataclass(frozen=True, slots=True)
class BaselineModel:
    """A model.

    Attributes:
        path: Its file, relative to the folder of the baselines' file; empty for one that only a test knows.
        sha256: Fingerprint of structure and weights.
        nodes: Digest of each node: its operator and attributes, its operands, and its weights.
    """

    path: str
    sha256: str
    nodes: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class BaselineData:
    """The data of a model.

    Attributes:
        inputs: Files, from the folder that holds that of the baselines; none where data are made up.
        feeds: Digest of every input by feed.
    """

    inputs: tuple[str, ...]
    feeds: Mapping[str, Mapping[str, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class BaselineEngine:
    """An engine, without its version.

    Attributes:
        spec: The requested engine, without its worker.
        precision: The format that it computes in.
        hardware: Its class of hardware.
        device: Its report of its devices.
        code: Digest of its files, by name: a script, its imports, libraries.
    """

    spec: str
    precision: str
    hardware: str
    device: str
    code: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class MeasuredTarget:
    """A target's run of a model.

    Attributes:
        model: The model.
        data: Its data.
        engine: The engine.
        versions: Versions of the engine, as ``engine``, of Python and of packages, and the processor.
        outputs: Its outputs; none where it failed.
        problem: How it failed, in its own words.
    """

    model: BaselineModel
    data: BaselineData
    engine: BaselineEngine
    versions: Mapping[str, str]
    outputs: Outputs
    problem: str = ""
    format: str = "tensortriage.baseline-measured/1"

    @property
    def exit_code(self) -> int:
        """Exit code of the command."""
        return 1 if self.problem else 0


@dataclasses.dataclass(frozen=True, slots=True)
class Allowed:
    """How far a healthy engine may be from the model's own evaluation at an output, relative as its error is.

    Attributes:
        limit: By sums in other orders and by rounding to the target's format; None where no limit can be set.
        freedoms: With all that engines of the target's class are free to choose, which a diagnosis checks op by op.
        basis: Source of the limit.
    """

    limit: float | None
    freedoms: float | None
    basis: str


@dataclasses.dataclass(frozen=True, slots=True)
class Envelope:
    """The results of healthy engines on a model.

    Attributes:
        golden: The outputs, every result correctly rounded.
        allowed: How far off an engine in the target's format may be, by feed and output.
        problem: Why the model cannot be evaluated; there is nothing then.
    """

    golden: Outputs
    allowed: Mapping[str, Mapping[str, Allowed]]
    problem: str = ""
    format: str = "tensortriage.baseline-envelope/1"

    exit_code = 0
