"""Valid answers of an engine's process to each question; a process with any other answer is not to be trusted.

The process runs an engine or a user's script, which may write anything to the pipe of answers. Only the shape of
answers is checked here; whether their numbers are right is the subject of the rest of the program.
"""

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

import msgspec


class _Failure(TypedDict):
    kind: str
    message: str
    slug: str
    cure: str


class _Spec(TypedDict):
    name: str
    dtype: str | None
    shape: list[int | str | None] | None


class _Choice(TypedDict):
    layer: str
    tactic: str
    milliseconds: NotRequired[float | None]
    inputs: NotRequired[list[str]]
    outputs: NotRequired[list[str]]
    nodes: NotRequired[list[str]]


class _BuildFacts(TypedDict):
    own_options: NotRequired[list[str]]
    strided: NotRequired[bool]
    tactics: NotRequired[list[_Choice]]


class _Region(TypedDict):
    name: str
    nodes: list[str]
    kind: NotRequired[str]
    precision: NotRequired[str]
    implementation: NotRequired[str]
    inputs: NotRequired[list[str]]
    outputs: NotRequired[list[str]]


class _Failed(TypedDict):
    error: _Failure


class _Greeting(TypedDict):
    pid: int
    numpy: str
    ml_dtypes: NotRequired[bool]
    reason: NotRequired[str]


class _Probed(TypedDict):
    info: dict[str, Any]


class _Compiled(TypedDict):
    inputs: list[_Spec] | None
    outputs: list[_Spec] | None
    info: _BuildFacts


class _Ran(TypedDict):
    shards: list[str]


class _Planned(TypedDict):
    plan: list[_Region] | None


class _Answered(TypedDict):
    info: dict[str, Any]
    shards: list[str]


class _Closed(TypedDict):
    resident_bytes: int


_FORMS: Mapping[str, Any] = {
    "start": _Greeting, "probe": _Probed, "compile": _Compiled, "run": _Ran, "streams": _Ran, "plan": _Planned,
    "answer": _Answered, "close": _Closed,
}  # fmt: skip


def fault_of(answer: Mapping[str, Any], operation: str) -> str:
    """Return the defect in the form of an answer; empty for none."""
    try:
        msgspec.convert(answer, _Failed if "error" in answer else _FORMS[operation])
    except msgspec.ValidationError as error:
        return str(error)
    return ""
