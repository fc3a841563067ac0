"""The memory left to this process by its control group: the limit of SLURM, systemd-run, Docker and Kubernetes.

A group is found by /proc/self/cgroup and the mounts of /proc/self/mountinfo (cgroups(7)); of version 2, or of version 1
where the controller of memory is mounted as that. Every group around it bounds it as well. Pages of files that were not
used lately can be reclaimed at once; the other memory of the group cannot (memory.stat).
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tensortriage.frozen_dataclass import frozen_dataclass


@frozen_dataclass
class GroupMemory:
    """Memory that the narrowest control group of a process leaves it.

    Attributes:
        limit: Most bytes that all processes of the group may hold together.
        left: The unused part of that now, in bytes.
        folder: The group.
    """

    limit: int
    left: int
    folder: Path

    @property
    def cure(self) -> str:
        """Cure when the kernel has ended a process of the group: a bound below the group's."""
        return (
            f"try --memory-limit {self.limit * _BELOW // 100 >> 20}M, or give the group more than {self.limit >> 20} MB"
        )


@frozen_dataclass
class _Files:
    """Names of the files of one version."""

    limit: str
    held: str
    reclaimable: str


_BELOW = 90
"""Percent of a group's memory to stay within: other processes and the kernel's own pages count as well."""
_SECOND = _Files("memory.max", "memory.current", "inactive_file")
_FIRST = _Files("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_UNBOUND = 1 << 60
"""Version 1 reports the largest multiple of a page where there is no limit."""


def group_memory(proc: Path = Path("/proc/self"), root: Path = Path("/")) -> GroupMemory | None:
    """Return the memory left by the control groups of this process; None without a limit, or an unknown one.

    Args:
        proc: Folder with ``cgroup`` and ``mountinfo``.
        root: Where the places that these name begin.
    """
    found = [memory for folder, files in _groups(proc, root) if (memory := _memory(folder, files)) is not None]
    return min(found, key=lambda memory: memory.left, default=None)


def _groups(proc: Path, root: Path) -> Iterator[tuple[Path, _Files]]:
    """Yield the groups that a process is in, the inmost first, of either version."""
    try:
        lines = (proc / "cgroup").read_text().splitlines()
        mounts = [line.split() for line in (proc / "mountinfo").read_text().splitlines()]
    except OSError:
        return
    for number, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if number != "0" and "memory" not in controllers.split(","):
            continue
        kind, files = ("cgroup2", _SECOND) if number == "0" else ("cgroup", _FIRST)
        for mount in mounts:
            separator = mount.index("-") if "-" in mount else len(mount)
            fields = mount[separator + 1 :]
            if fields[:1] == [kind] and (kind == "cgroup2" or "memory" in fields[-1].split(",")):
                yield from ((folder, files) for folder in _folders(root, mount[3], mount[4], path))


def _folders(root: Path, mounted: str, place: str, path: str) -> Iterator[Path]:
    """Yield the folder of a group and those around it, up to where they are mounted.

    Args:
        root: Where places begin.
        mounted: Which group the mount shows as its root.
        place: Where it is mounted.
        path: The group; one that the mount does not show stands for its root, as in a container without a namespace.
    """
    top = root / place.lstrip("/")
    shown = PurePosixPath(path)
    inner = shown.relative_to(mounted).parts if shown.is_relative_to(mounted) and ".." not in shown.parts else ()
    folder = top.joinpath(*inner)
    yield folder
    for _ in inner:
        folder = folder.parent
        yield folder


def _memory(folder: Path, files: _Files) -> GroupMemory | None:
    limit, held = _number(folder / files.limit), _number(folder / files.held)
    if limit is None or limit >= _UNBOUND:
        return None
    reclaimable = 0
    with contextlib.suppress(OSError, ValueError):
        rows = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        reclaimable = int(rows.get(files.reclaimable, 0))
    return GroupMemory(limit, max(limit - max((held or 0) - reclaimable, 0), 0), folder)


def _number(path: Path) -> int | None:
    """Return the number in a file; None where there is none, or no limit (``max``)."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
