"""A part of a PyTorch network as a self-contained module: code, weights, and its inputs."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tensortriage_torch.traced_values import Trace, TracedValue


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CutModule:
    """A part of a network.

    Attributes:
        code: Its ``forward``, as PyTorch prints operations of an exported program.
        weights: Parameters, buffers and constants that it uses, by name.
        inputs: Its values in the network, by name, in the order of its parameters.
        outputs: Its results in PyTorch, by name, in the order in which it returns them.
        operators: Its operators, in the order of their calls.
        dtypes: PyTorch's word for the type of each, ``weight/NAME``, ``input/NAME`` or ``output/NAME``.
        versions: Versions of PyTorch and of its exporter's packages.
    """

    code: str
    weights: Mapping[str, np.ndarray]
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]
    operators: Sequence[str]
    dtypes: Mapping[str, str]
    versions: Mapping[str, str]


def read_cut(told: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> CutModule:
    """Return the part that the worker cut out.

    Args:
        told: The worker's description of the module: code, names, dtypes, versions.
        arrays: Weights, inputs and outputs by name, ``weight/``, ``input/`` or ``output/`` in front of it.
    """

    def under(prefix: str, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        found = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        return found if names is None else {name: found[name] for name in names}

    return CutModule(
        code=str(told["code"]),
        weights=under("weight/"),
        inputs=under("input/", told["inputs"]),
        outputs=under("output/", told["outputs"]),
        operators=tuple(map(str, told["operators"])),
        dtypes=dict(told["dtypes"]),
        versions=dict(told["versions"]),
    )


def part_until(trace: Trace, ends: Collection[str], known: Collection[str]) -> Mapping[str, Any]:
    """Return the worker's words for the operations that make values of known ones, both by ONNX name."""

    def places(names: Collection[str]) -> list[Mapping[str, str]]:
        found = [trace.values.get(name, TracedValue()) for name in names]
        return [dataclasses.asdict(place) for place in found if place != TracedValue()]

    return {"ends": places(ends), "known": places([name for name in known if name not in ends])}


def part_of(trace: Trace, fx_nodes: Collection[str], modules: Collection[str]) -> Mapping[str, Any]:
    """Return the worker's words for the operations of a file, or for whole modules where it does not name them."""
    nodes = [trace.operations[name].name for name in fx_nodes if name in trace.operations]
    return {"nodes": nodes, "modules": [] if nodes else list(modules)}
