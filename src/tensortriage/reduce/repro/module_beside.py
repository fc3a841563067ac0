"""The module of a source network next to the nodes of a repro, with the facts from the package that cut it out.

A package that knows the networks of an engine registers a function that cuts modules out, under `GROUP` and by the
engine's name.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from tensortriage.frozen_dataclass import frozen_dataclass

GROUP = "tensortriage.modules"
"""Entry-point group of functions of an investigation, its evidence, names of nodes, and the `Failure` of these alone.
Each returns a `ModuleBeside` and no word, or None and why there is none."""

MODULE_FILES = ("module.py", "weights.safetensors", "inputs.safetensors")
"""Its files: code that makes it, tensors that it uses, tensors that reach it."""


@frozen_dataclass(kw_only=True)
class ModuleBeside:
    """A part of the network that nodes were exported from.

    Attributes:
        write: Writes `MODULE_FILES` into a folder; raises OSError.
        label: Its place in the network: path, class and line.
        code: Its operations.
        contents: Parts of the network in the files, in Markdown, so that users can decide whether to share them.
        framework: Framework that runs it here, with its version.
        export: The call that exports it, for the title of a report.
        check: Python that defines ``exported_anew()`` for the script of a repro: the worst relative error of the module
            exported there, None where its framework is not installed.
        versions: Versions of the framework and of its exporter's packages.
        anew: Whether it is wrong when it is exported again here; None when that could not be tried.
        told: How it is wrong then, or why it could not be tried.
    """

    write: Callable[[Path], None]
    label: str
    code: str
    contents: str
    framework: str
    export: str
    check: str
    versions: Mapping[str, str]
    anew: bool | None = None
    told: str = ""
