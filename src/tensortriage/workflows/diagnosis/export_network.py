"""Exporting a PyTorch network into a case, so that a diagnosis can begin from the network alone."""

from pathlib import Path

from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.engines.torch.engine import TorchEngine
from tensortriage.errors import DataError
from tensortriage.inputs.files.data_file import Iteration, Kind
from tensortriage.inputs.files.save_data import save
from tensortriage.model.model import Model
from tensortriage.runs.case import Case

EXPORTERS = ("dynamo", "legacy")
"""PyTorch's exporters: of ``torch.export`` programs, and the older one of traces."""


def export_network(network: EngineSpec, folder: Path, *, exporter: str, limits: Limits) -> tuple[Path, Path]:
    """Write the ONNX model of a network and the inputs it was exported with into a case; return both paths.

    Args:
        network: Spec of the engine ``torch``, whose function gives example inputs.
        folder: Directory of the case.
        exporter: One of `EXPORTERS`.
        limits: Time and memory that the worker may take.

    Raises:
        UsageError: When there are no example inputs, or the case is no case.
        BuildFailed: When the exporter refuses the network.
        DataError: When the model takes another number of inputs than there are examples (``torch-inputs``).
    """
    with Case(folder) as case:
        place = case.folder / "network"
        place.mkdir(exist_ok=True)
        path = place / "model.onnx"
        examples = TorchEngine(limits=limits).export(network.options, path, exporter=exporter)
        names = [spec.name for spec in Model.load(path).inputs]
        if len(names) != len(examples):
            raise DataError(
                f"the exported model takes {len(names)} inputs, the example inputs hold {len(examples)} tensors",
                slug="torch-inputs",
                cure="give the inputs yourself with --inputs",
            )
        inputs = place / "inputs.npz"
        save(inputs, [("", [Iteration(dict(zip(names, examples, strict=True)))])], kind=Kind.INPUTS)
        return path, inputs
