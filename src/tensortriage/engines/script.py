"""A user's Python file as an engine, in a worker process, which keeps its side effects away from this process.

``script:FILE.py[:ATTRIBUTE][,key=value]``. The file needs one thing with ``compile(model_path, options)`` that returns
an object with ``run(feed) -> dict of arrays``; see `tensortriage_worker.script_adapter` for its optional parts.
"""

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tensortriage.engines.base import Availability, Limits
from tensortriage.engines.capabilities import Calibrates, OffersLadder, PinsTactics, ReportsPrecision
from tensortriage.engines.options import read_options
from tensortriage.engines.process.interpreters import WORKER_OPTION
from tensortriage.engines.process.isolated import IsolatedEngine, IsolatedSession
from tensortriage.engines.process.model_terms import ModelTerms
from tensortriage.errors import TriageError, UsageError
from tensortriage.values.dtype import Precision
from tensortriage.values.files import absence
from tensortriage.values.spec import ValueSpec

_UNOPTIMIZED = "none"
"""Value of an option ``optimization`` without any, the word of ONNX Runtime's."""


class ScriptEngine(ReportsPrecision, Calibrates, PinsTactics, OffersLadder):
    """The engine ``script``; options it does not know are the script's own and are passed on as they are."""

    name: ClassVar[str] = "script"
    options: ClassVar[Mapping[str, str]] = {
        "file": "the Python file (written after the colon)",
        "attribute": "class, factory or object in it (written after a second colon; default: its only class with "
        "compile, else Engine)",
        "precision": "the precision the script computes in, for noise floors; passed on to it (default fp32)",
        "cpus": "CPUs that its process may use, and threads of OpenMP, OpenBLAS and MKL there (default: all)",
        "worker": WORKER_OPTION,
    }

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()

    def availability(self) -> Availability:
        """Return that this interpreter can run scripts; whether a certain script works shows when it compiles."""
        return Availability(usable=True, version=f"Python {platform.python_version()}", device="CPU")

    def calibrates(self, options: Mapping[str, str]) -> bool:
        """Return whether the script computes in int8; see `Calibrates`."""
        return self.precision(options) == Precision.INT8.value

    def precision(self, options: Mapping[str, str]) -> str:
        """Return the format of option ``precision``; fp32 without it.

        Raises:
            UsageError: For an unknown precision word.
        """
        return Precision.parse(options.get("precision", Precision.FP32.value)).value

    def recording(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Return the options unchanged: a session with ``tactics()`` reports them anyway."""
        return options

    def pinning(self, options: Mapping[str, str], record: Path) -> Mapping[str, str]:
        """Pass the file on as option ``load_tactics``; a script whose sessions have ``tactics()`` is to honour it."""
        return {**options, "load_tactics": str(record.absolute())}

    def ladder(self, options: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Return the levels of the script's ``ladder(options)``, run in a worker.

        Without it, an option ``optimization`` is first ``none``, as ONNX Runtime's. A script on another machine is not
        queried.
        """
        file, whole = Path(options.get("file", "")).expanduser().absolute(), [("as given", dict(options))]
        if options.get("optimization", _UNOPTIMIZED) != _UNOPTIMIZED:
            plain = {**options, "optimization": _UNOPTIMIZED}
            whole = [("optimization=none", plain), (f"optimization={options['optimization']}", dict(options))]
        if "worker" in options:
            return whole
        isolated = IsolatedEngine("script", title=file.name, limits=self.limits)
        try:
            rungs = isolated.probe({**options, "file": str(file)}, affinity=str(file)).get("ladder", ())
        except TriageError:
            return whole
        place = {key: options[key] for key in ("file", "attribute") if key in options}
        return [(words, {**place, **given}) for words, given in rungs] or whole

    def compile(self, model: Path, options: Mapping[str, str]) -> IsolatedSession:
        """Build a model with the script, in a worker.

        Raises:
            UsageError: When the file or the attribute does not exist or has no ``compile``.
            BuildFailed: When the script or its ``compile`` raises.
            EngineError: When it crashes, hangs or runs out of memory.
            ModelError: When the script declares no inputs or outputs and the model cannot be read for them.
        """
        file = Path(options.get("file", "")).expanduser().absolute()
        if not file.is_file():
            raise UsageError(f"script {absence(file)}", slug="script-missing", cure="write script:FILE.py[:ATTRIBUTE]")
        isolated = IsolatedEngine("script", title=file.name, limits=self.limits)
        if "cpus" in options:
            read_options(options, {**self.options, **options}).integer("cpus", 1, minimum=1)
        affinity = f"{file} {options.get('cpus', '')}".rstrip()
        return isolated.compile(
            model,
            {**options, "file": str(file)},
            affinity=affinity,
            files=("file",),
            terms=ModelTerms(_declared),
        )


def _declared(model: Path) -> tuple[Sequence[ValueSpec], Sequence[ValueSpec]]:
    from tensortriage.model.model import Model

    loaded = Model.of_file(model)
    return loaded.inputs, loaded.outputs
