"""All rules in one table. A family is a module with ``SLUGS`` (name to one line) and ``check(subject)``."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from tensortriage.api import Model
from tensortriage.model.sdk import Aims, LintSubject, Message, subjects, training
from tensortriage.sdk import LintFinding, ModelError, Severity
from tensortriage_polygraphy.lint import (
    constants,
    decomposed,
    names,
    narrowing,
    quantization,
    shapes,
    versions,
    weights,
)

FAMILIES: tuple[Callable[[LintSubject], Iterator[LintFinding]], ...] = (
    training.check,
    decomposed.check,
    constants.check,
    weights.check,
    versions.check,
    narrowing.check,
    quantization.check,
    shapes.check,
)

CHECKER = "onnx-checker"
"""Slug of onnx.checker's complaints."""

SLUGS: Mapping[str, str] = MappingProxyType(
    {
        CHECKER: "onnx.checker refuses the model",
        **names.SLUGS,
        **{
            slug: text
            for family in (training, decomposed, constants, weights, versions, narrowing, quantization, shapes)
            for slug, text in family.SLUGS.items()
        },
    }
)
"""Every rule: its name and one line; docs/lint.md has a section for each."""


def lint(model: Model, message: Message, aims: Aims) -> Iterator[LintFinding]:
    """Yield everything that can be found without running the model.

    Args:
        model: The model.
        message: The file it was loaded from, as parsed: loading repairs names.
        aims: Engines and formats that the model is meant for.
    """
    yield from names.check_file(message.proto)
    try:
        model.check()
    except ModelError as error:
        yield LintFinding(
            CHECKER, Severity.EXCEPTION, "", "", "", "", error.message.removeprefix("onnx.checker refuses the model: "),
            "export the model again, or with another opset", "onnx_checker",
        )  # fmt: skip
    for subject in subjects(model, aims):
        for check in FAMILIES:
            yield from check(subject)
