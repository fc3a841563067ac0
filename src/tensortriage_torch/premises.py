"""Properties of a PyTorch network apart from its values: whether every instance and call is the same, and its weights.

Weights are compared by a few of their numbers; see `tensortriage_torch.worker.premises`.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkPremises:
    """A network made again and called again.

    Attributes:
        made_again: Relative differences of the weights that another call of the user's function gives, by name.
        state: Relative difference of two results on the same inputs and random numbers.
        random: Deviation with other random numbers.
        buffers: Buffers that calls change.
        module: The first innermost module with another result; empty for operations between modules.
        paths: All modules.
        ran: Those that the network calls on the inputs.
        shapes: Shapes of the weights of two dimensions or more, by name.
        samples: Elements of them; see the worker's `sample`.
        quantiles: Their `quantiles`.
        given: Inputs of the first innermost modules, by path.
        returned: Results of the last ones, by path.
        normalizing: Modules that normalize by stored statistics, and their classes.
        own: The network's results, in order, where those compute the statistics of their input instead.
    """

    made_again: Mapping[str, float]
    state: float
    random: float
    buffers: Sequence[str]
    module: str
    paths: frozenset[str]
    ran: frozenset[str]
    shapes: Mapping[str, tuple[int, ...]]
    samples: Mapping[str, np.ndarray]
    quantiles: Mapping[str, np.ndarray]
    given: Mapping[str, np.ndarray]
    returned: Mapping[str, np.ndarray]
    normalizing: Mapping[str, str]
    own: Sequence[np.ndarray]


def read_premises(told: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> NetworkPremises:
    """Return the worker's answer, with its arrays."""

    def under(prefix: str) -> dict[str, np.ndarray]:
        return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

    calls = told["calls"]
    buffers = tuple(map(str, calls.get("buffers", ())))
    differ = told["again"].get("differ", {})
    return NetworkPremises(
        made_again={str(name): float(error) for name, error in differ.items() if name not in buffers},
        state=float(calls.get("state", 0.0)),
        random=float(calls.get("random", 0.0)),
        buffers=buffers,
        module=str(calls.get("module", "")),
        paths=frozenset(map(str, told["paths"])),
        ran=frozenset(map(str, told.get("ends", {}).get("ran", ()))),
        shapes={str(name): tuple(map(int, shape)) for name, shape in told["shapes"].items()},
        samples=under("sample/"),
        quantiles=under("quantiles/"),
        given=under("given/"),
        returned=under("returned/"),
        normalizing={str(name): str(kind) for name, kind in told.get("statistics", {}).get("modules", {}).items()},
        own=tuple(under("own/").values()),
    )
