"""The engine's process: one request after the other, each answered, even if the engine or a user's script fails.

Requests and answers are lines of JSON on private copies of stdin and stdout. The standard ones are then replaced, so
that a script that prints, or reads, cannot disturb the conversation: everything printed, by Python or by native code,
goes to the log whose tail the supervisor quotes when the process dies.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import importlib
import importlib.util
import json
import os
import platform
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import IO, Any, Dict, List, Optional, Tuple

from tensortriage_worker.adapter import AdapterError, AdapterFailure, own_fault, place_of, raised_by_hand
from tensortriage_worker.loaded import LoadedCode
from tensortriage_worker.silence import silence
from tensortriage_worker.supervisor import resident_bytes

ADAPTERS = {
    "function": "tensortriage_worker.function_adapter",
    "onnxruntime": "tensortriage_worker.onnxruntime.adapter",
    "script": "tensortriage_worker.script_adapter",
}
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_OUT_OF_MEMORY = ("bad_alloc", "out of memory", "cannot allocate memory", "cudaErrorMemoryAllocation")


def main() -> None:
    """Serve until the supervisor closes the pipe."""
    silence()
    requests, answers = _private_pipes()
    _die_with(int(sys.argv[2]))
    faulthandler.enable()
    server, own_pid = _Server(), os.getpid()
    _answer(answers, server.hello())
    for line in requests:
        request = json.loads(line)
        answer = dict(server.handle(request), id=request.get("id"))
        if os.getpid() != own_pid:
            os._exit(0)  # a fork of the engine's that returned here: it serves no requests
        _answer(answers, answer)


class _Server:
    """Holds the one open session."""

    def __init__(self) -> None:
        self._session = None  # type: Any
        self._built = {}  # type: Dict[str, Any]  # the request that the session came of
        self._buffers = None  # type: Any
        self._settled = False  # whether long-lived objects, modules above all, are out of the collector's sight
        self._loaded: Optional[LoadedCode] = None
        self._ran = False  # whether the open session has

    def hello(self) -> Dict[str, Any]:
        """Return this process's versions; numpy is imported now so that its absence is reported first."""
        here = {"python": platform.python_version(), "executable": sys.executable, "pid": os.getpid()}
        try:
            import numpy
        except ImportError as error:
            return dict(here, numpy="", reason=str(error))
        return dict(here, numpy=numpy.__version__, ml_dtypes=importlib.util.find_spec("ml_dtypes") is not None)

    def handle(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Carry out a request and return the answer; a failure is an answer."""
        started = time.perf_counter()
        try:
            if self._loaded is None and getattr(_adapter(request), "RUNS_USERS_CODE", False):
                self._loaded = LoadedCode(sys.argv[1])
            answer = getattr(self, "_" + request["op"])(request)
        except BaseException as error:  # scripts may raise anything, SystemExit included
            answer = {
                "error": describe(
                    error, during=request["op"], adapter=request.get("adapter", self._built.get("adapter", ""))
                )
            }
        if self._loaded is not None and not (request["op"] == "run" and self._ran):  # runs may be many and short
            self._loaded.look()
        self._ran = request["op"] == "run"
        return dict(answer, seconds=time.perf_counter() - started)

    def _probe(self, request: Dict[str, Any]) -> Dict[str, Any]:
        return {"info": _adapter(request).probe(request["options"])}

    def _compile(self, request: Dict[str, Any]) -> Dict[str, Any]:
        from tensortriage_worker.feeding import InputBuffers

        self._built, self._buffers = request, InputBuffers()
        self._session = session = _adapter(request).compile(Path(request["model"]), request["options"])
        return {"inputs": session.inputs, "outputs": session.outputs, "info": session.info}

    def _run(self, request: Dict[str, Any]) -> Dict[str, Any]:
        from tensortriage_worker import exchange, feeding

        feed = {item.name: item for item in exchange.take(request["shards"])}
        layout = request.get("layout", "")
        if layout in (feeding.HELD, feeding.SHARED):
            run = feeding.held if layout == feeding.HELD else feeding.shared
            return {"shards": exchange.put(request["folders"], run(self._session.run, feed))}
        if layout:
            feed = {n: i._replace(array=self._buffers.laid_out(n, i.array, layout)) for n, i in feed.items()}
        return {"shards": exchange.put(request["folders"], self._session.run(feed))}

    def _streams(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Run two feeds at the same time, in the open session and in another one of the same model.

        Sessions that take long to build offer ``another`` of the same build, as their users would open it.

        Names of inputs and results begin with the number of the stream, those of results then with that of the run: the
        first of the other session is one alone.
        """
        import numpy as np

        from tensortriage_worker import exchange
        from tensortriage_worker.feeding import side_by_side

        feeds: List[Dict[str, Any]] = [{}, {}]
        for item in exchange.take(request["shards"]):
            number, _, name = item.name.partition("/")
            feeds[int(number)][name] = item._replace(name=name)
        if hasattr(self._session, "another"):
            other = self._session.another()
        else:
            other = _adapter(self._built).compile(Path(self._built["model"]), self._built["options"])
        labels: Dict[str, str] = {}

        def stream(session: Any, feed: Dict[str, Any]) -> Any:
            def run() -> Dict[str, Any]:
                items = list(session.run(feed))
                labels.update({item.name: item.label for item in items})
                return {item.name: item.array for item in items}

            return run

        try:
            streams = [stream(self._session, feeds[0]), stream(other, feeds[1])]
            alone = {name: np.array(array) for name, array in streams[1]().items()}
            found = side_by_side(streams, request["runs"])
            found[1].insert(0, alone)
        finally:
            other.close()
        items = [
            exchange.Item("{}/{}/{}".format(number, at, name), array, labels[name])
            for number, results in enumerate(found)
            for at, result in enumerate(results)
            for name, array in result.items()
        ]
        return {"shards": exchange.put(request["folders"], items)}

    def _plan(self, request: Dict[str, Any]) -> Dict[str, Any]:
        return {"plan": self._session.plan()}

    def _answer(self, request: Dict[str, Any]) -> Dict[str, Any]:
        """Answer a question of an adapter's own, about a model or, without one, about the open session."""
        from tensortriage_worker import exchange

        feed = {item.name: item for item in exchange.take(request["shards"])}
        if "model" in request:
            adapter = _adapter(request)
            info, items = adapter.answer(request["question"], Path(request["model"]), request["options"])
        else:
            spill = exchange.Spill(request["folders"])
            info, items = self._session.answer(request["question"], feed, request["arguments"], spill)
            return {"info": info, "shards": [*spill.close(), *exchange.put(request["folders"], items)]}
        return {"info": info, "shards": exchange.put(request["folders"], items)}

    def _close(self, request: Dict[str, Any]) -> Dict[str, Any]:
        session, self._session = self._session, None
        had_session = session is not None
        if session is not None:
            session.close()
        del session
        gc.collect()
        if had_session and not self._settled:
            gc.freeze()  # looking at every module's objects again would take longer than building a small model
            self._settled = True
        if hasattr(_LIBC, "malloc_trim"):
            _LIBC.malloc_trim(0)
        return {"resident_bytes": resident_bytes(os.getpid())}


def describe(error: BaseException, *, during: str, adapter: str = "script") -> Dict[str, str]:
    """Return kind, message, slug and cure of an exception, for the host.

    Args:
        error: The exception.
        during: The operation.
        adapter: The adapter that raised it; those that run code of users do not answer for it.

    Errors that carry a slug (this package's, and those of `tensortriage.errors` raised by a script that uses the
    library) keep their own words; others get their type, text and the place in the user's code.
    """
    text = " ".join(str(error).split())
    told = getattr(error, "kind", None) is AdapterFailure.MEMORY or any(words in text for words in _OUT_OF_MEMORY)
    memory = told or (isinstance(error, MemoryError) and not raised_by_hand(error))
    kind = "memory" if memory else str(getattr(getattr(error, "kind", None), "value", "")) or type(error).__name__
    slug = getattr(error, "slug", "")
    if slug and not memory:
        text = getattr(error, "message", text)  # its text may go on with the cure
        return {"kind": kind, "message": text, "slug": slug, "cure": str(getattr(error, "cure", ""))}
    if not memory and not _runs_users_code(adapter) and own_fault(error):
        file, line = traceback.extract_tb(error.__traceback__)[-1][:2]
        message = "{}: {} ({}:{})".format(type(error).__name__, text, os.path.basename(file), line)
        return {"kind": "adapter", "message": message, "slug": "", "cure": ""}
    if isinstance(error, SystemExit):
        message = "it called sys.exit({})".format(error.code)
    elif isinstance(error, AdapterError):
        message = text
    else:
        message = "{}: {}".format(type(error).__name__, text) if text else type(error).__name__
    kind = kind if memory else ("run" if during in ("run", "streams", "plan", "close") else "build")
    return {"kind": kind, "message": message + place_of(error), "slug": "", "cure": ""}


def _runs_users_code(adapter: str) -> bool:
    """Return whether an adapter's exceptions may be mistakes of a user: it declares so by ``RUNS_USERS_CODE``."""
    return bool(getattr(sys.modules.get(ADAPTERS.get(adapter, adapter)), "RUNS_USERS_CODE", False))


def _adapter(request: Dict[str, Any]) -> Any:
    return (
        importlib.import_module(ADAPTERS.get(request["adapter"], request["adapter"])) if "adapter" in request else None
    )


def _answer(answers: IO[bytes], answer: Dict[str, Any]) -> None:
    answers.write(json.dumps(answer).encode("ascii") + b"\n")


def _private_pipes() -> Tuple[IO[bytes], IO[bytes]]:
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return requests, answers


def _die_with(supervisor: int) -> None:
    """Ask the kernel for SIGKILL when the supervisor dies, and to pick this process first when memory runs out."""
    if not sys.platform.startswith("linux"):
        return
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:
        sys.exit(1)
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass  # a hardened host may refuse; the engine then takes its chance with the rest
