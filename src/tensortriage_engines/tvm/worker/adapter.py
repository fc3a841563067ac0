"""TVM: its Relax importer reads the model as part of the build; Relax's virtual machine runs the compiled result."""

from __future__ import annotations

import contextlib
import functools
import json
import time
import warnings
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping

import numpy as np

from tensortriage_worker.adapter import AdapterError, AdapterFailure, own_fault
from tensortriage_worker.converters import Library, imported
from tensortriage_worker.declared import SessionByPlace, check_types

_LIBRARY = Library(
    "tvm", "TVM", slug="tvm-missing", modules=("tvm", "tvm.relax"), distribution="apache-tvm", oldest="0.25"
)


def probe(options: Mapping[str, str]) -> Dict[str, Any]:
    """Return the version of TVM."""
    return {"version": imported(_LIBRARY)[0].__version__}


def compile(model: Path, options: Mapping[str, str]) -> "TvmSession":
    """Import an ONNX file and compile it for this CPU.

    Raises:
        AdapterError: When TVM is not installed, or does not import or compile the model.
    """
    tvm = imported(_LIBRARY)[0]
    declared = json.loads(options["declared"])
    check_types(declared, "TVM")
    started = time.perf_counter()
    built = _built(tvm, model, options)
    info = {"conversion_seconds": time.perf_counter() - started}
    return TvmSession(tvm, built, declared, info)


class TvmSession(SessionByPlace):
    """A compiled module in its virtual machine.

    Args:
        tvm: The package.
        built: The compiled module.
        declared: See `SessionByPlace`.
        info: See `SessionByPlace`.
    """

    def __init__(self, tvm: Any, built: Any, declared: Mapping[str, Any], info: Dict[str, Any]) -> None:
        super().__init__(declared, info)
        self._tvm, self._machine = tvm, _machine(tvm, built)
        self.another = functools.partial(type(self), tvm, built, declared, {})

    def call(self, arrays: List[np.ndarray]) -> List[np.ndarray]:
        """Return the results of ``main``."""
        found = self._machine["main"](*[self._tvm.runtime.tensor(array) for array in arrays])
        one = hasattr(found, "numpy") or isinstance(found, int)
        one = one or (len(found) > 0 and all(isinstance(item, int) for item in found))  # a shape
        return [_array(item) for item in ([found] if one else found)]

    def close(self) -> None:
        """Release the virtual machine."""
        with contextlib.suppress(AttributeError):
            del self._machine


def _built(tvm: Any, model: Path, options: Mapping[str, str]) -> Any:
    import onnx
    from tvm.relax.frontend.onnx import from_onnx

    left_out = [word for word in options["left_out"].split("+") if word]
    with _refusals(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about outputs without a type
        module = from_onnx(onnx.load(str(model)), keep_params_in_input=False)
    with _refusals(), tvm.transform.PassContext(opt_level=int(options["optimize"]), disabled_pass=left_out):
        return tvm.compile(module, target="llvm")


def _machine(tvm: Any, built: Any) -> Any:
    with _refusals():
        return tvm.relax.VirtualMachine(built, tvm.cpu())


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
