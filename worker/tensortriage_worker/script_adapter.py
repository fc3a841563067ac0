"""A user's Python file as an engine: anything with ``compile(model_path, options)`` whose result has ``run(feed)``.

Everything else is optional. The engine may have a ``ladder(options)``. A session may declare ``inputs`` and ``outputs``
(names, or objects, mappings or triples of name, dtype and shape), a ``plan()`` (regions as objects or mappings, or an
object with ``regions``), ``tactics()`` (its choices while building: objects or mappings with layer and tactic) and a
``close()``. The file is executed again for every compile, so that an edited script is an edited engine.
"""

from __future__ import annotations

import inspect
import os
import sys
from builtins import compile as compile_source
from collections.abc import Mapping as AnyMapping
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

import numpy as np

from tensortriage_worker.adapter import AdapterError, AdapterFailure, Spec
from tensortriage_worker.exchange import Item

RUNS_USERS_CODE = True
"""Errors here may be mistakes of the script's author."""
MODULE_NAME = "tensortriage_script"
_REGION_FIELDS = ("name", "kind", "precision", "implementation")
_CHOICE_WORDS = ("layer", "tactic", "implementation", "key")
_CHOICE_LISTS = ("inputs", "outputs", "nodes")
_POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def probe(options: Mapping[str, str]) -> Dict[str, Any]:
    """Return the script's ``ladder``: pairs of words and options, from safe to aggressive; empty when it has none."""
    path = Path(options["file"])
    tell = getattr(_engine(load_script(path), path, options.get("attribute", "")), "ladder", None)
    rungs = tell(_own(options)) if callable(tell) else ()
    return {"ladder": [[str(words), {str(k): str(v) for k, v in dict(given).items()}] for words, given in rungs]}


def compile(model: Path, options: Mapping[str, str]) -> "ScriptSession":
    """Execute the script named by option ``file`` and let it build the model; other options are passed on.

    Raises:
        AdapterError: When the script has no engine, or its ``compile`` returns something that cannot run.
    """
    path = Path(options["file"])
    if "cpus" in options:
        _limit_cpus(int(options["cpus"]))
    module = load_script(path)
    engine = _engine(module, path, options.get("attribute", ""))
    session = engine.compile(model, _own(options))
    if not callable(getattr(session, "run", None)):
        raise AdapterError(
            AdapterFailure.BUILD,
            "compile() of {} returned {}, which has no run()".format(path.name, _kind_of(session)),
            "script-session",
            "return an object with run(feed) -> dict of arrays",
        )
    known = getattr(engine, "options", None)
    return ScriptSession(session, path.name, [str(word) for word in known] if isinstance(known, AnyMapping) else [])


def _own(options: Mapping[str, str]) -> Dict[str, str]:
    return {key: value for key, value in options.items() if key not in ("file", "attribute", "cpus")}


def _limit_cpus(count: int) -> None:
    """Limit this process to the given number of CPUs, and the thread pools that it has yet to start as well."""
    os.environ.update({name: str(count) for name in _POOLS})
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


class ScriptSession:
    """Wraps the object that the script's ``compile`` returned; see `AdapterSession`."""

    def __init__(self, session: Any, script: str, options: Sequence[str] = ()) -> None:
        self._session = session
        self._script = script
        self.inputs = self._specs("inputs")
        self.outputs = self._specs("outputs")
        self.info = {"tactics": self._tactics(), "own_options": list(options), "strided": True}  # type: Dict[str, Any]

    def run(self, feed: Mapping[str, Item]) -> Iterable[Item]:
        """Run once with a plain dict of arrays; results are checked one by one.

        Raises:
            AdapterError: When something else than a dict of arrays comes back.
        """
        results = self._session.run({name: item.array for name, item in feed.items()})
        if not isinstance(results, AnyMapping):
            raise self._wrong("run() returned {} instead of a dict of arrays".format(_kind_of(results)))
        return [self._item(name, value) for name, value in results.items()]

    def plan(self) -> Optional[List[Dict[str, Any]]]:
        """Return the script's plan in plain types; None when it has none.

        Raises:
            AdapterError: When something else than a list of regions comes back.
        """
        tell = getattr(self._session, "plan", None)
        plan = tell() if callable(tell) else None
        if plan is None:
            return None
        regions = _get(plan, "regions", plan)
        try:
            return [
                dict(
                    {field: str(_get(region, field, "")) for field in _REGION_FIELDS},
                    nodes=[str(node) for node in _get(region, "nodes", ())],
                )
                for region in regions
            ]
        except TypeError:
            raise self._wrong("plan() returned {} instead of a list of regions".format(_kind_of(plan))) from None

    def _tactics(self) -> List[Dict[str, Any]]:
        tell = getattr(self._session, "tactics", None)
        return [
            dict(
                {field: str(_get(choice, field, "")) for field in _CHOICE_WORDS},
                **{field: [str(word) for word in _get(choice, field, ())] for field in _CHOICE_LISTS},
                milliseconds=_get(choice, "milliseconds", None),
            )
            for choice in (tell() if callable(tell) else ())
        ]

    def close(self) -> None:
        """Close the script's session if it can be closed."""
        close = getattr(self._session, "close", None)
        if callable(close):
            close()

    def _specs(self, attribute: str) -> Optional[List[Spec]]:
        declared = getattr(self._session, attribute, None)
        if declared is None:
            return None
        try:
            if isinstance(declared, str):
                raise TypeError("a str instead of a list")
            return [_spec(entry) for entry in declared]
        except (TypeError, ValueError) as error:
            raise AdapterError(
                AdapterFailure.USAGE,
                "{}: session.{}: {}".format(self._script, attribute, error),
                "script-session",
                "leave the attribute out, or list names of the model or triples: "
                "self.{} = [('{}', 'float32', [None, 3])]".format(attribute, "x" if attribute == "inputs" else "y"),
            ) from None

    def _item(self, name: Any, value: Any) -> Item:
        if not isinstance(name, str):
            raise self._wrong("run() returned an output named by {} instead of a str".format(_kind_of(name)))
        try:
            array = np.asarray(value)
        except (ValueError, TypeError) as error:
            raise self._wrong("output '{}' is not an array: {}".format(name, error)) from None
        if array.dtype.kind == "O" and not all(isinstance(item, (str, bytes)) for item in array.reshape(-1).tolist()):
            raise self._wrong("output '{}' is {}, not an array of numbers".format(name, _kind_of(value)))
        return Item(name, array)

    def _wrong(self, what: str) -> AdapterError:
        return AdapterError(
            AdapterFailure.RUN,
            "{}: {}".format(self._script, what),
            "script-result",
            "return a dict of numpy arrays, one per model output",
        )


def load_script(path: Path) -> ModuleType:
    """Execute a user's file as a module of its own and return it."""
    # Not through importlib: its cached bytecode takes an edit within a second that keeps the size for no edit.
    module = ModuleType(MODULE_NAME)
    module.__file__ = str(path)
    sys.modules[MODULE_NAME] = module  # dataclasses and pickle look there
    folder = os.path.dirname(os.path.abspath(str(path)))
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as `python FILE` does
    exec(compile_source(path.read_bytes(), str(path), "exec"), module.__dict__)
    return module


def _engine(module: ModuleType, path: Path, attribute: str) -> Any:
    made = _attribute(module, path, attribute) if attribute else _default(module, path)
    if callable(made) and not _compiles(made):
        made = made()  # a factory
    elif inspect.isclass(made):
        made = made()
    if not _compiles(made):
        raise AdapterError(
            AdapterFailure.USAGE,
            "'{}' of {} has no compile(model_path, options)".format(attribute or "Engine", path.name),
            "script-engine",
            "name a class, factory or object that has it: script:{}:NAME".format(path),
        )
    return made


def _attribute(module: ModuleType, path: Path, attribute: str) -> Any:
    if hasattr(module, attribute):
        return getattr(module, attribute)
    raise AdapterError(
        AdapterFailure.USAGE,
        "{} has no attribute '{}'".format(path.name, attribute),
        "script-attribute-missing",
        "it has: " + (", ".join(name for name in vars(module) if not name.startswith("_")) or "nothing"),
    )


def _default(module: ModuleType, path: Path) -> Any:
    own = [value for value in vars(module).values() if getattr(value, "__module__", "") == MODULE_NAME]
    classes = [value for value in own if inspect.isclass(value) and _compiles(value)]
    if len(classes) == 1:
        return classes[0]
    if hasattr(module, "Engine"):
        return module.Engine
    if _compiles(module):
        return module
    raise AdapterError(
        AdapterFailure.USAGE,
        "{} defines {} classes with a compile method and no Engine".format(path.name, len(classes) or "no"),
        "script-engine",
        "name the one to use: script:{}:NAME".format(path),
    )


def _compiles(value: Any) -> bool:
    return callable(getattr(value, "compile", None))


def _spec(entry: Any) -> Spec:
    if isinstance(entry, str):
        return {"name": entry, "dtype": None, "shape": None}
    if isinstance(entry, (tuple, list)):
        name, dtype, shape = entry
    else:
        name, dtype, shape = (_get(entry, field, None) for field in ("name", "dtype", "shape"))
    if not isinstance(name, str):
        raise ValueError("a name is missing")
    sizes = None if shape is None else [d if d is None or isinstance(d, str) else int(d) for d in shape]
    return {"name": name, "dtype": None if dtype is None else _dtype_label(dtype), "shape": sizes}


def _dtype_label(dtype: Any) -> str:
    label = getattr(dtype, "label", None)  # tensortriage's DType
    if isinstance(label, str):
        return label
    return dtype if isinstance(dtype, str) else str(np.dtype(dtype).name)


def _get(value: Any, field: str, default: Any) -> Any:
    return value.get(field, default) if isinstance(value, AnyMapping) else getattr(value, field, default)


def _kind_of(value: Any) -> str:
    return "None" if value is None else "a " + type(value).__name__
