"""The two APIs of MNN that run a file: modules, which its expressions are made of, and the older sessions.

They can give other results: behind a file whose inputs are NC4HW4 (``--keepInputFormat 0``) modules of MNN 3.6.1 feed a
GlobalAveragePool wrong numbers, sessions do not.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Tuple

import numpy as np

from tensortriage_worker.adapter import AdapterError, AdapterFailure, own_fault, refusals
from tensortriage_worker.converters import one_line, telling
from tensortriage_worker.heard import hearing

_SAID_LINES = 6
_ERRORS = ("error", "not support", "fail", "can't", "cannot")


def said(lines: List[str]) -> List[str]:
    """Return the reason in lines that MNN or its converter printed."""
    told = [line for line in lines if not line.startswith(("The device supports", "MNN use "))]
    return telling(told, _ERRORS)[-_SAID_LINES:]


class ModuleApi:
    """Runs a file by MNN's module API.

    Args:
        libraries: MNN, its expressions and its modules.
        path: The file.
        runtime: Backend, precision and threads.
        formats: Names of the file's inputs, in order, with the data format of each.
    """

    def __init__(
        self, libraries: Tuple[Any, ...], path: str, runtime: Dict[str, Any], formats: Mapping[str, Any]
    ) -> None:
        _, self._expr, self._nn = libraries
        self._path, self._formats = path, formats
        self._manager = self._nn.create_runtime_manager((runtime,))

    def loaded(self, outputs: List[str]) -> Any:
        """Return a module that computes given values of the file.

        Raises:
            AdapterError: When the runtime refuses.
        """
        reason = ""
        with hearing() as printed:
            try:
                module = self._nn.load_module_from_file(
                    self._path, list(self._formats), outputs, runtime_manager=self._manager
                )
            except Exception as error:
                if own_fault(error):
                    raise
                module, reason = None, one_line(error)
        if module is None:
            raise _refused([*said(printed), reason] if reason else said(printed))
        return module

    def results(self, module: Any, feed: Mapping[str, np.ndarray]) -> Iterator[np.ndarray]:
        """Run once, and yield those values.

        Raises:
            AdapterError: When there is no result.
        """
        constants = []
        for name, data_format in self._formats.items():
            array = feed[name]
            order = self._expr.NHWC if str(data_format).endswith("NHWC") else self._expr.NCHW
            kind = self._expr.int if array.dtype.kind in "iu" else self._expr.float
            constants.append(self._expr.const(array, list(array.shape), order, kind))
        with hearing() as printed, refusals(AdapterFailure.RUN):
            found = module.forward(constants)
        if not found:
            raise _no_result(said(printed))
        for variable in found if isinstance(found, (list, tuple)) else [found]:
            if str(variable.data_format).endswith("NC4HW4"):
                variable = self._expr.convert(variable, self._expr.NCHW)
            with refusals(AdapterFailure.RUN, "MNN gave no result: {}"):
                array = np.array(variable.read())
            yield array


class SessionApi:
    """Runs a file by MNN's session API; see `ModuleApi`."""

    def __init__(
        self, libraries: Tuple[Any, ...], path: str, runtime: Dict[str, Any], formats: Mapping[str, Any]
    ) -> None:
        self._mnn, self._runtime, self._fed = libraries[0], runtime, list(formats)
        self._path = path

    def loaded(self, outputs: List[str]) -> Any:
        """See `ModuleApi.loaded`."""
        with hearing() as printed, refusals(AdapterFailure.BUILD, "the runtime refuses the converted file: {}"):
            interpreter = self._mnn.Interpreter(self._path)
            session = interpreter.createSession(dict(self._runtime, saveTensors=tuple(outputs)))
        if session is None:
            raise _refused(said(printed))
        return interpreter, session, outputs

    def results(self, module: Any, feed: Mapping[str, np.ndarray]) -> Iterator[np.ndarray]:
        """See `ModuleApi.results`."""
        interpreter, session, outputs = module
        with hearing() as printed, refusals(AdapterFailure.RUN):
            tensors = {name: interpreter.getSessionInput(session, name) for name in self._fed}
            moved = [name for name, tensor in tensors.items() if tuple(tensor.getShape()) != feed[name].shape]
            for name in moved:
                interpreter.resizeTensor(tensors[name], feed[name].shape)
            if moved:
                interpreter.resizeSession(session)
            for name, tensor in tensors.items():
                tensor.copyFrom(self._host(tensor, feed[name]))
            code = interpreter.runSession(session)
        if code:
            raise _no_result(said(printed) or ["code {}".format(code)])
        for name in outputs:
            with refusals(AdapterFailure.RUN, "MNN gave no result: {}"):
                tensor = interpreter.getSessionOutput(session, name)
                whole = tensor.getDataType() == self._mnn.Halide_Type_Int
                host = self._host(tensor, np.zeros(tensor.getShape(), np.int32 if whole else np.float32))
                tensor.copyToHostTensor(host)
                array = np.array(host.getNumpyData()).reshape(tensor.getShape())
            yield array

    def _host(self, tensor: Any, array: np.ndarray) -> Any:
        """Return an array as a tensor in memory, with channels last where another tensor has them there."""
        kind = self._mnn.Halide_Type_Int if array.dtype.kind in "iu" else self._mnn.Halide_Type_Float
        last = tensor.getDimensionType() == self._mnn.Tensor_DimensionType_Tensorflow
        order = self._mnn.Tensor_DimensionType_Tensorflow if last else self._mnn.Tensor_DimensionType_Caffe
        return self._mnn.Tensor(array.shape, kind, array, order)


APIS = {"module": ModuleApi, "session": SessionApi}


def _refused(words: List[str]) -> AdapterError:
    message = "the runtime refuses the converted file: {}".format(" | ".join(words) or "no reason given")
    return AdapterError(AdapterFailure.BUILD, message)


def _no_result(words: List[str]) -> AdapterError:
    return AdapterError(AdapterFailure.RUN, "MNN gave no result: {}".format(" | ".join(words) or "no reason given"))
