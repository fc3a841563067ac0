"""The Python script that does what a command line of ``triage run`` does, for whoever goes on from there by hand."""

import dataclasses
import enum
import json
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tensortriage.cli.run.options import RunOptions
from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import UsageError
from tensortriage.runs.scripts import ScriptFunction
from tensortriage.workflows.comparison.compare_request import CompareRequest

PUBLIC = ("CompareRequest", "EngineSpec", "FeedRequest", "Limits", "compare")
"""What of a script comes from `tensortriage.api`."""
_RECORDER = "tensortriage.workflows.comparison.saved_results"
_WORST = "tensortriage.workflows.comparison.worst_feeds"
_TEMPLATE = '''"""What `{line}` does, by TensorTriage's Python functions."""

import sys
{imports}

request = {request}
{call}
for pair in result.comparisons:
    for row in pair.comparison.rows:
        verdict = "ok" if row.judgement.within else "FAILED"
        error, decibels = row.metrics.max_abs_error, row.metrics.sqnr_db
        print(f"{{row.value}}: max abs {{error:.3g}}, SQNR {{decibels:.1f}} dB  {{verdict}}")
print("passed" if result.passed else "failed")
sys.exit(0 if result.passed else 1)
'''


class _Source:
    """Python source of values, and the imports that it needs."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}

    def name(self, kind: type | str, module: str = "") -> str:
        """Return a name after noting where it comes from."""
        word = kind if isinstance(kind, str) else kind.__name__
        home = "tensortriage.api" if word in PUBLIC else module or getattr(kind, "__module__", "")
        self._names.setdefault(home, set()).add(word)
        return word

    def imports(self) -> str:
        """Return the import statements, the standard library first."""
        homes = sorted(self._names, key=lambda home: (home.startswith("tensortriage"), home))
        lines = [f"from {home} import {', '.join(sorted(self._names[home]))}" for home in homes]
        split = next((number for number, home in enumerate(homes) if home.startswith("tensortriage")), 0)
        return "\n".join([*lines[:split], "", *lines[split:]])

    def of(self, value: object, indent: str = "") -> str:
        """Return the source of a value.

        Raises:
            UsageError: For a value that only the command line can make (``script-inexpressible``).
        """
        if isinstance(value, EngineSpec):
            return f"{self.name(EngineSpec)}.parse({str(value)!r})"
        if isinstance(value, Path):
            return f"{self.name('Path', 'pathlib')}({str(value)!r})"
        if isinstance(value, enum.Enum):
            return f"{self.name(type(value))}.{value.name}"
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._call(value, indent)
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            return f"float({str(value)!r})"
        if value is None or isinstance(value, bool | int | float | str):
            return repr(value)
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{self.of(key)}: {self.of(one, indent)}" for key, one in value.items()) + "}"
        if isinstance(value, types.MethodType) and isinstance(value.__self__, ScriptFunction):
            words = [f"{f'{value.__self__.path}:{value.__self__.name}'!r}", repr(value.__self__.name)]
            if value.__self__.limits != Limits():
                words.append(self.of(value.__self__.limits, indent))
            return f"{self.name(ScriptFunction)}({', '.join(words)}).{value.__name__}"
        if isinstance(value, Sequence):
            return "[" + ", ".join(self.of(one, indent) for one in value) + "]"
        raise UsageError(
            f"{type(value).__name__} cannot be written into a script",
            slug="script-inexpressible",
            cure="leave out the options that need it, and do the same in the script that is written",
        )

    def _call(self, value: Any, indent: str) -> str:
        inner = indent + "    "
        words = []
        for field in dataclasses.fields(value):
            given = getattr(value, field.name)
            usual = field.default_factory() if callable(field.default_factory) else field.default
            if not field.init or given == usual or (isinstance(given, tuple | list) and [*given] == [*_items(usual)]):
                continue
            words.append(f"{field.name}={self.of(given, inner)}")
        if len(words) < 2:
            return f"{self.name(type(value))}({', '.join(words)})"
        return f"{self.name(type(value))}(\n" + "".join(f"{inner}{word},\n" for word in words) + f"{indent})"


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, tuple | list) else ("not a list",)


def script_of(request: CompareRequest, given: RunOptions, line: str) -> str:
    """Return the script of a comparison.

    Args:
        request: The comparison, without saved results.
        given: The options, for the files that are read and written.
        line: The command line, for the first line.

    Raises:
        UsageError: For options that only the command line can follow (``script-inexpressible``).
    """
    source = _Source()
    text = source.of(request)
    if given.load_outputs:
        loaded = ", ".join(f"*{source.name('load_saved', _RECORDER)}({source.of(path)})" for path in given.load_outputs)
        text = text.removesuffix(")").rstrip("\n") + f"\n    saved=[{loaded}],\n)"
    saved = {"save_inputs": given.save_inputs, "save_outputs": given.save_outputs}
    written = {name: path for name, path in saved.items() if path}
    call = f"result = {source.name('compare')}(request)"
    if written:
        heard = {"save_inputs": "on_feed=recorder.feed", "save_outputs": "record=recorder.outputs"}
        saves = [f"    recorder.{name}({source.of(path)})" for name, path in written.items()]
        call = "\n".join(
            [
                f"with {source.name('TemporaryDirectory', 'tempfile')}() as folder:",
                f"    recorder = {source.name('Recorder', _RECORDER)}({source.name('Path', 'pathlib')}(folder))",
                f"    result = compare(request, {', '.join(heard[name] for name in written)})",
                *saves,
            ]
        )
    if given.save_worst:
        call += f"\n{source.name('save_worst', _WORST)}(request, result, {source.of(given.save_worst)})"
    shown = json.dumps(line)[1:-1]
    return _TEMPLATE.format(line=shown, imports=source.imports(), request=text, call=call)
