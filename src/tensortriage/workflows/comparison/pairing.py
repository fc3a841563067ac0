"""Which output of one participant is compared with which of another; what cannot be paired is an error."""

import dataclasses
from collections.abc import Collection, Mapping

import numpy as np

from tensortriage.compare.alignment.align import align, paired_by_value
from tensortriage.errors import DataError
from tensortriage.values.spec import ValueSpec

Arrays = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True, slots=True)
class Paired:
    """What the target has for each output of the reference.

    Attributes:
        outputs: The target's outputs under the names of the reference.
        renamed: Names of the reference that the target has under another name, told by their values; with that name.
        only_target: Names that the reference lacks.
        incompatible: Name to why it cannot be compared element by element.
    """

    outputs: dict[str, np.ndarray]
    renamed: Mapping[str, str]
    only_target: tuple[str, ...]
    incompatible: Mapping[str, str]


def paired(names: tuple[str, str], reference: Arrays, target: Arrays) -> Paired:
    """Pair outputs by name, and names that are missing by value.

    Args:
        names: How reference and target are called in an error.
        reference: Outputs of the reference.
        target: Outputs of the target.

    Raises:
        DataError: When the target lacks an output (``output-missing``).
    """
    outputs, renamed = dict(target), paired_by_value(reference, target)
    if renamed:
        outputs = {renamed.get(name, name): array for name, array in target.items()}
    alignment = align(*([ValueSpec.of(name, array) for name, array in side.items()] for side in (reference, outputs)))
    if alignment.only_reference:
        lacking = ", ".join(f"'{name}'" for name in alignment.only_reference[:5])
        raise DataError(
            f"{names[1]} has no output {lacking} that {names[0]} has",
            slug="output-missing",
            cure="compare the same model, or choose common tensors with --onnx-outputs",
        )
    incompatible = {problem.name: problem.reason for problem in alignment.incompatible}
    twins = {ours: theirs for theirs, ours in renamed.items()}
    return Paired(outputs, twins, tuple(alignment.only_target), incompatible)


def check_compatible(pair: Paired, reference: Arrays, target: str, *, flatten: bool, but: Collection[str] = ()) -> None:
    """Refuse outputs that cannot be compared element by element.

    Args:
        pair: What was paired.
        reference: Outputs of the reference.
        target: How the target is called.
        flatten: Whether outputs of equal size and other shape are compared flattened.
        but: Outputs that are not compared element by element.

    Raises:
        DataError: With slug ``output-incompatible``.
    """
    for name, reason in pair.incompatible.items():
        if name not in but and not (flatten and reference[name].size == pair.outputs[name].size):
            raise DataError(
                f"output '{name}' of {target} cannot be compared: {reason}",
                slug="output-incompatible",
                cure="check that both run the same model on the same feed",
            )
