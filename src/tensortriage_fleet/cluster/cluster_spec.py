"""Clusters as users name them, ``local:N``, ``auto`` or ``ray://HOST:PORT``, and the resources that a task needs."""

import dataclasses
import re

from tensortriage.sdk import UsageError

_LOCAL = re.compile(r"local:([1-9]\d{0,4})")
_GPUS, _TAG = re.compile(r"gpus=(\d{1,3})"), re.compile(r"tag=([A-Za-z_][\w.-]*)")
_CLIENT = re.compile(r"ray://[^\s/@]+:\d{1,5}")


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A cluster.

    Attributes:
        text: As the user wrote it.
        workers: Processes of a cluster that is started for this command, on this machine; 0 for one that is there.
        address: Address of one that is there, as Ray takes it.
        needs: Requirements of every check on its node, as far as the user gives them.
    """

    text: str
    workers: int = 0
    address: str = ""
    needs: "TaskNeeds" = dataclasses.field(default_factory=lambda: TaskNeeds())

    @classmethod
    def parse(cls, text: str) -> "ClusterSpec":
        """Read ``local:N``, ``auto`` or ``ray://HOST:PORT``, each perhaps with ``,gpus=N`` and ``,tag=NAME``.

        Raises:
            UsageError: For anything else (``cluster-malformed``).
        """
        place, *words = text.split(",")
        gpus, tags = 0, list[str]()
        for word in words:
            if found := _GPUS.fullmatch(word):
                gpus = int(found[1])
            elif found := _TAG.fullmatch(word):
                tags.append(found[1])
            else:
                place = ""  # neither: the text is refused
        needs = TaskNeeds(gpus, tuple(tags))
        if place == "auto":
            return cls(text, address="auto", needs=needs)
        if found := _LOCAL.fullmatch(place):
            return cls(text, workers=int(found[1]), needs=needs)
        if _CLIENT.fullmatch(place):
            return cls(text, address=place, needs=needs)
        raise UsageError(
            f"'{text}' is not a cluster",
            slug="cluster-malformed",
            cure="write local:N for N processes of this machine, auto for the Ray cluster that this machine is in, or "
            "ray://HOST:PORT; add ,gpus=1 or ,tag=NAME for the needs of a check",
        )


@dataclasses.dataclass(frozen=True, slots=True)
class TaskNeeds:
    """Needs of a task, besides a processor.

    Attributes:
        gpus: Number of GPUs; each is used by one task at a time.
        tags: Names of resources that the node was started with, such as ``tensorrt``; one of each.
    """

    gpus: int = 0
    tags: tuple[str, ...] = ()
