"""Precision: the fewest nodes that must compute in more bits, and the model in which they do.

Whoever judges, an engine or a command, candidates are typed models (in 8 bits, asked of an engine, models with Q/DQ
pairs), and the emulation of the format says which to try first.
"""

from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import UsageError
from tensortriage.precision.plan import PrecisionPlan
from tensortriage.precision.search.by_command import by_command
from tensortriage.precision.search.by_engine import by_engine
from tensortriage.precision.search.request import PrecisionListener, PrecisionRequest
from tensortriage.runs.case import Case
from tensortriage.runs.runner import precision_of
from tensortriage.values.dtype import Precision
from tensortriage.values.output_files import check_output
from tensortriage.values.serial import dump


def find_precision(request: PrecisionRequest, *, listener: PrecisionListener) -> PrecisionPlan:
    """Find the fewest nodes to keep in higher precision, write the mixed model, and ``precision.json`` beside it.

    Ctrl-C ends the search; what was asked so far is kept in the case, and a set that was seen to be enough is written.

    Raises:
        TriageError: For bad input, an engine that is missing, a goal that nothing reaches, or a target that fails with
            every node in the higher precision.
    """
    check_output(request.output, request.model)
    _check_formats(request)
    with Case(request.case) as case:
        plan = by_engine(request, case, listener) if request.target else by_command(request, case, listener)
        case.write("precision.json", plan)
    if request.output is not None:
        dump(plan, request.output.with_name("precision.json"))
    return plan


def _check_formats(request: PrecisionRequest) -> None:
    """Refuse a format that is not the one the target is told to compute in."""
    target = EngineSpec.parse(request.target) if request.target else None
    told = precision_of(target) if target is not None and "precision" in target.options else None
    if request.low is None or told in (None, Precision.FP64, Precision.FP32, Precision.TF32, request.low):
        return
    raise UsageError(
        f"--{request.low.value} contradicts {request.target}",
        slug="precision-formats-many",
        cure="name one format, best in --target",
    )
