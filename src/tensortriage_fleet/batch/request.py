"""The request of ``triage batch``, each field with its option; light to import, since help needs it."""

from pathlib import Path

from tensortriage.sdk import Place, argument, case_field, cluster_field, flag, option, request
from tensortriage_fleet.cluster.cluster_spec import ClusterSpec


@request
class BatchRequest:
    """The batch to run.

    Attributes:
        file: The batch file.
        memory_limit: Memory limit of each cell, as commands take it.
    """

    # fmt: off
    file: Path = argument("FILE")
    jobs: int = option("--jobs -j", "N", "Number of parallel cells.", default=1, least=1, group="Limits")
    cluster: ClusterSpec | None = cluster_field("Run cells there: ", read=ClusterSpec.parse)
    timeout_seconds: float | None = option(
        "--timeout", "SECONDS", "Time limit of each cell  [default: as in FILE, else none].",
        default=None, above=0)
    memory_limit: str = option(
        "--memory-limit", "BYTES", "Memory limit of each cell and of the engines that it starts, e.g. 8G.", default="")
    case: Path = case_field(
        default="triage-batch", text="Directory of the results; a batch that is already there is resumed.")
    fresh: bool = flag("--fresh", "Run every cell again, and ignore its earlier results.")
    junit: Path | None = option(
        "--junit", "FILE", "File for the results as JUnit's XML.", default=None, writes=Place.FILE)
    # fmt: on
