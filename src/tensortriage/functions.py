"""The commands as functions of Python objects: models in memory, engines by name, arrays.

Each makes the request of `tensortriage.api` and answers as it does; further fields of that request are further
arguments. A model is a path, an ``onnx.ModelProto``, an ``onnx_ir.Model`` or a `Model`. Inputs are a dict from input
name to array, a list of such dicts, a path, or a data loader of PyTorch; without them they are made up. An engine is a
spec, as ``openvino:precision=fp16``.
"""

import dataclasses
import importlib
import sys
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypeVar

from tensortriage import api
from tensortriage.engines.spec import PLAIN
from tensortriage.errors import did_you_mean
from tensortriage.values.text import duration

if TYPE_CHECKING:
    from tensortriage.diagnose.state.verdict import Step
    from tensortriage.precision.plan import PrecisionPlan
    from tensortriage.reduce.reduction_result import Reduction

R = TypeVar("R")
Arrays = Mapping[str, Any]
"""Arrays of any kind, by name."""


def diagnose(
    model: object, target: "str | api.EngineSpec", *, inputs: object = None, progress: bool | None = None, **more: Any
) -> "api.Verdict":
    """Find out why an engine gives other numbers than the model defines.

    Args:
        model: The model.
        target: The engine under suspicion.
        inputs: The model's inputs.
        progress: Whether answers are shown as they come; by default in notebooks only.
        **more: Fields of `tensortriage.api.DiagnoseRequest`, as ``reference``, ``case`` or ``target_model``.

    Returns:
        The verdict; the case, by default ``triage-case``, then holds the report.

    Raises:
        TypeError: For an argument of another type.
        TriageError: For bad input, and an engine that is not usable here.

    Example:
        >>> tensortriage.diagnose("model.onnx", "openvino:precision=fp16", inputs={"x": x})  # doctest: +SKIP
    """
    if not isinstance(progress, bool | None):
        raise TypeError(f"diagnose(progress=...) cannot be {type(progress).__name__}: give True, False or None")
    request = _made(api.DiagnoseRequest, model=model, target=target, feeding=inputs, **more)
    with _Shown(progress) as shown:
        return api.diagnose(request, listener=shown)


def run(
    model: object,
    targets: "str | api.EngineSpec | Sequence[str | api.EngineSpec]",
    *,
    reference: "str | api.EngineSpec" = PLAIN,
    inputs: object = None,
    **more: Any,
) -> "api.CompareResult":
    """Run a model on engines, and compare their outputs with those of the reference.

    Args:
        model: The model.
        targets: One engine or several.
        reference: The engine assumed to be right.
        inputs: The model's inputs.
        **more: Fields of `tensortriage.api.CompareRequest`, as ``tolerances`` or ``metric``.

    Raises:
        TypeError: For an argument of another type.
        TriageError: For bad input, and an engine that is not usable here.
    """
    if isinstance(targets, Sequence) and not targets:
        raise TypeError("run(targets=...) cannot be empty: name an engine, e.g. 'onnxruntime'")
    return api.compare(
        _made(api.CompareRequest, model=model, reference=reference, targets=targets, feeding=inputs, **more)
    )


def compare(
    reference: "Arrays | Sequence[Arrays] | str | PathLike[str]",
    target: "Arrays | Sequence[Arrays] | str | PathLike[str]",
    *,
    model: object = None,
    inputs: object = None,
    tolerance: object = None,
    **more: Any,
) -> "api.CompareResult":
    """Compare outputs that are there already.

    Args:
        reference: Outputs assumed to be right: a dict from name to array, a list of such dicts, one for each feed, or a
            file.
        target: Outputs under suspicion.
        model: The model that both are of; its noise floor is then the limit, and the reference is judged by it.
        inputs: The inputs that the outputs were computed from, for the model.
        tolerance: A number, a dict from name to number, or a `Tolerance`, instead of the noise floor.
        **more: Fields of `tensortriage.api.CompareRequest`.

    Raises:
        TypeError: For an argument of another type.
        TriageError: For bad input.
    """
    from tensortriage.workflows.comparison.saved_results import given_results

    saved = [given_results("reference", reference), given_results("target", target)]
    tolerances = [] if tolerance is None else [tolerance]
    return api.compare(
        _made(api.CompareRequest, model=model, saved=saved, feeding=inputs, tolerances=tolerances, **more)
    )


def reduce(
    model: object, target: "str | api.EngineSpec", output: "str | PathLike[str]", *, inputs: object = None, **more: Any
) -> "Reduction":
    """Find the smallest piece of a model that still fails on an engine, and write it.

    Args:
        model: The model.
        target: The engine that fails.
        output: File for the piece.
        inputs: The model's inputs.
        **more: Fields of `tensortriage.api.ReduceRequest`.

    Raises:
        TypeError: For an argument of another type.
        TriageError: For bad input, and a model that does not fail.
    """
    return api.reduce(_made(api.ReduceRequest, model=model, target=target, output=output, feeding=inputs, **more))


def find_precision(
    model: object,
    target: "str | api.EngineSpec",
    *,
    output: "str | PathLike[str] | None" = None,
    inputs: object = None,
    **more: Any,
) -> "PrecisionPlan":
    """Find the fewest nodes that have to compute in higher precision on an engine.

    Args:
        model: The model.
        target: The engine, with its format: ``openvino:precision=fp16``.
        output: File for the mixed model; none is written without it.
        inputs: The model's inputs.
        **more: Fields of `tensortriage.api.PrecisionRequest`, as ``goal``.

    Raises:
        TypeError: For an argument of another type.
        TriageError: For bad input, and a goal that nothing reaches.
    """
    return api.find_precision(
        _made(api.PrecisionRequest, model=model, target=target, output=output, feeding=inputs, **more)
    )


def _made(kind: type[R], **given: Any) -> R:
    """Return a request; a field that it does not have is a `TypeError` that names the nearest."""
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type] # a request is a dataclass
    for name in given:
        if name not in known:
            words = ["inputs", *known]
            cure = did_you_mean(name, words, otherwise=f"there are {', '.join(words)}")
            raise TypeError(f"there is no argument '{name}': {cure}")
    return kind(**given)


class _Shown:
    """Shows the answered questions and the current work of a diagnosis, in a notebook output that can be replaced.

    Args:
        wanted: Whether; by default in notebooks.
    """

    def __init__(self, wanted: bool | None) -> None:
        self._wanted = "ipykernel" in sys.modules if wanted is None else wanted
        self._lines: list[str] = []
        self._told = 0
        self._handle: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.progress("")

    def step(self, step: "Step") -> None:
        """Show an answer."""
        self._lines.append(f"{step.question} {step.answer} ({duration(step.seconds)})")
        self.progress("")

    def progress(self, text: str) -> None:
        """Show the current work."""
        if not self._wanted:
            return
        if "ipykernel" not in sys.modules:
            if line := text or "".join(self._lines[self._told :]):
                sys.stderr.write(f"{line}\n")
            self._told = len(self._lines)
            return
        display = importlib.import_module("IPython.display").display  # it is there in a notebook

        shown = {"text/plain": "\n".join([*self._lines, *([f"… {text}"] if text else [])])}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)
