"""TensorRT: builds an engine from an ONNX file, reports on the build, and runs it; parts in ``tensorrt_*``.

All of TensorRT's work happens here, in the engine's process: a crash of the builder or a CUDA error that stays ends
this process and nothing else. Options are those of `tensortriage_engines.tensorrt.engine`, already checked there;
options that a release lacks are refused here, by name.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

import numpy as np

from tensortriage_engines.tensorrt.worker import config as settings
from tensortriage_engines.tensorrt.worker.library import DEVICE, features, load, load_plugins, make_logger
from tensortriage_engines.tensorrt.worker.logs import LogMiner
from tensortriage_engines.tensorrt.worker.memory import Cuda
from tensortriage_engines.tensorrt.worker.network import (
    Parsed,
    constrain,
    constrain_as_typed,
    element_types,
    mark_debug,
    mark_unfused,
)
from tensortriage_engines.tensorrt.worker.session import DeserializedEngine
from tensortriage_engines.tensorrt.worker.tactics import Tactics
from tensortriage_engines.tensorrt.worker.trtexec import trtexec
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.exchange import Item, Spill

Answer = Tuple[Dict[str, Any], Iterable[Item]]
STRIPPED = "STRIP_PLAN"
"""Builder flag (10.0 and later) that leaves the weights out of the engine, to be refitted where it is deployed."""


def probe(options: Mapping[str, str]) -> Dict[str, Any]:
    """Return this release's features, and its device; without one ``device`` is empty and ``reason`` is given."""
    trt = load(options)
    found = dict(features(trt), device="", compute="", driver="", reason="")
    try:
        cuda = Cuda(int(options.get("device", "0")))
    except AdapterError as error:
        return dict(found, reason=error.message)
    try:
        return dict(found, **cuda.describe())
    finally:
        cuda.close()


def compile(model: Path, options: Mapping[str, str]) -> "TensorRtAdapterSession":
    """Build an engine (or load one, with option ``load_engine``) and make it ready to run.

    Raises:
        AdapterError: When TensorRT or a device is missing, or the engine cannot be built or loaded.
    """
    trt = load(options)
    cuda = Cuda(int(options.get("device", "0")))  # before TensorRT: without a driver its runtime is a null pointer
    miner = LogMiner()
    logger = make_logger(trt, miner)
    build = EngineBuild(trt, logger, miner, model, options)
    if STRIPPED in settings.named(options, "builder_flags"):
        raise AdapterError(
            AdapterFailure.USAGE,
            "an engine that is built without its weights ({}) cannot be run".format(STRIPPED),
            "engine-stripped",
            "leave the flag out to run it; triage convert --convert-to trt --strip-plan writes such an engine",
        )
    if "load_engine" in options:
        build.read(options["load_engine"])
    else:
        build.make()
    runtime = trt.Runtime(logger)
    if hasattr(runtime, "engine_host_code_allowed") and options.get("version_compatible") == "true":
        runtime.engine_host_code_allowed = True
    engine = runtime.deserialize_cuda_engine(build.plan)
    if engine is None:
        raise AdapterError(AdapterFailure.BUILD, miner.reason() or "the engine cannot be deserialised")
    build.info.update(cuda.describe())
    return TensorRtAdapterSession(trt, engine, cuda, miner, build, keep=[runtime, logger])


def answer(question: str, model: Path, options: Mapping[str, str]) -> Answer:
    """Answer a question about a model that needs no session.

    Args:
        question: ``build``: build only, no device is touched after it; ``engine`` and ``timing_cache`` are handed back
            as bytes.
        model: ONNX file.
        options: As for `compile`.

    Raises:
        AdapterError: For another question; when TensorRT is missing or cannot build the model.
    """
    trt = load(options)
    miner = LogMiner()
    logger = make_logger(trt, miner)
    if question == "build":
        if "device" in options:
            Cuda(int(options["device"]))
        build = EngineBuild(trt, logger, miner, model, options)
        build.make()
        return build.info, [blob("engine", build.plan), blob("timing_cache", build.timing_cache)]
    raise AdapterError(AdapterFailure.USAGE, "TensorRT has no answer to '{}'".format(question), "question-unknown")


class EngineBuild:
    """One build and all that is known about it.

    Args:
        trt: TensorRT's module.
        logger: Logger of the runtime.
        miner: Reads the log.
        model: ONNX file.
        options: Option words.

    Attributes:
        plan: The serialised engine.
        info: Facts for the host.
        timing_cache: The timing cache after the build.
    """

    def __init__(self, trt: Any, logger: Any, miner: LogMiner, model: Path, options: Mapping[str, str]) -> None:
        self._trt, self._logger, self._miner = trt, logger, miner
        self._model, self._options = model, options
        self.plan: Any = b""
        self.info: Dict[str, Any] = {"version": str(trt.__version__)}
        self.timing_cache = b""
        self._kept: List[Any] = []  # objects that the builder only borrows

    def read(self, path: str) -> None:
        """Take a saved engine instead of building one."""
        with open(path, "rb") as file:
            self.plan = file.read()
        self.info.update(self._facts(), built=False, observation=self._options.get("observe", ""))

    def make(self) -> None:
        """Build.

        Raises:
            AdapterError: When the parser or the builder refuses, with TensorRT's reason.
        """
        started = time.perf_counter()
        trt, options = self._trt, self._options
        load_plugins(trt, self._logger, [path for path in options.get("plugins", "").split("+") if path])
        builder = make_builder(trt, self._logger, self._miner)
        strong = options.get("typing") == "strong"
        parsed = Parsed(trt, builder, self._logger, strong=strong)
        parsed.parse(self._model)
        parse_seconds = time.perf_counter() - started
        config = settings.configure(trt, builder, options, strong=parsed.strong)
        used = settings.add_profile(trt, builder, config, parsed.network, settings.profiles(options))
        self._restrain(parsed, config, strong)
        observation = self._observe(parsed.network)
        tactics = self._tactics(config)
        self._calibrate(builder, config, parsed.network, used)
        self._miner.clear_tail()
        self.plan = builder.build_serialized_network(parsed.network, config)
        if self.plan is None:
            raise AdapterError(AdapterFailure.BUILD, self._miner.reason() or "the builder gave no reason")
        self._after(config)
        self.info.update(
            self._facts(),
            built=True,
            observation=observation,
            tactics=tactics.told(),
            profile={name: [list(part) for part in shapes] for name, shapes in used.items()},
            trtexec=trtexec(
                trt, config, options.get("model_name") or self._model.name, options, used, strong=parsed.strong
            ),
            parse_seconds=parse_seconds,
            build_seconds=time.perf_counter() - started,
        )

    def _restrain(self, parsed: Parsed, config: Any, strong: bool) -> None:
        """Request precisions of layers where the network's types do not set them."""
        if parsed.strong:
            return
        trt, options = self._trt, self._options
        kept = json.loads(options.get("kept", "{}"))
        if strong:
            types = element_types(parsed.network)
            settings.allow_types(trt, config, types)
            if "INT8" not in types:  # between quantizers the builder chooses int8 kernels unless forbidden
                constrain_as_typed(trt, parsed.network)
                settings.obey(trt, config, options)
        elif kept:
            found = constrain(trt, parsed.network, kept["nodes"], kept["values"])
            settings.obey(trt, config, options)
            self.info["kept"] = found

    def _observe(self, network: Any) -> str:
        """Mark the values that the options name for the debug listener; return the marked ones."""
        wanted = self._options.get("observe", "")
        if wanted == "unfused":
            return "unfused" if mark_unfused(network) else ""
        if wanted:
            return "debug" if mark_debug(network, json.loads(wanted)) else ""
        return ""

    def _tactics(self, config: Any) -> Tactics:
        """Give the build its timing cache and its forced choices."""
        options = self._options
        wanted = options.get("record_tactics") == "true" or "load_tactics" in options
        editable = options.get("editable") == "true" or (wanted and not hasattr(config, "algorithm_selector"))
        if editable or "timing_cache" in options:
            path = options.get("timing_cache", "")
            optional = options.get("timing_cache_optional") == "true"
            cache = settings.open_timing_cache(self._trt, config, path, editable=editable, optional=optional)
            self._kept.append(cache)
        tactics = Tactics(self._trt, options)
        tactics.attach(config)
        self._miner.also = tactics.log if tactics.wants_log else None
        self._kept.append(tactics)
        return tactics

    def _calibrate(self, builder: Any, config: Any, network: Any, used: Mapping[str, settings.Shapes]) -> None:
        if "calibration_cache" not in self._options and "calibration_feeds" not in self._options:
            return
        from tensortriage_engines.tensorrt.worker.calibration import attach

        self._kept.append(attach(self._trt, builder, config, network, self._options, used))

    def _after(self, config: Any) -> None:
        self._miner.also = None
        if "timing_cache" in self._options:
            self.timing_cache = settings.timing_cache_bytes(config)
        for kept in self._kept:
            if hasattr(kept, "written"):
                self.info["calibration_cache"] = bytes(kept.written).decode("latin-1")

    def _facts(self) -> Dict[str, Any]:
        data = np.frombuffer(self.plan, np.uint8)
        return {
            "precision": self._options.get("precision", "tf32"),
            "plan_bytes": int(data.nbytes),
            "plan_sha256": hashlib.sha256(data.data).hexdigest(),
            "timing_cache_sha256": hashlib.sha256(self.timing_cache).hexdigest() if self.timing_cache else "",
            "log": self._miner.summary(),
            "pid": os.getpid(),
        }


class TensorRtAdapterSession(DeserializedEngine):
    """A session that also answers questions about its build."""

    def __init__(self, trt: Any, engine: Any, cuda: Cuda, miner: LogMiner, build: EngineBuild, keep: List[Any]) -> None:
        super().__init__(trt, engine, cuda, miner, build.info, [*keep, build])
        self._build: Optional[EngineBuild] = build

    def answer(self, question: str, feed: Mapping[str, Item], arguments: Mapping[str, Any], spill: Spill) -> Answer:
        """Answer a question about this build.

        Args:
            question: ``inspector`` (TensorRT's own JSON), ``engine`` and ``timing_cache`` (bytes), ``watch`` (run once
                and return the tensors that the debug listener receives).
            feed: For ``watch``.
            arguments: For ``watch``: ``wanted``, names of tensors to hand back; none for all.
            spill: Takes tensors that come while something goes on.

        Raises:
            AdapterError: For another question, and when a run fails.
        """
        assert self._build is not None
        if question == "inspector":
            return {"inspector": json.loads(self.inspect())}, []
        if question == "engine":
            return {}, [blob("engine", self._build.plan)]
        if question == "timing_cache":
            return {}, [blob("timing_cache", self._build.timing_cache)]
        if question == "watch":
            from tensortriage_engines.tensorrt.worker.debug_tensors import watch

            return watch(self, self._trt, self._cuda, feed, arguments, spill)
        raise AdapterError(AdapterFailure.USAGE, "TensorRT has no answer to '{}'".format(question), "question-unknown")

    def close(self) -> None:
        """Release everything, the serialised engine included."""
        self._build = None
        super().close()


def make_builder(trt: Any, logger: Any, miner: LogMiner) -> Any:
    """Return a builder.

    Raises:
        AdapterError: When this release needs a device to build, and there is none.
    """
    try:
        return trt.Builder(logger)
    except TypeError as error:  # the binding's word for a null pointer
        raise AdapterError(
            AdapterFailure.MISSING,
            "TensorRT cannot build here: {}".format(miner.reason() or error),
            "device-missing",
            DEVICE,
        ) from error


def blob(name: str, data: Any) -> Item:
    """Return bytes as a tensor, the way files travel to the host."""
    return Item(name, np.frombuffer(data, np.uint8), "uint8")
