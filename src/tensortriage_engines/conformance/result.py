"""Does an engine keep the contract? The conformance suite, as a document."""

import dataclasses
from collections.abc import Mapping

from tensortriage.engines.sdk import Limits, create
from tensortriage.sdk import usable
from tensortriage_engines.conformance.suite import DoesNotConform, check_engine_conformance


@dataclasses.dataclass(frozen=True, slots=True)
class ConformanceResult:
    """The suite's results for an engine.

    Attributes:
        engine: Its spec.
        version: Version of its library.
        passed: Names of the checks it passed.
        refused: Optional models that it refused, with its reason.
        failures: Every failed check with what was seen, as text; empty when it conforms.
    """

    engine: str
    version: str
    passed: tuple[str, ...]
    refused: Mapping[str, str]
    failures: str
    format: str = "tensortriage.conformance/1"


def conformance_of(spec: str, *, limits: Limits) -> ConformanceResult:
    """Run the suite over an engine.

    Raises:
        UsageError: For a malformed spec.
        EngineMissing: When the engine cannot be used here.
    """
    usable_spec = usable(spec, limits=limits)
    engine = create(usable_spec, limits=limits)
    try:
        report = check_engine_conformance(engine, usable_spec.options)
    except DoesNotConform as error:
        report = error.report
        return ConformanceResult(str(usable_spec), report.version, report.passed, report.refused, str(error))
    except AssertionError as error:
        return ConformanceResult(str(usable_spec), engine.availability().version, (), {}, str(error))
    return ConformanceResult(str(usable_spec), report.version, report.passed, report.refused, "")
