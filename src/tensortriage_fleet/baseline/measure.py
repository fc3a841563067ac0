"""Runs a target for its outputs, and healthy evaluations of the model for theirs, and keeps their figures."""

import dataclasses
import functools
import hashlib
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tensortriage.api import EngineError, EngineSpec, Feed, Model
from tensortriage.envelope.sdk import (
    CENTRE,
    CORRECTLY_ROUNDED,
    HealthyValues,
    Iteration,
    Kind,
    Lab,
    feeds_that_run,
    healthy_of,
    resolve,
    save,
    usable,
)
from tensortriage.model.sdk import output_parts
from tensortriage.sdk import UsageError, file_digests, versions
from tensortriage_fleet.baseline.figures import KeptTensor, figures_of
from tensortriage_fleet.baseline.measured import (
    Allowed,
    BaselineData,
    BaselineEngine,
    BaselineModel,
    Envelope,
    MeasuredTarget,
)
from tensortriage_fleet.baseline.request import MeasureRequest

SHORT = 12
"""Hexadecimal digits of the digest of a node or an input, which is compared with that of its own place only."""
TOLD = ("python", "tensortriage", "numpy", "onnx", "onnx_ir", "machine")
"""Versions that outputs may depend on in addition to the engine's own."""
PATIENCE_SECONDS = 60.0
Arrays = Mapping[str, np.ndarray]
Pick = Callable[[np.ndarray], np.ndarray]


def measure(request: MeasureRequest) -> MeasuredTarget:
    """Run a target on the data of a model, and return the figures of its outputs; its failure is a result.

    Raises:
        TriageError: For bad input, and an engine that cannot be used here.
    """
    model = Model.load(request.model)
    spec = usable(request.target, limits=request.limits)
    with Lab(limits=request.limits) as lab:
        fed = feeds_that_run(request.feeding, model, lab)
        data = BaselineData((), {feed.name: _input_digests(feed) for feed in fed})
        outputs: dict[str, dict[str, KeptTensor]] = {}
        problem, runs = "", []
        try:
            with lab.session(spec, model) as ask:
                for feed in fed:
                    runs.append(Iteration(ask(feed)))
                    picked = _picked(model, feed, runs[-1].tensors)
                    outputs[feed.name] = {name: figures_of(pick(array)) for name, pick, array in picked}
        except EngineError as error:
            outputs, problem = {}, error.message
    if request.output is not None and outputs:
        save(request.output, [(str(spec), runs)], kind=Kind.OUTPUTS)
    facts = BaselineModel(str(request.model), model.fingerprint, node_digests(model))
    return MeasuredTarget(facts, data, _engine_facts(request.target, spec), _versions(spec), outputs, problem)


def measure_envelope(request: MeasureRequest) -> Envelope:
    """Evaluate a model on its data as healthy engines do, and return its outputs and how far off a target may be.

    Raises:
        TriageError: For bad input, and an engine that cannot be used here.
    """
    model = Model.load(request.model)
    target = usable(request.target, limits=request.limits)
    healthy = healthy_of(model, target)
    specs = {CENTRE: CORRECTLY_ROUNDED, **healthy.all}
    golden: dict[str, dict[str, KeptTensor]] = {}
    allowed: dict[str, dict[str, Allowed]] = {}
    with Lab(limits=request.limits) as lab:
        for feed in feeds_that_run(request.feeding, model, lab):
            try:
                values = {name: lab.outputs(spec, model, feed) for name, spec in specs.items()}
            except (EngineError, UsageError) as error:
                return Envelope({}, {}, error.message)
            every = HealthyValues(healthy, values)
            usual = HealthyValues(dataclasses.replace(healthy, taken=()), values)
            golden[feed.name], allowed[feed.name] = {}, {}
            for name, pick, array in _picked(model, feed, every.centre):
                output = name.partition("[")[0]
                golden[feed.name][name] = figures_of(pick(array))
                allowed[feed.name][name] = _allowed(usual, every, output, pick)
    return Envelope(golden, allowed)


def node_digests(model: Model) -> dict[str, str]:
    """Return a digest of each node of a model's main graph: its operator, attributes, inputs, and weights.

    Bodies of If, Loop and Scan are left out; `Model.fingerprint` has them.
    """
    graph = model.graph

    @functools.cache
    def content(weight: str) -> str:
        array = graph.weight(weight)
        data = repr(array.tolist()).encode() if array.dtype.kind == "O" else np.ascontiguousarray(array).tobytes()
        return f"{array.dtype} {array.shape} {hashlib.sha256(data).hexdigest()}"

    found = {}
    for node in graph.nodes:
        attributes = sorted((name, repr(value)) for name, value in node.attributes.items())
        weights = [content(name) for name in (*node.inputs, *node.outputs) if name in graph.constants]
        text = repr((node.domain, node.op_type, attributes, node.inputs, node.outputs, weights))
        found[node.name] = f"{node.op_type} {hashlib.sha256(text.encode()).hexdigest()[:SHORT]}"
    return found


def _picked(model: Model, feed: Feed, outputs: Arrays) -> Iterator[tuple[str, Pick, np.ndarray]]:
    """Yield every output, and every part that the graph puts one together of, as name, pick and the whole array."""
    parts = output_parts(model, feed.tensors)
    for output in model.outputs:
        if output.name not in outputs:
            continue
        array = np.asarray(outputs[output.name])
        yield output.name, np.asarray, array
        for part in parts:
            if part.output == output.name and part.where.shape == array.shape:
                yield part.name, part.of, array


def _allowed(usual: HealthyValues[Arrays], every: HealthyValues[Arrays], output: str, pick: Pick) -> Allowed:
    limit, freedoms = usual.limit(output, pick), every.limit(output, pick)
    known = limit.basis.value != "noise" and np.isfinite(limit.error)
    free = float(f"{freedoms.error:.4g}") if freedoms.error > limit.error else None
    return Allowed(float(f"{limit.error:.4g}") if known else None, free, limit.basis.value)


def _input_digests(feed: Feed) -> dict[str, str]:
    return {name: Feed("", {name: array}, feed.origin).digest[:SHORT] for name, array in sorted(feed.tensors.items())}


def _engine_facts(text: str, spec: EngineSpec) -> BaselineEngine:
    engine = resolve(spec)
    parsed = EngineSpec.parse(text)
    options = {name: word for name, word in parsed.options.items() if name != "worker"}
    file = parsed.options.get("file", "")
    return BaselineEngine(
        str(parsed.with_options(options)),
        engine.precision.value,
        engine.hardware.value,
        engine.engine.availability().device,
        {Path(name).name: digest[:SHORT] for name, digest in file_digests([file] if file else []).items()},
    )


def _versions(spec: EngineSpec) -> dict[str, str]:
    known = {name: version for name, version in versions().items() if name in TOLD}
    available = resolve(spec).engine.availability()
    there = _version_there(spec.options["worker"], spec.name) if "worker" in spec.options else available.version
    return {**known, "engine": there, "processor": _processor()}


def _version_there(python: str, package: str) -> str:
    """Return the version of a package in another Python of this machine; empty if unknown."""
    code = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    try:
        command: Sequence[str] = [os.path.expanduser(python), "-I", "-c", code, package]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _processor() -> str:
    """Return the name of the processor from Linux; empty elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
