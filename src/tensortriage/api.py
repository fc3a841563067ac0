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
    from tensortriage.diagnose.verdict import Culprit, Verdict, VerdictKind
    from tensortriage.engines.base import Availability, Engine, Limits, Plan, Session
    from tensortriage.engines.spec import EngineSpec
    from tensortriage.errors import TriageError
    from tensortriage.inputs.feed import Feed
    from tensortriage.model.model import Model
    from tensortriage.report.document import Report
    from tensortriage.workflows.builds import BuildRequest, study_builds
    from tensortriage.workflows.compare import CompareRequest, compare
    from tensortriage.workflows.converting import ConvertRequest, convert
    from tensortriage.workflows.diagnose import DiagnoseRequest, diagnose
    from tensortriage.workflows.extracting import ExtractRequest, extract
    from tensortriage.workflows.feeding import FeedRequest
    from tensortriage.workflows.lint import LintRequest, lint_model
    from tensortriage.workflows.precision import find_precision
    from tensortriage.workflows.precision_request import PrecisionRequest
    from tensortriage.workflows.quantizing import QuantizeRequest, quantize
    from tensortriage.workflows.reduce import ReduceRequest, reduce
    from tensortriage.workflows.sanitizing import SanitizeRequest, sanitize
    from tensortriage.workflows.surgery import Source, Target

_HOMES = {
    "Availability": "engines.base",
    "BuildRequest": "workflows.builds",
    "CompareRequest": "workflows.compare",
    "CompareResult": "compare.run_result",
    "ConvertRequest": "workflows.converting",
    "Culprit": "diagnose.verdict",
    "DiagnoseRequest": "workflows.diagnose",
    "Engine": "engines.base",
    "EngineSpec": "engines.spec",
    "ExtractRequest": "workflows.extracting",
    "Feed": "inputs.feed",
    "FeedRequest": "workflows.feeding",
    "Limits": "engines.base",
    "LintRequest": "workflows.lint",
    "Model": "model.model",
    "Plan": "engines.base",
    "PrecisionRequest": "workflows.precision_request",
    "QuantizeRequest": "workflows.quantizing",
    "ReduceRequest": "workflows.reduce",
    "Report": "report.document",
    "SanitizeRequest": "workflows.sanitizing",
    "Session": "engines.base",
    "Source": "workflows.surgery",
    "Target": "workflows.surgery",
    "Tolerance": "compare.judgement.tolerance",
    "TriageError": "errors",
    "Verdict": "diagnose.verdict",
    "VerdictKind": "diagnose.verdict",
    "compare": "workflows.compare",
    "convert": "workflows.converting",
    "diagnose": "workflows.diagnose",
    "extract": "workflows.extracting",
    "find_precision": "workflows.precision",
    "lint_model": "workflows.lint",
    "measure": "compare.metrics.tensor_metrics",
    "quantize": "workflows.quantizing",
    "reduce": "workflows.reduce",
    "sanitize": "workflows.sanitizing",
    "study_builds": "workflows.builds",
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
