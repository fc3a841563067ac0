"""How a pack calls its engine, without this package: by the engine's own functions, or by the adapter that travels.

Plain ONNX Runtime and OpenVINO are a few lines. Any other engine of a worker is called by the worker's own adapter,
which needs numpy and the engine alone: its build requests are recorded here and repeated there. That holds for a user's
script, which travels with the modules next to it that it imports.
"""

import ast
import contextlib
import dataclasses
import importlib.util
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tensortriage.engines.base import Limits
from tensortriage.engines.process.asked_builds import AskedBuild, heard_builds
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import TriageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.model import Model
from tensortriage.reduce.repro.repro_case import MODEL_NAME, Repro
from tensortriage.runs.lab import Lab
from tensortriage_worker.converters import CONVERTED_BY
from tensortriage_worker.serve import ADAPTERS

ENGINE = "engine"
"""Folder of a pack with the code that calls its engine."""
_WORKER = "tensortriage_worker"


@frozen_dataclass
class EngineHalf:
    """The half of a pack that calls its engine.

    Attributes:
        code: Python that defines ``opened(path)``, which gives ``run(inputs, names)``.
        files: Contents of the folder `ENGINE`, by path in it.
        command: The engine's own command line for the build or the test; empty where it has none.
        any_model: Whether it takes other models than that of the pack.
    """

    code: str
    files: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    command: str = ""
    any_model: bool = True


def engine_half(spec: EngineSpec, repro: Repro, limits: Limits) -> EngineHalf:
    """Return how a pack calls an engine; it is built and run once where its adapter has to travel."""
    options = dict(spec.options)
    if spec.name == "onnxruntime" and not set(options) - {"optimization"}:
        return EngineHalf(_onnxruntime(options.get("optimization", "all")), command="onnx_test_runner -e cpu .")
    if spec.name == "openvino" and not set(options) - {"precision"}:
        hint = _HINTS.get(options.get("precision", ""))
        precision = f" -infer_precision {hint}" if hint else ""
        config = repr({"INFERENCE_PRECISION_HINT": hint}) if hint else "{}"
        command = f"benchmark_app -m {MODEL_NAME} -d CPU -niter 1{precision}"
        return EngineHalf(_OPENVINO.replace("CONFIG", config), command=command)
    return _travelling(spec, repro, limits) or EngineHalf(_TRIAGE.replace("TARGET", repr(str(spec))))


def _travelling(spec: EngineSpec, repro: Repro, limits: Limits) -> EngineHalf | None:
    """Return the half of an engine whose adapter travels; None for one that needs this package."""
    if spec.name == "onnxruntime" and "worker" not in spec.options:
        spec = spec.with_options({**spec.options, "worker": sys.executable})
    heard: list[tuple[AskedBuild, dict[str, bytes]]] = []
    with tempfile.TemporaryDirectory(prefix="triage-") as folder:
        own = repro.model.save(Path(folder) / MODEL_NAME)

        def hear(build: AskedBuild) -> None:
            heard.append((build, _files_of(build, own)))

        with heard_builds(hear), Lab(limits=limits) as lab:
            with contextlib.suppress(TriageError), lab.session(spec, Model.load(own), sequence=True) as run:
                run(repro.samples[0].inputs)
            commands = [*lab.tally.commands]
    if len(heard) != 1:  # an engine of this process, or one that is built again for every shape
        return None
    build, files = heard[0]
    module = ADAPTERS.get(build.adapter, build.adapter)
    names = {key: Path(build.options[key]).name for key in _named_files(build)}
    fed_as = build.fed_as or {spec.name: spec.name for spec in repro.model.inputs}
    renamed = {spec.name: fed_as.get(spec.name, "") for spec in repro.model.inputs}
    renamed = {name: engine for name, engine in renamed.items() if engine != name}
    code = _ADAPTER
    for word, value in {
        "ADAPTER": module, "OPTIONS": {**build.options, **names}, "NAMED": sorted(names), "FED_AS": renamed,
    }.items():  # fmt: skip
        code = code.replace(f"<{word}>", repr(value))
    model = f'HERE / "{ENGINE}" / "{MODEL_NAME}" if path == HERE / "{MODEL_NAME}" else path'
    code = code.replace("<MODEL>", model if MODEL_NAME in files else "path")
    if converted_by := build.info.get(CONVERTED_BY):
        commands.append(str(converted_by))
    carried = {path: text.encode() for path, text in _modules(module).items()}
    return EngineHalf(code, {**carried, **files}, "\n".join(commands), any_model="declared" not in build.options)


def _named_files(asked: AskedBuild) -> list[str]:
    """Return the options that name files; of a script's own, those that do so."""
    own = asked.options.items() if asked.adapter == "script" else ()
    return [*asked.files, *(key for key, value in own if key not in asked.files and Path(value).is_file())]


def _files_of(asked: AskedBuild, own: Path) -> dict[str, bytes]:
    """Return the files that a build reads: files named by options, and the model unless it is the pack's own."""
    files = {Path(asked.options[key]).name: Path(asked.options[key]).read_bytes() for key in _named_files(asked)}
    if asked.adapter == "script":
        files |= _beside(Path(asked.options["file"]))
    if asked.model.read_bytes() != own.read_bytes():
        with tempfile.TemporaryDirectory(prefix="triage-") as folder:
            Model.load(asked.model).save(Path(folder) / MODEL_NAME)
            files |= {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    return files


def _beside(script: Path) -> dict[str, bytes]:
    """Return the modules and packages next to a script that it imports, and those that they import."""
    found: dict[str, bytes] = {}
    pending = [script]
    while pending:
        for root in {name.partition(".")[0] for name in imported_names(pending.pop().read_text(errors="replace"))}:
            package, module = script.parent / root, script.parent / f"{root}.py"
            for path in [*(sorted(package.rglob("*.py")) if package.is_dir() else ()), module]:
                inside = str(path.relative_to(script.parent))
                if inside not in found and path != script and path.is_file():
                    found[inside] = path.read_bytes()
                    pending.append(path)
    return found


def imported_names(source: str, package: str = "") -> Iterator[str]:
    """Yield the full names of all imports in Python source; nothing for other text.

    Args:
        source: The text.
        package: The package of relative imports.
    """
    with contextlib.suppress(SyntaxError, ValueError):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                around = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                module = ".".join([*around, *([node.module] if node.module else [])])
                yield module
                yield from (f"{module}.{alias.name}" for alias in node.names)


def _modules(adapter: str) -> dict[str, str]:
    """Return an adapter's module with those of its packages that it needs, as text by path."""
    roots = (f"{_WORKER}.", f"{adapter.rpartition('.')[0]}.")
    found: dict[str, str] = {}
    pending = [adapter, f"{_WORKER}.adapter", f"{_WORKER}.exchange"]
    while pending:
        name = pending.pop()
        with contextlib.suppress(ImportError):
            spec = importlib.util.find_spec(name)
            path = f"{name.replace('.', '/')}.py"
            if spec is None or spec.origin is None or spec.submodule_search_locations or path in found:
                continue
            found[path] = Path(spec.origin).read_text(encoding="utf-8")
            inner = imported_names(found[path], name.rpartition(".")[0])
            pending += [other for other in inner if other.startswith(roots)]
    around = {str(parent / "__init__.py") for path in found for parent in Path(path).parents if parent.name}
    return {**dict.fromkeys(sorted(around), ""), **found}


def _onnxruntime(optimization: str) -> str:
    levels = {"none": "DISABLE_ALL", "basic": "ENABLE_BASIC", "extended": "ENABLE_EXTENDED", "layout": "ENABLE_LAYOUT"}
    return _ONNXRUNTIME.replace("LEVEL", levels.get(optimization, "ENABLE_ALL"))


_HINTS = {"fp32": "f32", "f32": "f32", "bf16": "bf16", "fp16": "f16", "f16": "f16"}

_ONNXRUNTIME = """def opened(path):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_LEVEL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda inputs, names: dict(zip(names, session.run(names, inputs)))
"""

_OPENVINO = """def opened(path):
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(core.read_model(str(path)), "CPU", CONFIG)

    def run(inputs, names):
        results = compiled(inputs)
        return {name: results[name] for name in names}

    return run
"""

_ADAPTER = '''OPTIONS = <OPTIONS>
NAMED = <NAMED>  # options whose values are files in the folder "engine"
FED_AS = <FED_AS>  # the engine's names of inputs that it renamed; nothing for those that it dropped


def opened(path):
    """Build a model as it was built where it failed, by the code in the folder "engine"."""
    sys.path.append(str(HERE / "engine"))
    from tensortriage_worker.adapter import AdapterError, AdapterFailure
    from tensortriage_worker.exchange import Item
    from tensortriage_worker.shards import label_of

    options = {key: str(HERE / "engine" / value) if key in NAMED else value for key, value in OPTIONS.items()}
    try:
        adapter = importlib.import_module(<ADAPTER>)
        session = adapter.compile(<MODEL>, options)
    except AdapterError as error:
        if error.kind is AdapterFailure.MISSING:
            raise ImportError(error.message)
        raise

    def run(inputs, names):
        named = {FED_AS.get(name, name): array for name, array in inputs.items() if FED_AS.get(name, name)}
        fed = {name: Item(name, array, LABELS.get(name) or label_of(array)) for name, array in named.items()}
        return {item.name: item.array for item in session.run(fed)}

    return run
'''

_TRIAGE = '''def opened(path):
    """Build a model on an engine that is part of TensorTriage, which this needs."""
    from tensortriage.engines.registry import create
    from tensortriage.engines.spec import EngineSpec

    spec = EngineSpec.parse(TARGET)
    session = create(spec).compile(path, spec.options)
    return lambda inputs, names: session.run(inputs)
'''
