"""Patterns of plugins: which parts of a model one node of a plugin can stand for, and putting the node there.

A pattern is a user's file ``DIR/PLUGIN/pattern.py``, as Polygraphy's ``plugin`` takes it, with functions over a graph
of ONNX GraphSurgeon: ``get_matching_subgraphs(graph)`` returns the places, ``get_plugin_metadata()`` names plugin and
operator, and ``replace_with_plugin(graph, input_tensors, output_tensors, attrs, op)`` may put the node there in its own
way. Without the last, the node takes the named inputs and makes the named outputs, and what served nothing else goes.
"""

import contextlib
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import onnx_ir as ir

from tensortriage.errors import DataError, TriageError, UsageError
from tensortriage.model.io.serialize import to_proto
from tensortriage.model.model import Model
from tensortriage.model.transforms.insert_node import NewNode, insert_node

PATTERN_FILE = "pattern.py"
_FIND, _METADATA, _REPLACE = "get_matching_subgraphs", "get_plugin_metadata", "replace_with_plugin"
INSTALL = "pip install 'tensortriage[plugin]'"


class Instance(msgspec.Struct, frozen=True):
    """A place that one node of a plugin can stand for.

    Attributes:
        inputs: Values that the node takes.
        outputs: Values that it makes.
        attributes: Of the node.
    """

    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = {}


class PluginMatch(msgspec.Struct, frozen=True):
    """What one pattern found.

    Attributes:
        name: Name of the plugin, which is that of its directory.
        op: Its operator.
        instances: The places.
    """

    name: str
    op: str
    instances: list[Instance]


def patterns(folder: Path, *, include: Collection[str] = (), exclude: Collection[str] = ()) -> dict[str, Path]:
    """Return the pattern files of a directory by the name of their plugin, sorted.

    Args:
        folder: Has one directory for each plugin.
        include: The only plugins to take; empty for all.
        exclude: Plugins to leave out.

    Raises:
        UsageError: When there is none (``pattern-missing``), or a name means none (``plugin-unknown``).
    """
    found = {path.parent.name: path for path in sorted(folder.glob(f"*/{PATTERN_FILE}"))}
    if not found:
        raise UsageError(
            f"{folder} has no plugin",
            slug="pattern-missing",
            cure=f"give a directory that contains PLUGIN/{PATTERN_FILE}",
        )
    for name in (*include, *exclude):
        if name not in found:
            raise UsageError(
                f"{folder} has no plugin '{name}'", slug="plugin-unknown", cure="it has: " + ", ".join(found)
            )
    return {name: path for name, path in found.items() if name not in exclude and (not include or name in include)}


def matches(model: Model, pattern: Path) -> PluginMatch | None:
    """Return what a pattern finds in a model; None when it finds nothing.

    Raises:
        UsageError: When ONNX GraphSurgeon is not installed (``graphsurgeon-missing``).
        DataError: When the pattern fails (``pattern-failed``) or answers something else (``pattern-answer``).
    """
    module = _Pattern(pattern)
    found = module.call(_FIND, _surgeon().import_onnx(to_proto(model.ir)))
    if not found:
        return None
    answer = {**module.call(_METADATA), "instances": found}
    try:
        return msgspec.convert(_plain(answer), PluginMatch)
    except msgspec.ValidationError as error:
        raise DataError(
            f"{pattern} returns something that is not a match: {error}", slug="pattern-answer",
            cure="return a list of {inputs: [NAME], outputs: [NAME], attributes: {}}, and the plugin's name and op",
        ) from error  # fmt: skip


def replace(model: Model, match: PluginMatch, pattern: Path) -> Model:
    """Return the model with a node of the plugin at every place of a match.

    Args:
        model: The model; it is not changed.
        match: The places.
        pattern: The plugin's file; it need not be there when nodes are put in the plain way.

    Raises:
        TriageError: When a place is not in the model; see `insert_node`.
        DataError: When the plugin's own way fails (``pattern-failed``).
    """
    own = _Pattern(pattern) if pattern.exists() else None
    if own is not None and own.has(_REPLACE):
        return _in_its_own_way(model, match, own)
    for number, place in enumerate(match.instances):
        name = f"{match.name}_{number}"
        node = NewNode(
            op_type=match.op, inputs=place.inputs, outputs=place.outputs, attributes=place.attributes,
            name=name if name not in model.graph else "",
        )  # fmt: skip
        model = insert_node(model, node)
    return model


def _in_its_own_way(model: Model, match: PluginMatch, pattern: "_Pattern") -> Model:
    surgeon = _surgeon()
    graph = surgeon.import_onnx(to_proto(model.ir))
    tensors = graph.tensors()
    for place in match.instances:
        for name in (*place.inputs, *place.outputs):
            if name not in tensors:
                raise UsageError(
                    f"the model has no value {name!r}", slug="value-unknown", cure="match the same model first"
                )
        done = pattern.call(
            _REPLACE, graph=graph, input_tensors=[tensors[name] for name in place.inputs],
            output_tensors=[tensors[name] for name in place.outputs], attrs=place.attributes or None, op=match.op,
        )  # fmt: skip
        if not done:
            raise DataError(
                f"{pattern.path} did not replace {', '.join(place.inputs)} -> {', '.join(place.outputs)}",
                slug="pattern-failed", cure="let replace_with_plugin return a true value when it has replaced the "
                                            "match",
            )  # fmt: skip
    return Model.from_ir(ir.from_proto(surgeon.export_onnx(graph)))


class _Pattern:
    """A user's pattern file, loaded; what it prints goes to stderr."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._guarded():
            spec = importlib.util.spec_from_file_location(f"pattern_of_{path.parent.name}", path)
            assert spec is not None, "a file ending in .py"
            assert spec.loader is not None
            self._module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(self._module)

    def has(self, name: str) -> bool:
        """Whether the file defines a function."""
        return hasattr(self._module, name)

    def call(self, name: str, *given: Any, **named: Any) -> Any:
        """Call one of its functions."""
        function: Callable[..., Any] | None = getattr(self._module, name, None)
        if function is None:
            raise DataError(
                f"{self.path} has no function {name}",
                slug="pattern-failed",
                cure="define it, as in Polygraphy's examples",
            )
        with self._guarded():
            return function(*given, **named)

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        sys.path.insert(0, str(self.path.parent))
        try:
            with contextlib.redirect_stdout(sys.stderr):
                yield
        except TriageError:
            raise
        except Exception as error:  # a user's file raises anything
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            raise DataError(
                f"{self.path}: {type(error).__name__}: {error}", slug="pattern-failed",
                cure=f"install it: pip install {missing}" if missing else "correct the pattern",
            ) from error  # fmt: skip
        finally:
            sys.path.remove(str(self.path.parent))


def _surgeon() -> Any:
    try:
        return importlib.import_module("onnx_graphsurgeon")
    except ImportError as error:
        raise UsageError(
            "patterns of plugins need ONNX GraphSurgeon, which is not installed",
            slug="graphsurgeon-missing",
            cure=INSTALL,
        ) from error


def _plain(value: object) -> object:
    """Return what a pattern answered as plain Python, numpy's numbers and arrays included."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    return value
