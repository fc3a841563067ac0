"""An adapter's session in the terms of the model: its inputs and outputs under the model's names, and its plan."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tensortriage.engines.base import Plan
from tensortriage.engines.process.given_files import Arrange, HeldOtherwise
from tensortriage.engines.process.input_names import matched_inputs
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec


@frozen_dataclass
class SessionEnds:
    """The inputs and outputs of a session.

    Attributes:
        inputs: Inputs of a run.
        outputs: Outputs of a run.
        fed_as: The engine's name of each input that it has.
        held: Their form in a given file, where that is another.
    """

    inputs: Sequence[ValueSpec]
    outputs: Sequence[ValueSpec]
    fed_as: Mapping[str, str]
    held: HeldOtherwise | None = None


@frozen_dataclass
class ModelTerms:
    """How the report of an adapter's session is put in the terms of the model.

    Attributes:
        declared: Finds the inputs and outputs of a model where the adapter's session does not report them.
        declared_inputs: Finds the inputs that the model declares, for engines that rename or drop some.
        arrange: Finds how inputs and outputs of the adapter's session, those of a given file, are the model's.
        translate: Turns the adapter's plan, given the model, into the one to show.
    """

    declared: Callable[[Path], tuple[Sequence[ValueSpec], Sequence[ValueSpec]]] | None = None
    declared_inputs: Callable[[Path], Sequence[ValueSpec]] | None = None
    arrange: Arrange | None = None
    translate: Callable[[Plan, Path], Plan] = lambda plan, _: plan

    def ends(self, model: Path, report: Mapping[str, Any]) -> SessionEnds:
        """Return the inputs and outputs of a session that an adapter built of a model."""
        inputs, outputs = _specs(report["inputs"]), _specs(report["outputs"])
        if self.declared is not None and (inputs is None or outputs is None):
            known_inputs, known_outputs = self.declared(model)
            inputs = known_inputs if inputs is None else inputs
            outputs = known_outputs if outputs is None else outputs
        inputs, outputs = inputs or (), outputs or ()
        fed_as = {spec.name: spec.name for spec in inputs}
        if self.declared_inputs is not None:
            names = {row["name"]: row.get("names", ()) for row in report["inputs"] or ()}
            wanted, own = self.declared_inputs(model), {spec.name: spec for spec in inputs}
            matched = matched_inputs([spec.name for spec in wanted], names)
            if matched is not None:
                fed_as = matched
                inputs = [
                    dataclasses.replace(own[fed_as[spec.name]], name=spec.name) if spec.name in fed_as else spec
                    for spec in wanted
                ]
        held = self.arrange(inputs, outputs) if self.arrange is not None else None
        return SessionEnds(tuple(inputs), tuple(outputs), fed_as, held)


AS_REPORTED = ModelTerms()


def _specs(rows: Sequence[Mapping[str, Any]] | None) -> Sequence[ValueSpec] | None:
    if rows is None:
        return None
    return tuple(
        ValueSpec(
            row["name"],
            None if row["dtype"] is None else DType.parse(row["dtype"]),
            None if row["shape"] is None else tuple(row["shape"]),
        )
        for row in rows
    )
