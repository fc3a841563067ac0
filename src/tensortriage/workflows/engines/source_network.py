"""The network behind a model: the one that ``--torch`` names, or a reference that is that network."""

from pathlib import Path

from tensortriage.engines.base import Limits
from tensortriage.engines.capabilities import RunsNetworks
from tensortriage.engines.registry import create, resolve
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import UsageError
from tensortriage.runs.case import Case


def network_behind(reference: EngineSpec | None) -> EngineSpec | None:
    """Return the network that a reference is, as it was written; None for others.

    Where such a reference and the file disagree, any of exporter, engine and network may be wrong. So it is treated as
    a network that the user named for that question alone (``--torch``).
    """
    if reference is None:
        return None
    engine = resolve(reference).engine
    return reference.with_options(engine.as_written(reference.options)) if isinstance(engine, RunsNetworks) else None


def export_network(network: EngineSpec, folder: Path, *, exporter: str, limits: Limits) -> tuple[Path, Path]:
    """Write the ONNX model of a network and the inputs it was exported with into a case; return both paths.

    Args:
        network: Spec of an engine that runs networks; this one gives example inputs.
        folder: Directory of the case.
        exporter: A word of that engine.
        limits: Time and memory that the export may take.

    Raises:
        UsageError: When there are no example inputs, the engine runs no networks (``network-engine``), or the case is
            no case.
        BuildFailed: When the exporter refuses the network.
        DataError: When its arguments do not fit the model's inputs.
    """
    engine = create(network, limits=limits)
    if not isinstance(engine, RunsNetworks):
        raise UsageError(
            f"engine '{network.name}' runs models, not the networks that they are exported from",
            slug="network-engine",
            cure="name a network: torch:FILE.py:FUNCTION",
        )
    with Case(folder) as case:
        return engine.export(network.options, case.folder / "network", exporter=exporter)
