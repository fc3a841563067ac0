"""The library by name: every command line as a request and a function that answers with plain data.

The public surface is the names in `__all__` and those that packages next to the core register; each loads its module on
first use. (They cannot live in `tensortriage` itself, whose packages have the names of the commands.)
"""

from typing import TYPE_CHECKING, Any

from tensortriage.values.first_use import deferred_names, on_first_use
from tensortriage.values.registered import registered

if TYPE_CHECKING:
    from tensortriage.compare.judgement.tolerance import Tolerance as Tolerance
    from tensortriage.compare.metrics.tensor_metrics import measure as measure
    from tensortriage.diagnose.state.verdict import Culprit as Culprit
    from tensortriage.diagnose.state.verdict import Verdict as Verdict
    from tensortriage.diagnose.state.verdict import VerdictKind as VerdictKind
    from tensortriage.engines.base import Availability as Availability
    from tensortriage.engines.base import Engine as Engine
    from tensortriage.engines.base import Limits as Limits
    from tensortriage.engines.base import Plan as Plan
    from tensortriage.engines.base import Region as Region
    from tensortriage.engines.base import Session as Session
    from tensortriage.engines.spec import EngineSpec as EngineSpec
    from tensortriage.errors import BuildFailed as BuildFailed
    from tensortriage.errors import EngineError as EngineError
    from tensortriage.errors import TriageError as TriageError
    from tensortriage.inputs.feed import Feed as Feed
    from tensortriage.model.model import Model as Model
    from tensortriage.precision.search.request import PrecisionRequest as PrecisionRequest
    from tensortriage.reduce.request import ReduceRequest as ReduceRequest
    from tensortriage.report.document import Report as Report
    from tensortriage.report.run_result import CompareResult as CompareResult
    from tensortriage.runs.feeds.feed_request import FeedRequest as FeedRequest
    from tensortriage.workflows.comparison.compare import compare as compare
    from tensortriage.workflows.comparison.compare_request import CompareRequest as CompareRequest
    from tensortriage.workflows.diagnosis.diagnose import diagnose as diagnose
    from tensortriage.workflows.edits.convert import convert as convert
    from tensortriage.workflows.edits.convert_request import ConvertRequest as ConvertRequest
    from tensortriage.workflows.edits.requests import Source as Source
    from tensortriage.workflows.edits.requests import Target as Target
    from tensortriage.workflows.find_precision import find_precision as find_precision
    from tensortriage.workflows.reduce import reduce as reduce
    from tensortriage.workflows.requests import DiagnoseRequest as DiagnoseRequest

GROUP = "tensortriage.api"
"""Entry-point group by which packages next to the core add names."""
__all__ = sorted(deferred_names(__file__))


def __dir__() -> list[str]:
    return sorted({*__all__, *registered(GROUP)})


def __getattr__(name: str) -> Any:
    point = None if name.startswith("_") or name in __all__ else registered(GROUP).get(name)
    return point.load() if point is not None else on_first_use(__name__, __file__)(name)
