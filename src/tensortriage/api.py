"""The library by name: every command line as a request and a function that answers with plain data.

The names in `__all__` are the public surface; each loads its module on first use. (They cannot live in `tensortriage`
itself, whose packages have the names of the commands.)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensortriage.compare.judgement.tolerance import Tolerance
    from tensortriage.compare.metrics.tensor_metrics import measure
    from tensortriage.diagnose.state.verdict import Culprit, Verdict, VerdictKind
    from tensortriage.engines.base import Availability, Engine, Limits, Plan, Region, Session
    from tensortriage.engines.spec import EngineSpec
    from tensortriage.errors import BuildFailed, EngineError, TriageError
    from tensortriage.inputs.feed import Feed
    from tensortriage.model.model import Model
    from tensortriage.precision.search.request import PrecisionRequest
    from tensortriage.reduce.request import ReduceRequest
    from tensortriage.report.document import Report
    from tensortriage.report.run_result import CompareResult
    from tensortriage.runs.feeds.feed_request import FeedRequest
    from tensortriage.workflows.comparison.compare import compare
    from tensortriage.workflows.comparison.compare_request import CompareRequest
    from tensortriage.workflows.diagnosis.diagnose import diagnose
    from tensortriage.workflows.edits.convert import convert
    from tensortriage.workflows.edits.extract import extract
    from tensortriage.workflows.edits.requests import ConvertRequest, ExtractRequest, SanitizeRequest, Source, Target
    from tensortriage.workflows.edits.sanitize import sanitize
    from tensortriage.workflows.find_precision import find_precision
    from tensortriage.workflows.reduce import reduce
    from tensortriage.workflows.requests import BuildRequest, DiagnoseRequest
    from tensortriage.workflows.study_builds import study_builds

_HOMES = {
    "Availability": "engines.base",
    "BuildFailed": "errors",
    "BuildRequest": "workflows.requests",
    "CompareRequest": "workflows.comparison.compare_request",
    "CompareResult": "report.run_result",
    "ConvertRequest": "workflows.edits.requests",
    "Culprit": "diagnose.state.verdict",
    "DiagnoseRequest": "workflows.requests",
    "Engine": "engines.base",
    "EngineError": "errors",
    "EngineSpec": "engines.spec",
    "ExtractRequest": "workflows.edits.requests",
    "Feed": "inputs.feed",
    "FeedRequest": "runs.feeds.feed_request",
    "Limits": "engines.base",
    "Model": "model.model",
    "Plan": "engines.base",
    "PrecisionRequest": "precision.search.request",
    "ReduceRequest": "reduce.request",
    "Region": "engines.base",
    "Report": "report.document",
    "SanitizeRequest": "workflows.edits.requests",
    "Session": "engines.base",
    "Source": "workflows.edits.requests",
    "Target": "workflows.edits.requests",
    "Tolerance": "compare.judgement.tolerance",
    "TriageError": "errors",
    "Verdict": "diagnose.state.verdict",
    "VerdictKind": "diagnose.state.verdict",
    "compare": "workflows.comparison.compare",
    "convert": "workflows.edits.convert",
    "diagnose": "workflows.diagnosis.diagnose",
    "extract": "workflows.edits.extract",
    "find_precision": "workflows.find_precision",
    "measure": "compare.metrics.tensor_metrics",
    "reduce": "workflows.reduce",
    "sanitize": "workflows.edits.sanitize",
    "study_builds": "workflows.study_builds",
}
__all__ = [
    "Availability",
    "BuildFailed",
    "BuildRequest",
    "CompareRequest",
    "CompareResult",
    "ConvertRequest",
    "Culprit",
    "DiagnoseRequest",
    "Engine",
    "EngineError",
    "EngineSpec",
    "ExtractRequest",
    "Feed",
    "FeedRequest",
    "Limits",
    "Model",
    "Plan",
    "PrecisionRequest",
    "ReduceRequest",
    "Region",
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
    "measure",
    "reduce",
    "sanitize",
    "study_builds",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"tensortriage.{_HOMES[name]}"), name)
