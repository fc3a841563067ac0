"""TVM: its Relax importer reads the model as part of the build, and Relax's virtual machine runs the compiled result.

With option ``file`` a saved module is compiled instead, or a library that TVM compiled is run.
"""

from __future__ import annotations

import contextlib
import functools
import json
import time
import warnings
from pathlib import Path
from types import MappingProxyType
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from tensortriage_engines.tvm.worker.saved_module import SavedModule
from tensortriage_worker.adapter import AdapterError, AdapterFailure, own_fault
from tensortriage_worker.converters import Library, imported
from tensortriage_worker.declared import SessionByPlace, check_types, check_whole
from tensortriage_worker.exchange import Item

_LIBRARY = Library(
    "tvm", "TVM", slug="tvm-missing", modules=("tvm", "tvm.relax"), distribution="apache-tvm", oldest="0.25"
)


def probe(options: Mapping[str, str]) -> Dict[str, Any]:
    """Return the version of TVM."""
    return {"version": imported(_LIBRARY)[0].__version__}


def compile(model: Path, options: Mapping[str, str]) -> "TvmSession":
    """Import an ONNX file and compile it for this CPU, or take option ``file`` in its place.

    Raises:
        AdapterError: When TVM is not installed, does not import or compile the model, or the file is another model's.
    """
    tvm = imported(_LIBRARY)[0]
    declared = json.loads(options["declared"])
    check_types(declared, "TVM")
    started = time.perf_counter()
    given = Path(options["file"]) if options.get("file") else None
    if given is not None and given.suffix != ".py":
        return _from_library(tvm, given, declared)
    saved, places = None, {}  # type: Optional[SavedModule], Dict[str, int]
    if given is not None:
        saved = SavedModule(tvm, given, Path(options["weights"]))
        check_whole(declared, inputs=saved.inputs, outputs=saved.outputs)
        places = _places(saved, model)
    built = _built(tvm, saved.bound() if saved else _imported(model, weights_apart=False), options)
    info = {"conversion_seconds": time.perf_counter() - started}
    return TvmSession(tvm, built, declared, info, options, saved, places)


class TvmSession(SessionByPlace):
    """A compiled module in its virtual machine.

    Args:
        tvm: The package.
        built: What the virtual machine runs.
        declared: See `SessionByPlace`.
        info: See `SessionByPlace`.
        options: Of the build.
        saved: The module that was given in a file.
        places: Which of its bindings hold which ONNX values.
    """

    def __init__(
        self,
        tvm: Any,
        built: Any,
        declared: Mapping[str, Any],
        info: Dict[str, Any],
        options: Mapping[str, str],
        saved: Optional[SavedModule] = None,
        places: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        super().__init__(declared, info)
        self._tvm, self._machine, self._options = tvm, _machine(tvm, built), options
        self._saved, self._places = saved, places
        self._watched = {}  # type: Dict[Tuple[str, ...], Any]
        self.another = functools.partial(type(self), tvm, built, declared, {}, options, saved, places)

    def call(self, arrays: List[np.ndarray]) -> List[np.ndarray]:
        """Return the results of ``main``."""
        return self._called(self._machine, arrays)

    def _called(self, machine: Any, arrays: List[np.ndarray]) -> List[np.ndarray]:
        found = machine["main"](*[self._tvm.runtime.tensor(array) for array in arrays])
        one = hasattr(found, "numpy") or isinstance(found, int)
        one = one or (len(found) > 0 and all(isinstance(item, int) for item in found))  # a shape
        return [_array(item) for item in ([found] if one else found)]

    def seen(self, feed: Mapping[str, Item], wanted: Tuple[str, ...]) -> Iterable[Item]:
        """Return those of the wanted values that the given module binds, out of a second one that returns them."""
        names = tuple(name for name in wanted if name in self._places)
        if self._saved is None or not names:
            return
        made = next((each for each in self._watched if set(names) <= set(each)), names)
        if made not in self._watched:
            module = self._saved.bound([self._places[name] for name in made])
            self._watched[made] = _machine(self._tvm, _built(self._tvm, module, self._options))
        for name, array in zip(made, self._called(self._watched[made], self.fed(feed))):  # noqa: B905 - Python 3.8
            if name in names:
                yield Item(name, array)

    def close(self) -> None:
        """Release the virtual machines."""
        self._watched = {}
        with contextlib.suppress(AttributeError):
            del self._machine


def _imported(model: Path, *, weights_apart: bool, values: bool = False) -> Any:
    """Return a model as a Relax module, with its weights as parameters and its values as outputs on request."""
    import onnx
    from tvm.relax.frontend.onnx import from_onnx

    proto = onnx.load(str(model))
    if values:
        proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in _inner(proto.graph))
    with _refusals(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about outputs without a type
        return from_onnx(proto, keep_params_in_input=weights_apart)


def _inner(graph: Any) -> List[str]:
    known = {value.name for value in graph.output}
    nodes = [node for node in graph.node if node.op_type != "Constant"]
    return [name for node in nodes for name in node.output if name and name not in known]


def _places(saved: SavedModule, model: Path) -> Dict[str, int]:
    """Return which bindings of a saved module hold which values of the model; none where it is unknown."""
    import onnx

    graph = onnx.load(str(model), load_external_data=False).graph
    names = [*(value.name for value in graph.output), *_inner(graph)]
    try:
        return saved.values(_imported(model, weights_apart=True, values=True), names)
    except AdapterError:
        return {}


def _built(tvm: Any, module: Any, options: Mapping[str, str]) -> Any:
    left_out = [word for word in options["left_out"].split("+") if word]
    with _refusals(), tvm.transform.PassContext(opt_level=int(options["optimize"]), disabled_pass=left_out):
        return tvm.compile(module, target="llvm")


def _machine(tvm: Any, built: Any) -> Any:
    with _refusals():
        return tvm.relax.VirtualMachine(built, tvm.cpu())


def _from_library(tvm: Any, path: Path, declared: Mapping[str, Any]) -> TvmSession:
    """Run a library that ``export_library`` wrote; its shapes are seen by a run on zeros.

    Raises:
        AdapterError: When it is none, or not one of the model.
    """
    zeros = {spec["name"]: Item(spec["name"], np.zeros(spec["shape"], spec["dtype"])) for spec in declared["inputs"]}
    with _refusals():
        session = TvmSession(tvm, tvm.runtime.load_module(str(path)), declared, {}, {})
        found = {item.name: list(item.array.shape) for item in session.run(zeros)}
    for spec in declared["outputs"]:
        if spec["shape"] not in (None, found[spec["name"]]):
            message = "the library gives '{}' the shape {}; in the model it has {}".format(
                spec["name"], found[spec["name"]], spec["shape"]
            )
            raise AdapterError(AdapterFailure.BUILD, message)
    return session


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Turn any exception of an importer or compiler in Python into its reason to refuse, but for our own mistakes."""
    try:
        yield
    except Exception as error:
        if own_fault(error):
            raise
        words = error.message if isinstance(error, AdapterError) else "{}: {}".format(type(error).__name__, error)
        raise AdapterError(AdapterFailure.BUILD, " ".join(words.split())) from error


def _array(result: Any) -> np.ndarray:
    """Return a result as an array; TVM's own shapes become tuples, and its sizes numbers."""
    if hasattr(result, "numpy") or isinstance(result, int):
        return np.array(result if isinstance(result, int) else result.numpy())
    return np.array([int(size) for size in result])
