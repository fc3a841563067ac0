"""Fields that the requests of several commands have, each with its option."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensortriage.engines.spec import PLAIN, spec_text
from tensortriage.runs.elsewhere import named_cluster
from tensortriage.values.options import argument, flag, option, part, request
from tensortriage.values.output_files import Place
from tensortriage.values.text import parse_bytes

if TYPE_CHECKING:
    from tensortriage.engines.base import Limits
    from tensortriage.runs.task_metric import TaskMetric

BATCH_BYTES = 1 << 30
"""Captured tensors held at once unless told otherwise."""
LOW_MEMORY_BATCH_BYTES = 64 << 20
"""Captured tensors held at once with ``--low-memory``."""
LIMITS, RESULT = "Limits", "Result"
MODEL_FILE = "tensortriage.model.in_memory:model_file"
"""What makes a file of a model that is given in Python; see `tensortriage.values.given`."""


@request
class LimitOptions:
    """Limits of engines that work in a process of their own."""

    timeout: float | None = option("--timeout", "SECONDS", "Time limit of each build or run of an engine in its own "
                                   "process.", default=None, above=0, group=LIMITS)  # fmt: skip
    memory_limit: str = option("--memory-limit", "BYTES", "Memory limit of an engine in its own process, e.g. 8G.",
                               default="")  # fmt: skip

    def value(self) -> "Limits":
        """Return the limits; the defaults where they are not given."""
        from tensortriage.engines.base import Limits

        return Limits(self.timeout or Limits().build_seconds, self.timeout, parse_bytes(self.memory_limit))


def metric_field(use: str = "", **more: Any) -> Any:
    """Declare the task metric, and what it is used for."""
    own = "or of your own: metric(outputs, feed[, labels]) -> float"
    words = f"Task metric, larger is better: top1, top5, boxes, cosine, tokens, {own}{use}."
    return option("--metric --metric-script", "NAME|FILE.py[:FUNC]", words, default="", **more)


@request
class MetricOptions:
    """A task metric: one by name, or the user's own."""

    script: str = metric_field()
    limits: "Limits" = part(factory=LimitOptions)

    @classmethod
    def of(cls, given: object) -> "TaskMetric":
        """Return a metric, which may be given as a function, a name, or as ``FILE.py[:FUNCTION]``; see `TaskMetric`."""
        from tensortriage.runs.task_metric import TaskMetric

        return TaskMetric.of(given)

    def value(self) -> "TaskMetric | None":
        """Return the metric, which is held to the limits; None without a script."""
        from tensortriage.runs.task_metric import TaskMetric

        return TaskMetric.of(self.script, self.limits) if self.script else None


def model_field(**more: Any) -> Any:
    """Declare the model that a command is about; in Python it may be one in memory."""
    return argument("MODEL", accepts=MODEL_FILE, **more)


def reference_field(text: str = "Engine taken as right.") -> str:
    """Declare the engine that is taken as right."""
    return option("--reference -r", "ENGINE", text, default=str(PLAIN), accepts=spec_text)


def target_field(text: str = "Engine under suspicion, NAME[:key=value,...].", **more: Any) -> Any:
    """Declare the engine that is asked about; without it the command says which there are."""
    return option("--target -t", "ENGINE", text, needed=False, accepts=spec_text, **more)


def samples_field(default: int, text: str = "Largest number of feeds to run.", **more: Any) -> Any:
    """Declare how many feeds are used."""
    return option("--samples", "N", text, default=default, least=1, **more)


def case_field(
    names: str = "--case",
    default: str = "triage-case",
    text: str = "Directory of the case; a case that is already there is resumed.",
) -> Path:
    """Declare the directory of the case."""
    return option(names, "DIR", text, default=Path(default), writes=Place.FOLDER, always=True, group=RESULT)


def fresh_field() -> bool:
    """Declare whether answers that the case has count."""
    return flag("--fresh", "Ask engines everything again; new answers take the place of those that the case has.")


def external_data_field(**more: Any) -> Any:
    """Declare where the weights outside the model file are."""
    return option("--external-data-dir --load-external-data --ext", "DIR",
                  "Directory of the external data, if they are not next to the model.",
                  default=None, **{"rare": True, **more})  # fmt: skip


def cluster_field(
    text: str = "Run checks there: ", *, read: Callable[[str], object] = named_cluster, **more: Any
) -> Any:
    """Declare where checks run."""
    return option("--cluster", "WHERE",
                  f"{text}local:N for N processes of this machine, auto or ray://HOST:PORT for a Ray cluster; "
                  "add what each needs: ,gpus=1 ,tag=NAME.",
                  default=None, read=read, **more)  # fmt: skip
