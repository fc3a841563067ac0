"""Runs a program of numpy kernels one step at a time, holding only values that later steps still need.

A program is the engine ``float64``'s form of an ONNX graph: plain steps in execution order, weights that are fetched
when first used, and a list of the values that each step uses last. Every number that kernels compute with is float64; a
float32 array is a weight as it is stored, or elements of one that were moved, and is converted where it is computed
with: of a table of embeddings only the picked rows. Results are yielded as soon as they exist, so a model with every
value marked as output never has to be held whole.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tensortriage.engines.float64.arithmetic import EXACT, Arithmetic
from tensortriage.engines.float64.kernels import ELEMENTWISE, Call, Kernel
from tensortriage.errors import EngineOutOfMemory, TriageError
from tensortriage.frozen_dataclass import frozen_dataclass

Fetch = Callable[[], np.ndarray]


class ValueChange(Protocol):
    """Conversion of a value between two kernels."""

    def __call__(self, y: np.ndarray, exact: np.ndarray | None = None, /) -> np.ndarray:
        """Return the changed value; ``exact`` is the value without the errors that the arithmetic makes inside."""
        ...


@frozen_dataclass
class ProgramStep:
    """One node.

    Attributes:
        node: Name for messages.
        op_type: Operator name for messages, and which control flow it is.
        version: Operator set version.
        inputs: Value names; empty for omitted optional inputs.
        outputs: Value names; empty for unused outputs.
        attributes: Attributes as plain values.
        kernel: The arithmetic; None for control flow and functions.
        bodies: Programs of the node's bodies by attribute name; of a function under the empty name.
        arithmetic: The policy of rounding inside the kernel.
        operands: Per input, the conversion before the kernel reads it, or None; empty for no conversion at all.
        results: Per output, the conversion before it is read, or None; empty for no conversion at all.
    """

    node: str
    op_type: str
    version: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    kernel: Kernel | None
    bodies: Mapping[str, "Program"]
    arithmetic: Arithmetic = EXACT
    operands: tuple[ValueChange | None, ...] = ()
    results: tuple[ValueChange | None, ...] = ()

    @property
    def uses(self) -> tuple[str, ...]:
        """Every value this step reads, those that its bodies capture included."""
        captured = (name for key, body in self.bodies.items() if key for name in body.captures)
        return (*(name for name in self.inputs if name), *captured)


@frozen_dataclass
class Program:
    """A graph, the body of a control flow node, or a function body.

    Attributes:
        inputs: Names of the values it is called with.
        outputs: Names of the values it gives.
        weights: How to fetch each initializer.
        steps: In execution order; only those that outputs need.
        releases: Per step, own values of the program that no later step uses.
        captures: Values of the surrounding program that it uses.
        empty: Per output, an array of its type without rows of its shape, for loops without iterations.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: Mapping[str, Fetch]
    steps: tuple[ProgramStep, ...]
    releases: tuple[tuple[str, ...], ...]
    captures: tuple[str, ...]
    empty: tuple[np.ndarray, ...]

    @classmethod
    def of(
        cls,
        inputs: Sequence[str],
        outputs: Sequence[str],
        weights: Mapping[str, Fetch],
        steps: Sequence[ProgramStep],
        empty: Sequence[np.ndarray] = (),
    ) -> "Program":
        """Return the program without steps that no output needs, with captured values and the times of release.

        Args:
            inputs: Names of the fed values.
            outputs: Names of the returned values.
            weights: Loads each weight, by name.
            steps: The operators in topological order.
            empty: Per output, an array of its type without rows, for loops without iterations.
        """
        needed = set(outputs)
        kept: list[ProgramStep] = []
        released: list[tuple[str, ...]] = []
        used: dict[str, None] = dict.fromkeys(outputs)
        computed = {name for step in steps for name in step.outputs}
        last_use = {name for name in outputs if name not in computed}  # handed through at the end
        for step in reversed(steps):
            if needed.isdisjoint(step.outputs):
                continue
            uses = step.uses
            needed.update(uses)
            used |= dict.fromkeys(uses)
            last = tuple({*uses, *filter(None, step.outputs)} - last_use)
            kept.append(step)
            released.append(last)
            last_use.update(last)
        kept.reverse()
        released.reverse()
        made = {*inputs, *weights, *(name for step in kept for name in step.outputs)}
        captures = tuple(name for name in used if name not in made)
        return cls(tuple(inputs), tuple(outputs), dict(weights), tuple(kept), tuple(released), captures, tuple(empty))


class NodeFailed(Exception):
    """A node could not be computed; the message names it."""


READS_STORED = frozenset(
    {
        "Flatten", "Gather", "Gemm", "Identity", "MatMul", "Reshape", "Slice", "Split", "Squeeze", "Transpose",
        "Unsqueeze",
    }
)  # fmt: skip
"""Operators whose kernels take weights in float32: they move elements of any type, or convert the operands of
products."""

_RESULT_ALONE = ELEMENTWISE - {"Div"}
"""Operators whose kernels are exact as on a CPU: the rounding of their results is all of their error."""


class _Scope:
    """Values by name: own ones, weights fetched on first use, then those of the surrounding scope."""

    def __init__(self, weights: Mapping[str, Fetch], values: dict[str, Any], outer: "_Scope | None") -> None:
        self._weights = weights
        self._values = values
        self._outer = outer

    def __getitem__(self, name: str) -> Any:
        """Return a value as kernels compute with it."""
        value = self.stored(name)
        if isinstance(value, np.ndarray) and value.dtype == np.float32:
            value = value.astype(np.float64)
            self._replace(name, value)
        return value

    def stored(self, name: str) -> Any:
        """Return a value, weights as they are stored."""
        if name in self._values:
            return self._values[name]
        if name in self._weights:
            self._values[name] = self._weights[name]()
            return self._values[name]
        if self._outer is None:
            raise KeyError(name)
        return self._outer.stored(name)

    def _replace(self, name: str, value: Any) -> None:
        if name not in self._values and self._outer is not None:
            self._outer._replace(name, value)
        else:
            self._values[name] = value

    def put(self, name: str, value: Any) -> None:
        self._values[name] = value

    def release(self, name: str) -> None:
        self._values.pop(name, None)


def run(
    program: Program, feed: Mapping[str, Any], going_on: Callable[[], object] = lambda: None
) -> Iterator[tuple[str, Any]]:
    """Yield ``(output name, value)`` in the order in which values come to exist; each output once.

    Elements of a float32 weight that are moved and not computed with are float32, all other real numbers float64.

    Args:
        program: The program.
        feed: Values of its inputs.
        going_on: Called before every step of the program itself; its exceptions end the run.

    Raises:
        NodeFailed: When a kernel fails.
        EngineOutOfMemory: When an array cannot be allocated.
    """
    yield from _run(program, feed, None, going_on)


def _run(
    program: Program, feed: Mapping[str, Any], outer: _Scope | None, going_on: Callable[[], object] = lambda: None
) -> Iterator[tuple[str, Any]]:
    scope = _Scope(program.weights, dict(feed), outer)
    wanted = set(program.outputs)
    for step, last in zip(program.steps, program.releases, strict=True):
        going_on()
        with np.errstate(all="ignore"):
            values = _step(step, scope)
        for name, value in zip(step.outputs, values, strict=False):
            if name:
                scope.put(name, value)
        ready = [name for name in step.outputs if name in wanted]
        for name in ready:
            wanted.discard(name)
            yield name, scope.stored(name)
        for name in last:
            scope.release(name)
    for name in program.outputs:  # inputs, weights and captured values handed straight through
        if name in wanted:
            wanted.discard(name)
            yield name, scope.stored(name)


def _step(step: ProgramStep, scope: _Scope) -> Sequence[Any]:
    try:
        read = scope.stored if step.kernel is not None and step.op_type in READS_STORED else scope.__getitem__
        inputs = tuple(read(name) if name else None for name in step.inputs)
        if step.kernel is None:
            return _control(step, inputs, scope)
        if step.operands:
            inputs = tuple(_changed(inputs, step.operands))
        call = Call(step.op_type, step.version, inputs, step.attributes, len(step.outputs), step.arithmetic)
        result = step.kernel(call)
        values = [_array(value) for value in (result if isinstance(result, tuple) else (result,))]
        if not step.results:
            return values
        if step.arithmetic.amplify == 1 or step.op_type in _RESULT_ALONE:
            return _changed(values, step.results)
        exact = step.kernel(dataclasses.replace(call, arithmetic=EXACT))
        return _amplified(values, exact if isinstance(exact, tuple) else (exact,), step.results)
    except (NodeFailed, TriageError):
        raise
    except MemoryError as error:
        raise EngineOutOfMemory(
            f"float64 ran out of memory at node '{step.node}'",
            slug="engine-out-of-memory",
            cure="use a smaller input",
        ) from error
    except Exception as error:  # kernels let numpy speak for itself
        raise NodeFailed(f"node '{step.node}' ({step.op_type}): {error or type(error).__name__}") from error


def _changed(values: Sequence[Any], changes: Sequence[ValueChange | None]) -> list[Any]:
    pairs = zip(values, changes, strict=False)  # a kernel may give fewer or more outputs than the node names
    changed = [value if change is None or value is None else change(value) for value, change in pairs]
    return [*changed, *values[len(changes) :]]


def _amplified(values: Sequence[Any], exact: Sequence[Any], changes: Sequence[ValueChange | None]) -> list[Any]:
    """Change results whose error is relative to the kernel's result without inner rounding."""
    triples = zip(values, exact, changes, strict=False)
    changed = [v if change is None or v is None else change(v, _array(e)) for v, e, change in triples]
    return [*changed, *values[len(changed) :]]


def _array(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, np.generic) else value


def _control(step: ProgramStep, inputs: tuple[Any, ...], scope: _Scope) -> Sequence[Any]:
    if "" in step.bodies:
        body = step.bodies[""]
        given = dict(zip(body.inputs, (*inputs, *[None] * len(body.inputs)), strict=False))
        return _outputs(body, given, None)
    return _CONTROL[step.op_type](step, inputs, scope)


def _outputs(body: Program, feed: Mapping[str, Any], scope: _Scope | None) -> list[Any]:
    found = dict(_run(body, feed, scope))
    return [found[name] for name in body.outputs]


def _if(step: ProgramStep, inputs: tuple[Any, ...], scope: _Scope) -> Sequence[Any]:
    chosen = step.bodies["then_branch" if bool(np.reshape(inputs[0], ())) else "else_branch"]
    return _outputs(chosen, {}, scope)


def _loop(step: ProgramStep, inputs: tuple[Any, ...], scope: _Scope) -> Sequence[Any]:
    body = step.bodies["body"]
    limit = None if inputs[0] is None else int(np.reshape(inputs[0], ()))
    going = inputs[1] is None or bool(np.reshape(inputs[1], ()))
    state = list(inputs[2:])
    rows: list[list[Any]] = [[] for _ in body.outputs[1 + len(state) :]]
    count = 0
    while going and (limit is None or count < limit):
        values = (np.array(count, np.int64), np.array(True), *state)
        proceed, *results = _outputs(body, dict(zip(body.inputs, values, strict=True)), scope)
        state = results[: len(state)]
        for row, value in zip(rows, results[len(state) :], strict=True):
            row.append(value)
        going = bool(np.reshape(proceed, ()))
        count += 1
    return [*state, *(_stacked(row, 0, empty) for row, empty in zip(rows, body.empty[1 + len(state) :], strict=True))]


def _scan(step: ProgramStep, inputs: tuple[Any, ...], scope: _Scope) -> Sequence[Any]:
    body, count = step.bodies["body"], int(step.attributes["num_scan_inputs"])
    state, scanned = list(inputs[: len(inputs) - count]), inputs[len(inputs) - count :]
    rows: list[list[Any]] = [[] for _ in body.outputs[len(state) :]]

    def given(name: str, size: int) -> Sequence[int]:
        return step.attributes.get(name) or [0] * size

    rolled = [np.moveaxis(x, axis, 0) for x, axis in zip(scanned, given("scan_input_axes", count), strict=True)]
    rolled = [x[::-1] if back else x for x, back in zip(rolled, given("scan_input_directions", count), strict=True)]
    for elements in zip(*rolled, strict=True):
        values = (*state, *map(np.asarray, elements))
        results = _outputs(body, dict(zip(body.inputs, values, strict=True)), scope)
        state = results[: len(state)]
        for row, value in zip(rows, results[len(state) :], strict=True):
            row.append(value)
    axes, backwards = given("scan_output_axes", len(rows)), given("scan_output_directions", len(rows))
    stacked = [
        _stacked(row[::-1] if back else row, axis, empty)
        for row, axis, back, empty in zip(rows, axes, backwards, body.empty[len(state) :], strict=True)
    ]
    return [*state, *stacked]


def _stacked(rows: list[Any], axis: int, empty: np.ndarray) -> np.ndarray:
    return np.stack(rows, axis) if rows else np.moveaxis(empty, 0, axis)


_CONTROL: Mapping[str, Callable[[ProgramStep, tuple[Any, ...], _Scope], Sequence[Any]]] = {
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
}
CONTROL_FLOW = frozenset(_CONTROL)
"""Operators that the interpreter runs itself."""
