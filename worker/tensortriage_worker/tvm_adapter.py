"""TVM: its Relax importer reads the model as part of the build, and Relax's virtual machine runs what was compiled."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping

import numpy as np

from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.by_place import SessionByPlace, check_types

_INSTALL = "triage engines install tvm"


def probe(options: Mapping[str, str]) -> Dict[str, Any]:
    """Return the version of TVM."""
    return {"version": _library().__version__}


def compile(model: Path, options: Mapping[str, str]) -> "TvmSession":
    """Import an ONNX file and compile it for this CPU.

    Raises:
        AdapterError: When TVM is not installed, or does not import or compile the model.
    """
    tvm = _library()
    import onnx
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    declared = json.loads(options["declared"])
    check_types(declared, "TVM")
    started = time.perf_counter()
    left_out = [word for word in options["left_out"].split("+") if word]
    context = tvm.transform.PassContext(opt_level=int(options["optimize"]), disabled_pass=left_out)
    try:
        with context:
            module = from_onnx(onnx.load(str(model)), keep_params_in_input=False)
            built = tvm.compile(module, target="llvm")
    except Exception as error:  # whatever an importer in Python comes upon is its reason
        words = " ".join("{}: {}".format(type(error).__name__, error).split())
        raise AdapterError(AdapterFailure.BUILD, words) from error
    machine = relax.VirtualMachine(built, tvm.cpu())
    return TvmSession(tvm, machine, declared, {"conversion_seconds": time.perf_counter() - started})


class TvmSession(SessionByPlace):
    """A compiled module in its virtual machine."""

    def __init__(self, tvm: Any, machine: Any, declared: Mapping[str, Any], info: Dict[str, Any]) -> None:
        super().__init__(declared, info)
        self._tvm, self._machine = tvm, machine

    def call(self, arrays: List[np.ndarray]) -> List[np.ndarray]:
        """Return the results of ``main``."""
        found = self._machine["main"](*[self._tvm.runtime.tensor(array) for array in arrays])
        return [_array(item) for item in ([found] if hasattr(found, "numpy") else list(found))]

    def close(self) -> None:
        """Release the virtual machine."""
        with contextlib.suppress(AttributeError):
            del self._machine


def _array(result: Any) -> np.ndarray:
    """Return a result as an array; what TVM takes for a shape is a tuple of its own."""
    return np.array(result.numpy() if hasattr(result, "numpy") else [int(size) for size in result])


def _library() -> Any:
    try:
        import tvm
        import tvm.relax
    except ImportError as error:
        message = "TVM cannot be imported: {}".format(" ".join(str(error).split()))
        raise AdapterError(AdapterFailure.MISSING, message, "tvm-missing", _INSTALL) from error
    return tvm
