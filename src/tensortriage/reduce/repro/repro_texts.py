"""The texts of a repro: ``README.md`` for anyone, ``issue.md`` for the tracker of PyTorch's exporter."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from tensortriage.engines.spec import EngineSpec
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.reduce.failure import Failure, FailureKind
from tensortriage.reduce.repro.module_beside import MODULE_FILES, ModuleBeside
from tensortriage.reduce.repro.repro_case import Repro
from tensortriage.reduce.repro.trial import PackTrial
from tensortriage.values.printable import printable
from tensortriage.values.text import enumeration, some

_MOST_NUMBERS = 5
_ENDS = {
    FailureKind.BUILD_FAILED: "not built",
    FailureKind.RUN_FAILED: "fails to run",
    FailureKind.CRASH: "crash",
    FailureKind.HANG: "hang",
    FailureKind.OUT_OF_MEMORY: "out of memory",
}


@frozen_dataclass
class TextFacts:
    """Facts for the texts of a pack.

    Attributes:
        target: Spec of the engine that fails.
        versions: Versions of the packages installed here.
        local: How the case fails.
        exported_wrong: The exporter's mistake, when it and not the engine is to blame: the expected outputs are
            PyTorch's then.
        module: The PyTorch module that the nodes were exported from, cut out; None for none.
        without_module: Why there is none, where one was looked for.
        command: How the engine's own command runs the model; empty where it has none.
    """

    target: EngineSpec
    versions: Mapping[str, str]
    local: Failure
    exported_wrong: str = ""
    module: ModuleBeside | None = None
    without_module: str = ""
    command: str = ""


def readme(
    model: Model, told: TextFacts, trial: PackTrial | None = None, needs: Sequence[str] = ("numpy", "the engine")
) -> str:
    """Return the text of ``README.md``, with the outcome of a trial, if any.

    Args:
        model: The piece.
        told: Facts for the text.
        trial: Trial of the pack.
        needs: Packages that it imports.
    """
    module, exported_wrong = told.module, told.exported_wrong
    target = spec_in_pack(told.target)
    # Names of a model go into indented blocks, where Markdown means nothing by them.
    nodes = "\n".join("    " + printable(f"{node.op_type} {node.name}") for node in model.graph.nodes)
    command = f"triage run model.onnx --target {shlex.quote(target)} --inputs test_data_set_0"
    title, expected = _title(model, told), "the reference"
    what = told.local.describe()
    if exported_wrong:
        title, expected = "An exported model that differs from its PyTorch network", "PyTorch"
        what = f"{exported_wrong}; {what}"
    text = (
        f"# {title}\n\n    {printable(what)}.\n\n"
        f"`test_data_set_*` holds inputs and the expected outputs (computed by {expected}).\n\n"
        f"    python repro.py\n\n"
        f"needs {enumeration(needs)}; exit code 0: it does not fail here, 1: it fails again, 2: it cannot be run "
        f"here; the output names what is missing. `--engine onnxruntime:CUDAExecutionProvider` runs another engine. "
        f"With TensorTriage:\n\n    {printable(command)}\n\n"
    )
    if told.command:
        own = "\n".join(f"    {printable(line)}" for line in told.command.splitlines())
        text += f"The engine's own command line:\n\n{own}\n\n"
    if module is not None:
        text += f"## In PyTorch\n\n    {printable(module.label)}\n\n{_anew(module, bool(exported_wrong))}\n\n"
        text += f"{module.contents}\n"
    elif told.without_module:
        text += f"## In PyTorch\n\nThe module was not cut out:\n\n    {printable(told.without_module)}\n\n"
    return f"{text}## Nodes\n\n{nodes}\n\n{_versions(told)}{_seen(trial)}"


def _title(model: Model, told: TextFacts) -> str:
    """Return the failing operators and the engine, without Markdown syntax."""
    kinds = [*dict.fromkeys(node.op_type for node in model.graph.nodes if node.op_type.isidentifier())]
    operators = some(kinds, 3) or "an operator"
    file = told.target.options.get("file")
    return (
        f"{operators}: {_ENDS.get(told.local.kind, 'wrong results')} on {Path(file).name if file else told.target.name}"
    )


def spec_in_pack(spec: EngineSpec) -> str:
    """Return the spec of an engine as written next to the pack: nothing of it is a path of this machine."""
    options = {key: value for key, value in spec.options.items() if key != "worker"}
    files = {key: f"engine/{Path(value).name}" for key, value in options.items() if Path(value).is_file()}
    return str(EngineSpec(spec.name, {**options, **files}))


def _seen(trial: PackTrial | None) -> str:
    """Return the result of the pack's trial, in words."""
    if trial is None:
        return ""
    if not trial.printed:
        return f"\n## Tried\n\n    {printable(trial.otherwise or f'failed again in {trial.place}')}\n"
    ended = f"not as it should, {trial.otherwise}" if trial.otherwise else "exit code 1"
    lines = "\n".join(f"    {printable(line)}" for line in trial.printed.splitlines())
    return f"\n## Seen in {trial.place}\n\n    {printable(ended)}\n{lines}\n"


def _anew(module: ModuleBeside, exported_wrong: bool) -> str:
    """Return in a sentence the meaning of the module's result when it is exported again."""
    if module.anew is None:
        why = printable(module.told)
        return f"It could not be exported again here, so that `repro.py` judges the nodes of the file:\n\n    {why}"
    if exported_wrong and not module.anew:
        return (
            f"Exported again by {module.framework} it is right: the file was changed after its export, or another "
            "version of the exporter wrote it. `repro.py` judges the nodes of the file."
        )
    if exported_wrong:
        return f"Exported again by {module.framework} it is wrong again; `repro.py` exits 0 once the exporter is fixed."
    again = "fails again" if module.anew else "is right: the fault needs the file as it is"
    return f"Exported again by {module.framework} and run on the engine it {again}."


def issue(repro: Repro, told: TextFacts) -> str:
    """Return the text of ``issue.md``, for the tracker of the exporter that wrote a model wrong."""
    module = told.module
    export = _EXPORT if module is None else module.export
    graph = repro.model.graph
    nodes = "\n".join("    " + printable(_call(graph, node)) for node in graph.nodes)
    parts = [
        f"# {export}: the exported nodes compute something else than PyTorch",
        f"    {printable(told.exported_wrong)}\n    {printable(told.local.describe())}",
    ]
    if module is not None:
        code = "\n".join("    " + printable(line) for line in module.code.splitlines())
        parts.append(f"## In PyTorch\n\n    {printable(module.label)}\n\n{code}")
    parts.append(f"## In ONNX\n\n{nodes}")
    if module is not None and module.anew:
        parts.append(
            f"`python repro.py` (attached, with `{'`, `'.join(_ATTACHED)}`) exports the module, runs it on "
            f"{told.target.name} and exits 1:\n\n    {printable(module.told)}"
        )
    parts.append(f"## Expected\n\n{_expected(repro)}")
    return "\n\n".join(parts) + "\n\n" + _versions(told)


_EXPORT = "torch.onnx.export(dynamo=True)"
_ATTACHED = (*MODULE_FILES, "model.onnx", "test_data_set_0")


def _call(graph: Graph, node: Node) -> str:
    """Return a node as a call: results, operator, arguments (single numbers as such), attributes that are plain."""
    given = [
        str(graph.weight(name).item()) if name in graph.initializers and graph.weight(name).size == 1 else name
        for name in node.inputs
    ]
    plain = [
        f"{key}={f'{value:g}' if isinstance(value, float) else value}"
        for key, value in node.attributes.items()
        if isinstance(value, (int, float, str, tuple))
    ]
    return f"{', '.join(node.outputs)} = {node.op_type}({', '.join([*given, *plain])})"


def _expected(repro: Repro) -> str:
    lines = []
    for name, array in repro.samples[0].outputs.items():
        numbers = ", ".join(map(str, array.ravel()[:_MOST_NUMBERS]))
        lines.append("    " + printable(f"{name} {array.dtype} {list(array.shape)}: {numbers} ..."))
    return "\n".join(lines)


def _versions(told: TextFacts) -> str:
    known = {**told.versions, **(told.module.versions if told.module else {})}
    return "## Versions\n\n" + "\n".join(f"- {name} {version}" for name, version in known.items()) + "\n"
