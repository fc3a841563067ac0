"""How much of well-known architectures goes by the names of PyTorch modules, and is compared with PyTorch's values.

    python bench/pytorch.py [--both] [NAME...]

Needs PyTorch and transformers. Per architecture (small, random weights) it exports the network as users do and asks
``diagnose --torch`` on ONNX Runtime. Printed are the share of ONNX nodes that carry a module path, the share of modules
with compared values, and the verdict, which is to be ``match`` or ``rounding``. With --both the older exporter too.
"""

import sys
import tempfile
import time
from pathlib import Path

from networks import names, short

from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import TriageError
from tensortriage.model.model import Model
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.engines.source_network import export_network
from tensortriage.workflows.requests import DiagnoseRequest
from tensortriage_torch.export import EXPORTERS

NETWORKS = Path(__file__).resolve().parent / "networks" / "known.py"
QUESTION = "does the exported model compute the same results as the network?"


def measured(name: str, exporter: str) -> str:
    """Return one line of figures."""
    network = f"torch:{NETWORKS}:{name}"
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        case = Path(folder) / "case"
        limits = Limits(run_seconds=300.0)
        model, inputs = export_network(EngineSpec.parse(network), case, exporter=exporter, limits=limits)
        graph = Model.load(model).graph
        known = sum(graph.origin(node.name).is_known for node in graph.nodes)
        verdict = diagnose(
            DiagnoseRequest(
                model=model,
                target="onnxruntime",
                network=network,
                case=case,
                limits=limits,
                feeding=FeedRequest(paths=(str(inputs),)),
                random_too=False,
                repro=False,
            )
        )
    step = next(step for step in verdict.steps if step.question == QUESTION)
    modules, seen = step.evidence.get("modules", 0), step.evidence.get("modules_compared", 0)
    return (
        f"{name:10} {exporter:7} {len(graph.nodes):5} nodes, {known / len(graph.nodes):6.1%} with a module; "
        f"{seen:4} of {modules:4} modules compared ({seen / max(modules, 1):6.1%}), "
        f"{step.evidence.get('values', 0):5} values; {verdict.verdict}, {time.perf_counter() - started:.0f} s"
        + (f"; {verdict.summary}" if verdict.verdict not in ("match", "rounding") else "")
    )


def main(wanted: list[str], *, both: bool) -> None:
    """Print a line per architecture and exporter."""
    for name in wanted or [*short(names("known")), "gpt2_cached"]:
        for exporter in EXPORTERS if both else EXPORTERS[:1]:
            try:
                print(measured(name, exporter), flush=True)
            except TriageError as error:
                print(f"{name:10} {exporter:7} {error.slug}: {error.message[:200]}", flush=True)


if __name__ == "__main__":
    main([word for word in sys.argv[1:] if word != "--both"], both="--both" in sys.argv)
