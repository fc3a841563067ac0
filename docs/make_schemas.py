"""Write the JSON Schema of every document into src/tensortriage_fleet/schemas, from the classes they are written from.

A batch file, which people write, has one as well, by which editors complete it.

A document holds every field of its class, so that all are required; which fields it may lack says `OPTIONAL`. What is
in no class of the product, because a command adds it, is added here. Schemas do not forbid further fields: a newer
version of the product may write more.
"""

import dataclasses
import json
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from tensortriage.cli import CommandProblem
from tensortriage.compare.judgement.judgement import Judgement
from tensortriage.diagnose.state.layer_rows import Layers, Outputs
from tensortriage.diagnose.state.verdict import Verdict, VerdictKind
from tensortriage.inputs.files.data_file import DataFormat, Kind
from tensortriage.model.transforms.bound_sizes import UnboundedSize
from tensortriage.precision.plan import PrecisionPlan
from tensortriage.reduce.reduction_result import Reduction
from tensortriage.report.document import Report
from tensortriage.report.run_result import CompareResult
from tensortriage.runs.analyses.plan_audit import PlanAudit
from tensortriage.runs.analyses.ranges import Ranges
from tensortriage.runs.analyses.tactics import TacticRecord
from tensortriage.runs.case import CaseFacts
from tensortriage.runs.tally import Tally
from tensortriage.values.spec import ValueSpec
from tensortriage.workflows.edits.edit_pipeline import SurgeryResult
from tensortriage_builds.study_result import BuildStudy
from tensortriage_builds.tactic_diff import TacticDiff
from tensortriage_engines.conformance.result import ConformanceResult
from tensortriage_engines.install.environments import EngineList, Environment
from tensortriage_engines.tensorrt.engine_file import BuiltEngine
from tensortriage_feeds.check.check import FeedDifference
from tensortriage_fleet.baseline.baseline_file import Baseline
from tensortriage_fleet.baseline.result import BaselineResult
from tensortriage_fleet.batch.batch_file import FORMAT, BatchFile
from tensortriage_fleet.batch.batch_result import BatchResult
from tensortriage_fleet.schemas.command import ENDING, SchemaList
from tensortriage_inspect.node_listing import LayerFacts
from tensortriage_inspect.summary import ModelSummary
from tensortriage_inspect.weights import WeightFacts
from tensortriage_polygraphy.lint.linter import LintReport
from tensortriage_polygraphy.repeat_check.repeat import Repeated
from tensortriage_polygraphy.statistics import Histogram, TensorSummary
from tensortriage_quantize.inspection.quantizer_rows import QuantizersResult
from tensortriage_quantize.quantize import QuantizeResult
from tensortriage_steps.consistency.check import ConsistencyReport
from tensortriage_steps.steps_report import StepsReport

FOLDER = Path(__file__).resolve().parents[1] / "src/tensortriage_fleet/schemas"
DRAFT = "https://json-schema.org/draft/2020-12/schema"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run(CompareResult):
    """What `triage run --json` writes: the comparison, and whether it passed.

    Attributes:
        passed: Whether everything ran, is within its limit and valid.
    """

    passed: bool = dataclasses.field()  # a property of its base


@dataclasses.dataclass(frozen=True, kw_only=True)
class InspectedModel(ModelSummary):
    """What `triage inspect model --json` writes: the summary, and the parts that were asked for.

    Attributes:
        layers: With `--show layers` or `attrs`.
        values: With `--shape-inference`; of a type its number in ONNX.
        weights: With `--show weights`.
        unbounded_sizes: With `--list-unbounded-dds`.
    """

    layers: tuple[LayerFacts, ...]
    values: tuple[ValueSpec, ...]
    weights: tuple[WeightFacts, ...]
    unbounded_sizes: tuple[UnboundedSize, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AccuracyRow(Judgement):
    """One output of one iteration, or of all together, judged again.

    Attributes:
        compare: The comparison function, e.g. `simple` or `l2`.
        runners: Names of the two runners.
        output: Name of the output.
        iteration: Number of the iteration; null for the mean over all of them.
        metrics: The saved numbers; null where one was not computed.
    """

    compare: str
    runners: tuple[str, str]
    output: str
    iteration: int | None
    metrics: Mapping[str, float | None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Accuracy:
    """What `triage check accuracy --json` writes.

    Attributes:
        passed: Whether every output is within its limit.
        rows: One per judged output.
        ignored: Kinds of comparison that were saved and not judged.
    """

    passed: bool
    rows: tuple[AccuracyRow, ...]
    ignored: tuple[str, ...]
    format: str = "tensortriage.accuracy/1"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TensorFigures(TensorSummary):
    """Figures of one tensor.

    Attributes:
        histogram: With `--histogram`.
        values: With `--show-values`: the elements, complex ones as pairs.
    """

    histogram: Histogram | None
    values: Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class IterationFigures:
    """One set of tensors, and how long the run that made them took; null when not recorded."""

    seconds: float | None
    tensors: tuple[TensorFigures, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SeriesFigures:
    """The iterations of a runner.

    Attributes:
        runner: Its name; empty for inputs.
        iterations_in_file: How many there are.
        iterations: Those that are shown.
    """

    runner: str
    iterations_in_file: int
    iterations: tuple[IterationFigures, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class InspectedData:
    """What `triage inspect data --json` writes.

    Attributes:
        path: The file.
        data_format: Its format.
        kind: Inputs or outputs.
        series: The runners.
    """

    path: str
    data_format: DataFormat
    kind: Kind
    series: tuple[SeriesFigures, ...]
    format: str = "tensortriage.data/1"


@dataclasses.dataclass(frozen=True, kw_only=True)
class WrittenData:
    """What `triage data` and its commands write with `--json`.

    Attributes:
        output: The file that was written.
        data_format: Its format.
        kind: Inputs or outputs.
        iterations: How many.
        runners: Their names.
        notices: What a user should know.
    """

    output: str
    data_format: DataFormat
    kind: Kind
    iterations: int
    runners: tuple[str, ...]
    notices: tuple[str, ...]
    format: str = "tensortriage.data-written/1"


DOCUMENTS: tuple[type, ...] = (
    Accuracy, Baseline, BaselineResult, BatchResult, BuildStudy, BuiltEngine, CaseFacts, CommandProblem,
    ConformanceResult, ConsistencyReport, EngineList, Environment, FeedDifference, InspectedData, InspectedModel,
    Layers, LintReport, Outputs, PlanAudit, PrecisionPlan, QuantizeResult, QuantizersResult, Ranges, Reduction,
    Repeated, Report, Run, SchemaList, StepsReport, SurgeryResult, TacticDiff, TacticRecord, Tally, Verdict,
    WrittenData,
)  # fmt: skip
"""The class of every document."""
OPTIONAL: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "InspectedModel": frozenset({"layers", "values", "weights", "unbounded_sizes"}),
        "TensorFigures": frozenset({"histogram", "values"}),
    }
)
"""Fields that a document may lack, by the name of their class."""
NUMBER = {
    "description": "A number; JSON cannot write those that are none or infinite.",
    "anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}],
}


def schemas() -> dict[str, str]:
    """Return the text of every schema by the name of its file."""
    made = {format_of(kind): schema_of(kind) for kind in DOCUMENTS} | {FORMAT: schema_of_batch_file()}
    found = {}
    for name, schema in made.items():
        word, _, version = name.removeprefix("tensortriage.").partition("/")
        told = {"$schema": DRAFT, "$id": f"urn:tensortriage:{word}:{version}", "title": name, **schema}
        found[word + ENDING] = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
    return found


def format_of(kind: type) -> str:
    """Return the value of a document's field `format`."""
    return str(next(field.default for field in dataclasses.fields(kind) if field.name == "format"))


def schema_of(kind: type) -> dict[str, Any]:
    """Return the schema of a document."""
    made = msgspec.json.schema(kind, schema_hook=lambda other: {"type": "string"} if issubclass(other, Path) else {})
    parts = {name: _told(part) for name, part in made.pop("$defs").items()}
    root = parts.pop(made["$ref"].rpartition("/")[2])
    root["properties"]["format"] = {"const": format_of(kind)}
    described = {
        name: text for base in reversed(kind.__mro__) for name, text in _attributes(base.__doc__ or "").items()
    }
    for name, part in root["properties"].items():
        if name in described and "description" not in part:
            root["properties"][name] = {"description": described[name], **part}
    return {**root, "$defs": {"Number": NUMBER, **parts}}


def schema_of_batch_file() -> dict[str, Any]:
    """Return the schema of a batch file, in which an entry may be a text, and commands a list of them."""
    parts = {name: _told(part, by_hand=True) for name, part in msgspec.json.schema(BatchFile)["$defs"].items()}
    root = parts.pop(BatchFile.__name__)
    tables = root["properties"]
    for name in ("models", "feeds", "targets", "commands"):
        tables[name]["additionalProperties"] = {"anyOf": [{"type": "string"}, tables[name]["additionalProperties"]]}
    names = {"type": "array", "items": {"type": "string"}}
    tables["commands"] = {
        "description": tables["commands"].pop("description"), "anyOf": [tables["commands"], names],
    }  # fmt: skip
    tables["format"] = {"const": FORMAT}
    return {**root, "$defs": parts}


def _told(part: Any, *, by_hand: bool = False) -> Any:
    """Return a part of a schema as documents are: all fields there, and numbers that may be none.

    Args:
        part: As msgspec makes it.
        by_hand: Whether people write it: then they may leave out what has a default, and numbers are numbers.
    """
    if isinstance(part, list):
        return [_told(item, by_hand=by_hand) for item in part]
    if not isinstance(part, dict):
        return part
    if part.get("type") == "number" and not by_hand:
        return {"$ref": "#/$defs/Number"}
    left_out = {"properties", "title"} | (set() if by_hand else {"default", "required"})
    told = {key: _told(part[key], by_hand=by_hand) for key in part if key not in left_out}
    if "properties" in part:
        text = part.get("description", "")
        described = _attributes(text)
        told["description"] = _plain(text.partition("Attributes:")[0])
        fields = {name: _told(field, by_hand=by_hand) for name, field in part["properties"].items()}
        told["properties"] = {
            name: {"description": described[name], **field} if name in described else field
            for name, field in fields.items()
        }
        if part["title"] == Verdict.__name__:
            told["properties"]["verdict"]["enum"] = [kind.value for kind in VerdictKind]
        if not by_hand:
            told["required"] = [name for name in fields if name not in OPTIONAL.get(part["title"], ())]
    return told


def _attributes(text: str) -> dict[str, str]:
    """Return what a docstring says of each field."""
    found = {}
    for entry in re.split(r"\n(?=\w[\w, ]*: )", "\n" + textwrap.dedent(text.partition("Attributes:\n")[2])):
        names, colon, words = entry.strip().partition(": ")
        if colon:
            found.update({name.strip(): _plain(words) for name in names.split(",")})
    return found


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("``", "`")).strip()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for made_name, made_text in schemas().items():
        (FOLDER / made_name).write_text(made_text, encoding="utf-8")
