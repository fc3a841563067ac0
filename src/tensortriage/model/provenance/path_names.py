"""Names that are paths: of modules in PyTorch's older exporter, of name scopes in Keras and TensorFlow.

A path of modules is written with dots wherever it is shown; users may write it with slashes, and with wildcards.
"""

import fnmatch
import itertools
import re
from collections.abc import Iterable, Sequence

_CALLS = re.compile(r"(Stateful)?PartitionedCall(_\d+)?")  # TensorFlow's wrapper around a whole saved model


def module_of_name(name: str) -> str:
    """Return the module in a node name that is a path; empty when it is none.

    Example:
        >>> module_of_name("/layer1/layer1.0/conv1/Conv")
        'layer1.0.conv1'
        >>> module_of_name("StatefulPartitionedCall/sequential/dense/MatMul;sequential/dense/BiasAdd")
        'sequential.dense'
    """
    first = name.partition(";")[0]  # TFLite joins the names of the nodes that it fused
    steps = [step for step in first.strip("/").split("/")[:-1] if step and not _CALLS.fullmatch(step)]
    return ".".join(nested_steps(steps))


def nested_steps(paths: Iterable[str]) -> list[str]:
    """Turn paths of nested modules, in full or relative to the one around, into the step that each adds.

    Example:
        >>> nested_steps(["", "encoder", "encoder.layer.3"])
        ['encoder', 'layer.3']
    """
    steps: list[str] = []
    around = ""
    for path in paths:
        if path and path != around:
            steps.append(path.removeprefix(around + ".") if around else path)
            around = path
    return steps


def dotted(path: str) -> str:
    """Return a module path as it is shown, whether it was written with slashes or dots."""
    return path.strip("/.").replace("/", ".")


def modules_matching(pattern: str, modules: Iterable[str]) -> frozenset[str]:
    """Return the modules that a path or a wildcard pattern means, with all that are inside them.

    Args:
        pattern: E.g. ``encoder.layer.3``, ``encoder/layer.3`` or ``encoder.layer.*.output``.
        modules: Dotted paths to choose from.
    """
    wanted = dotted(pattern)
    if not wanted:
        return frozenset()
    return frozenset(
        module
        for module in modules
        if module == wanted
        or module.startswith(wanted + ".")
        or fnmatch.fnmatchcase(module, wanted)
        or fnmatch.fnmatchcase(module, wanted + ".*")
    )


def common_module(modules: Sequence[str]) -> str:
    """Return the innermost module in which all modules lie.

    Example:
        >>> common_module(["encoder.layer.0.attn.q", "encoder.layer.0.attn"])
        'encoder.layer.0.attn'
    """
    paths = [module.split(".") for module in modules if module]
    if len(paths) < len(modules):  # one of them is the network itself
        return ""
    shared = itertools.takewhile(lambda steps: len(set(steps)) == 1, zip(*paths, strict=False))
    return ".".join(steps[0] for steps in shared)


def common_pattern(modules: Sequence[str]) -> str:
    """Return the one path that copies of a module have, ``*`` for the steps that differ; empty when they are unlike.

    Example:
        >>> common_pattern(["encoder.layer.0.mlp.act", "encoder.layer.1.mlp.act"])
        'encoder.layer.*.mlp.act'
    """
    paths = [module.split(".") for module in modules]
    if not paths or len({len(path) for path in paths}) != 1:
        return ""
    steps = [steps[0] if len(set(steps)) == 1 else "*" for steps in zip(*paths, strict=True)]
    return ".".join(steps) if steps[-1] != "*" or len(steps) > 1 else ""
