"""A PyTorch network's answers on one feed: its inner values by ONNX name, a part of it, itself in float64.

Questions go either to the session that has the network, or to a lab, which remembers the answers.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tensortriage.engines.sdk import Model
from tensortriage_torch.cut_module import CutModule, read_cut
from tensortriage_torch.operations import Operation, read_operation
from tensortriage_torch.premises import NetworkPremises, read_premises
from tensortriage_torch.traced_values import MOST_RETURNED, Trace, TracedValue, folded_modules, trace

Ask = Callable[..., tuple[Mapping[str, Any], Mapping[str, np.ndarray]]]
"""Asks a question with arguments by name; see `tensortriage.engines.capabilities.AnswersQuestions`."""


class TorchNetwork:
    """A network with one feed; every question may raise the errors of `IsolatedSession.answer`.

    Args:
        model: The ONNX model that was exported from it.
        ask: Asks it about the feed.

    Attributes:
        reason: Why values of single operations are not known; empty when they are, or were not requested.
    """

    def __init__(self, model: Model, ask: Ask) -> None:
        self.reason = ""
        self._model, self._ask = model, ask
        self._traces: dict[tuple[Operation, ...], Trace] = {}

    def about(self, ask: Ask) -> "TorchNetwork":
        """Return the same network with another feed; its trace is reused."""
        other = TorchNetwork(self._model, ask)
        other._traces = self._traces
        return other

    def captured(self, values: Sequence[str], *, operations: bool = True) -> Iterator[tuple[str, np.ndarray]]:
        """Run once and yield ``(value name, array)`` for those of the wanted values that the network is known to have.

        Args:
            values: Names of values of the ONNX model.
            operations: As for `trace`.
        """
        traced = self.trace(operations=operations)
        places = {name: traced.values.get(name, traced.folded.get(name, TracedValue())) for name in values}
        wanted = {
            name: {"fx_node": place.fx_node, "module": place.module, "given": place.given, "place": 0}
            for name, place in places.items()
            if place != TracedValue()
        }
        if wanted:
            answer, found = self._ask("values", wanted=wanted)
            self.reason = self.reason or str(answer.get("reason", ""))
            yield from found.items()

    def trace(self, *, operations: bool = True) -> Trace:
        """Return the network's value for each value of the model, as it is exported on this feed.

        Args:
            operations: Whether single operations count, for which the network is exported here; if not, only results of
                modules are known.
        """
        made: tuple[Operation, ...] = ()
        if operations:
            answer, _ = self._ask("program")
            self.reason = str(answer.get("reason", ""))
            made = tuple(read_operation(metadata) for metadata in answer["operations"])
        if made not in self._traces:
            self._traces[made] = trace(self._model, made)
        return self._traces[made]

    def returned(self, modules: Collection[str]) -> Mapping[str, np.ndarray]:
        """Return the results of modules, by path; none of those that are called several times, or never."""
        wanted = {path: {"fx_node": "", "module": path, "place": 0} for path in modules}
        return self._ask("values", wanted=wanted)[1] if wanted else {}

    def returned_each(self, modules: Collection[str]) -> Mapping[str, tuple[np.ndarray, ...]]:
        """Return the first tensors among the results of modules, by path, in the same way."""
        places = {f"{place}:{path}": (path, place) for path in modules for place in range(MOST_RETURNED)}
        wanted = {name: {"fx_node": "", "module": path, "place": place} for name, (path, place) in places.items()}
        found = self._ask("values", wanted=wanted)[1] if wanted else {}
        return {
            path: tuple(found[name] for name, (own, _) in places.items() if own == path and name in found)
            for path in modules
        }

    def folded(self) -> Mapping[str, tuple[str, ...]]:
        """Return modules of the file with the operations folded into their nodes; see `folded_modules`."""
        answer, _ = self._ask("calls")
        return folded_modules(self._model.graph, [(str(path), str(source)) for path, source in answer["calls"]])

    def premises(self) -> NetworkPremises:
        """Return facts that make any comparison with the network void: made again, called again, its weights."""
        return read_premises(*self._ask("premises"))

    def cut(self, part: Mapping[str, Any]) -> CutModule | str:
        """Return a part of the network as a module, with the values that it has on the feed; why not, if it cannot be.

        Args:
            part: Words of `part_until` or `part_of`.
        """
        answer, arrays = self._ask("cut", **part)
        return read_cut(answer, arrays) if "code" in answer else str(answer["reason"])

    def in_float64(self) -> Mapping[str, np.ndarray]:
        """Return the network's results on the feed in float64; nothing if it cannot, as with constants of one type."""
        return self._ask("float64")[1]

    def modules(self) -> tuple[Mapping[str, str], bool]:
        """Return how PyTorch prints modules that hold no others, by path, and whether one is in training mode."""
        answer, _ = self._ask("modules")
        return {str(path): str(text) for path, text in answer["modules"].items()}, bool(answer.get("training"))
