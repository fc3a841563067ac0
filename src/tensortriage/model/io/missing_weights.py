"""Weights that are never read: a model loaded without its external data keeps the references to them.

Structure, types and shapes are known, so a model can be cut, sorted and looked into where its weights are not at hand.
What is saved refers to the same bytes of the same files as before.
"""

from typing import Any, NoReturn

import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.ir.display_names import quoted


class AbsentTensor(ir.ExternalTensor):
    """A tensor that has a type, a shape and a place in a file that is never opened; asking for numbers is an error."""

    @classmethod
    def of(cls, tensor: ir.ExternalTensor) -> "AbsentTensor":
        """Return the tensor as one that is never read."""
        return cls(
            tensor.location,
            tensor.offset,
            tensor.length,
            tensor.dtype,
            shape=tensor.shape,
            name=tensor.name,
            doc_string=tensor.doc_string,
            metadata_props=dict(tensor.metadata_props),
        )

    def numpy(self) -> Any:
        """Raise a ModelError (slug ``weight-ignored``), as everything does that asks for numbers."""
        self._refuse()

    def tobytes(self) -> bytes:
        """Raise; see `numpy`."""
        self._refuse()

    def tofile(self, file: object) -> None:
        """Raise; see `numpy`."""
        self._refuse()

    def __array__(self, dtype: Any = None) -> Any:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ModelError(
            f"the values of {quoted(self.name)} are needed, but external data are ignored",
            slug="weight-ignored",
            cure="leave out --ignore-external-data",
        )


def absent_weights(model: ir.Model) -> bool:
    """Say whether a model was loaded without its external data, as far as its main graph's initializers tell."""
    return any(isinstance(value.const_value, AbsentTensor) for value in model.graph.initializers.values())
