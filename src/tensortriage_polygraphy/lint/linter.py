"""Lint: everything about a model that is known to go wrong, before an accuracy hunt begins."""

import dataclasses

from tensortriage.api import EngineSpec, Model
from tensortriage.envelope.sdk import Lab, feeds_that_run, resolve, usable
from tensortriage.model.sdk import NARROW, Aims
from tensortriage.sdk import DataError, LintFinding, ModelError, Precision, Severity, UsageError, read_message
from tensortriage_polygraphy.lint.node_build_check import NodeCheck, Say, check_nodes
from tensortriage_polygraphy.lint.request import LintRequest
from tensortriage_polygraphy.lint.rules import lint

_NARROWS = {"openvino": (True, True), "tensorrt": (False, True)}
"""Engines that compute in int32 for the model's int64, in float32 for its float64."""

_NO_MODEL = frozenset({"model-missing", "model-unreadable"})
"""Errors of loading for a missing model; all others are those of a bad one."""


@dataclasses.dataclass(frozen=True, slots=True)
class LintReport:
    """Findings of a lint.

    Attributes:
        model: The file.
        target: The engine that nodes were put to; empty when none was.
        formats: Number formats whose traps count as problems.
        passed: Whether nothing but hints was found.
        findings: The worst first, otherwise in the order of the rules.
        passing, failing, skipped: Nodes by the engine's outcome; all empty when none was run.
    """

    model: str
    target: str
    formats: tuple[str, ...]
    passed: bool
    findings: tuple[LintFinding, ...]
    passing: tuple[str, ...]
    failing: tuple[str, ...]
    skipped: tuple[str, ...]
    format: str = "tensortriage.lint/1"


def lint_model(request: LintRequest, *, say: Say = lambda text: None) -> LintReport:
    """Lint a model: its file, onnx.checker, the rules, and every node on an engine.

    Raises:
        ModelError: When there is no such file, or it is not ONNX.
        UsageError: For a malformed spec or an unknown option.
        DataError: When a feed that was given does not fit the model.
        EngineMissing: When the engine cannot be used here.
    """
    spec = usable(request.target, limits=request.limits) if request.target is not None else None
    aims = _aims(spec, request.formats)
    nodes = NodeCheck((), (), (), ())
    try:
        message = read_message(request.model)
        model = Model.load(request.model, external_data_dir=request.external_data_dir)
        if request.external_data_dir is not None:  # such that engines find the weights
            model = Model.from_ir(model.ir)
    except ModelError as error:
        if error.slug in _NO_MODEL:
            raise
        findings = [
            LintFinding(error.slug, Severity.EXCEPTION, "", "", "", "", error.message, error.cure, "onnx_loader")
        ]
    else:
        say("the rules")
        findings = list(lint(model, message, aims))
        if spec is not None:
            nodes = _nodes(model, spec, request, say)
            findings += nodes.findings
    rank = list(Severity).index
    return LintReport(
        model=str(request.model),
        target=str(spec or ""),
        formats=tuple(precision.value for precision in NARROW if precision in aims.formats),
        passed=not any(finding.severity.fails for finding in findings),
        findings=tuple(sorted(findings, key=lambda finding: rank(finding.severity))),
        passing=nodes.passing,
        failing=nodes.failing,
        skipped=nodes.skipped,
    )


def _aims(spec: EngineSpec | None, formats: tuple[Precision, ...]) -> Aims:
    own = {resolve(spec).precision} if spec is not None else set()
    integers, doubles = _NARROWS.get(spec.name, (False, False)) if spec is not None else (False, False)
    return Aims(frozenset({*formats, *own} & {*NARROW}), integers, doubles)


def _nodes(model: Model, spec: EngineSpec, request: LintRequest, say: Say) -> NodeCheck:
    with Lab(limits=request.limits, progress=say) as lab:
        try:
            feed = feeds_that_run(request.feeding, model, lab, nan_will_do=True)[0]
        except (UsageError, DataError) as error:
            if request.feeding.paths or request.feeding.script:
                raise
            why = f"no inputs could be made up for the engine: {error.message}"
            finding = LintFinding("engine-not-asked", Severity.HINT, "", "", "", "", why, error.cure, spec.name)
            return NodeCheck((), (), (), (finding,))
        return check_nodes(model, spec, feed, lab)
