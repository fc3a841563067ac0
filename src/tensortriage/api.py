"""The library by name: every command line as a request and a function that answers with plain data.

The names in `__all__` are the public surface; each loads its module on first use. (They cannot live in `tensortriage`
itself, whose packages have the names of the commands.)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensortriage.compare.judgement.tolerance import Tolerance
    from tensortriage.compare.metrics.tensor_metrics import measure
    from tensortriage.compare.run_result import CompareResult
    from tensortriage.diagnose.state.verdict import Culprit, Verdict, VerdictKind
    from tensortriage.engines.base import Availability, Engine, Limits, Plan, Session
    from tensortriage.engines.spec import EngineSpec
    from tensortriage.errors import TriageError
    from tensortriage.inputs.feed import Feed
    from tensortriage.model.model import Model
    from tensortriage.precision.search.request import PrecisionRequest
    from tensortriage.report.document import Report
    from tensortriage.runs.feeds.feed_request import FeedRequest
    from tensortriage.workflows.comparison.compare import compare
    from tensortriage.workflows.comparison.compare_request import CompareRequest
    from tensortriage.workflows.diagnosis.diagnose import DiagnoseRequest, diagnose
    from tensortriage.workflows.edits.convert import ConvertRequest, convert
    from tensortriage.workflows.edits.edit_pipeline import Source, Target
    from tensortriage.workflows.edits.extract import ExtractRequest, extract
    from tensortriage.workflows.edits.sanitize import SanitizeRequest, sanitize
    from tensortriage.workflows.find_precision import find_precision
    from tensortriage.workflows.lint import LintRequest, lint_model
    from tensortriage.workflows.quantization.quantize import QuantizeRequest, quantize
    from tensortriage.workflows.reduce import ReduceRequest, reduce
    from tensortriage.workflows.study_builds import BuildRequest, study_builds

_HOMES = {
    "Availability": "engines.base",
    "BuildRequest": "workflows.study_builds",
    "CompareRequest": "workflows.comparison.compare",
    "CompareResult": "compare.run_result",
    "ConvertRequest": "workflows.edits.convert",
    "Culprit": "diagnose.state.verdict",
    "DiagnoseRequest": "workflows.diagnosis.diagnose",
    "Engine": "engines.base",
    "EngineSpec": "engines.spec",
    "ExtractRequest": "workflows.edits.extract",
    "Feed": "inputs.feed",
    "FeedRequest": "runs.feeds.feed_request",
    "Limits": "engines.base",
    "LintRequest": "workflows.lint",
    "Model": "model.model",
    "Plan": "engines.base",
    "PrecisionRequest": "precision.search.request",
    "QuantizeRequest": "workflows.quantization.quantize",
    "ReduceRequest": "workflows.reduce",
    "Report": "report.document",
    "SanitizeRequest": "workflows.edits.sanitize",
    "Session": "engines.base",
    "Source": "workflows.edits.edit_pipeline",
    "Target": "workflows.edits.edit_pipeline",
    "Tolerance": "compare.judgement.tolerance",
    "TriageError": "errors",
    "Verdict": "diagnose.state.verdict",
    "VerdictKind": "diagnose.state.verdict",
    "compare": "workflows.comparison.compare",
    "convert": "workflows.edits.convert",
    "diagnose": "workflows.diagnosis.diagnose",
    "extract": "workflows.edits.extract",
    "find_precision": "workflows.find_precision",
    "lint_model": "workflows.lint",
    "measure": "compare.metrics.tensor_metrics",
    "quantize": "workflows.quantization.quantize",
    "reduce": "workflows.reduce",
    "sanitize": "workflows.edits.sanitize",
    "study_builds": "workflows.study_builds",
}
__all__ = [
    "Availability",
    "BuildRequest",
    "CompareRequest",
    "CompareResult",
    "ConvertRequest",
    "Culprit",
    "DiagnoseRequest",
    "Engine",
    "EngineSpec",
    "ExtractRequest",
    "Feed",
    "FeedRequest",
    "Limits",
    "LintRequest",
    "Model",
    "Plan",
    "PrecisionRequest",
    "QuantizeRequest",
    "ReduceRequest",
    "Report",
    "SanitizeRequest",
    "Session",
    "Source",
    "Target",
    "Tolerance",
    "TriageError",
    "Verdict",
    "VerdictKind",
    "compare",
    "convert",
    "diagnose",
    "extract",
    "find_precision",
    "lint_model",
    "measure",
    "quantize",
    "reduce",
    "sanitize",
    "study_builds",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"tensortriage.{_HOMES[name]}"), name)
