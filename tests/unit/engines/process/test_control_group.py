"""Where the bound of a process's memory is found: cgroups(7) says how the files look, these are laid out as there."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from models import write
from tensortriage.engines.process.control_group import group_memory
from tensortriage_testing import mlp, save_model

MB = 1 << 20
V2_MOUNT = "31 23 0:28 {root} /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate"
V1_MOUNT = "35 31 0:32 {root} /sys/fs/cgroup/memory rw,relatime shared:4 - cgroup cgroup rw,memory"
OTHER_MOUNT = "36 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices"


@pytest.fixture
def machine(tmp_path):
    """Return what writes the files of a process and of its groups."""

    def write(cgroup, *mounts, groups):
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc/cgroup").write_text(cgroup)
        (tmp_path / "proc/mountinfo").write_text("\n".join(mounts) + "\n")
        for place, files in groups.items():
            folder = tmp_path / place
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (folder / name).write_text(f"{text}\n")
        found = group_memory(tmp_path / "proc", tmp_path)
        return None if found is None else (found.limit, found.left, found.folder.relative_to(tmp_path).as_posix())

    return write


def test_the_second_version_nested_as_systemd_does(machine):
    """The slice bounds what the scope in it may hold; inactive pages of files come back at once."""
    slice_ = "sys/fs/cgroup/user.slice/job.slice"
    found = machine(
        "0::/user.slice/job.slice/run.scope\n",
        V2_MOUNT.format(root="/"),
        groups={
            slice_: {"memory.max": 900 * MB, "memory.current": 500 * MB, "memory.stat": f"inactive_file {200 * MB}"},
            f"{slice_}/run.scope": {"memory.max": "max", "memory.current": 300 * MB},
        },
    )
    assert found == (900 * MB, 600 * MB, slice_)


def test_the_narrowest_of_several_groups_counts(machine):
    found = machine(
        "0::/a/b\n",
        V2_MOUNT.format(root="/"),
        groups={
            "sys/fs/cgroup/a": {"memory.max": 900 * MB, "memory.current": 850 * MB},
            "sys/fs/cgroup/a/b": {"memory.max": 400 * MB, "memory.current": 100 * MB},
        },
    )
    assert found == (900 * MB, 50 * MB, "sys/fs/cgroup/a")


def test_the_first_version_as_slurm_mounts_it(machine):
    """SLURM's task/cgroup: /slurm/uid_N/job_N/step_N of the controller of memory; unbound groups say a huge number."""
    job = "sys/fs/cgroup/memory/slurm/uid_0/job_7"
    found = machine(
        "9:devices:/slurm\n4:cpu,memory:/slurm/uid_0/job_7/step_0\n0::/\n",
        OTHER_MOUNT,
        V1_MOUNT.format(root="/"),
        groups={
            job: {
                "memory.limit_in_bytes": 800 * MB,
                "memory.usage_in_bytes": 600 * MB,
                "memory.stat": f"cache 1\ntotal_inactive_file {100 * MB}",
            },
            f"{job}/step_0": {"memory.limit_in_bytes": 9223372036854771712, "memory.usage_in_bytes": 1},
        },
    )
    assert found == (800 * MB, 300 * MB, job)


@pytest.mark.parametrize(
    ("path", "mounted"),
    [("/", "/"), ("/docker/0a1b", "/docker/0a1b"), ("/docker/0a1b", "/"), ("/../../system.slice/x", "/")],
)
def test_containers_with_a_namespace_of_groups_and_without(machine, path, mounted):
    """Docker shows the container's own group as the root of the mount, whatever /proc/self/cgroup calls it."""
    if (path, mounted) == ("/docker/0a1b", "/"):  # the mount of the host
        groups = {"sys/fs/cgroup/docker/0a1b": {"memory.max": 512 * MB, "memory.current": 12 * MB}}
    else:
        groups = {"sys/fs/cgroup": {"memory.max": 512 * MB, "memory.current": 12 * MB}}
    found = machine(f"0::{path}\n", V2_MOUNT.format(root=mounted), groups=groups)
    assert found is not None
    assert found[:2] == (512 * MB, 500 * MB)


def test_where_nothing_bounds_or_nothing_is_told(machine, tmp_path):
    assert machine("0::/\n", V2_MOUNT.format(root="/"), groups={"sys/fs/cgroup": {"memory.max": "max"}}) is None
    assert group_memory(tmp_path / "nowhere", tmp_path) is None


@pytest.fixture
def child_group():
    """Return a group of 400 MB within that of this process; skipped where none may be made."""
    own = {line.split(":", 2)[1]: line.split(":", 2)[2] for line in Path("/proc/self/cgroup").read_text().splitlines()}
    first = Path("/sys/fs/cgroup/memory" + own.get("memory", ""))
    version = 1 if "memory" in own and first.is_dir() else 2
    parent = first if version == 1 else Path("/sys/fs/cgroup" + own.get("", "/"))
    group, limit = parent / f"triage-test-{os.getpid()}", "memory.limit_in_bytes" if version == 1 else "memory.max"
    try:
        group.mkdir()
        (group / limit).write_text(str(400 * MB))
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        pytest.skip(f"no group may be made here: {error}")
    yield group
    group.rmdir()


def within(group, *words):
    """Run a command in a group."""
    script = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
    return subprocess.run(["sh", "-c", script, str(group), *words], capture_output=True, text=True, timeout=300)


def test_a_process_in_a_group_knows_its_bound(child_group):
    code = "from tensortriage.runs.blocks.memory import memory_bytes; print(memory_bytes(None))"
    found = within(child_group, sys.executable, "-c", code)
    assert 0 < int(found.stdout) <= 400 * MB


def test_a_command_that_is_killed_for_memory_names_the_bound_and_the_option(child_group, tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[1,1024] x) => (float[n,1024] y) {
      s = Constant<value: tensor = int64[2] {262144, 1024}>()
      y = Expand(x, s)
    }"""
    model = write(tmp_path / "m.onnx", text)
    found = within(child_group, str(Path(sys.executable).with_name("triage")), "run", str(model), "--onnxrt")
    assert found.returncode == 2
    assert "error[out-of-memory]: the command was killed: its control group may hold 400 MB" in found.stderr
    assert "--memory-limit 360M" in found.stderr


def test_an_engine_that_is_killed_for_memory_names_the_bound_and_the_option(child_group, tmp_path):
    model = save_model(mlp(width=8, layers=1), tmp_path / "m.onnx")
    (tmp_path / "hungry.py").write_text(
        "class Engine:\n    def compile(self, model, options):\n        self.held = bytearray(1 << 30)\n"
    )
    triage = Path(sys.executable).with_name("triage")
    words = ("run", model, "--onnxrt", "--target", f"script:{tmp_path / 'hungry.py'}:Engine")
    found = within(child_group, str(triage), *map(str, words))
    assert found.returncode != 0
    assert "its control group may hold 400 MB" in found.stdout + found.stderr
    assert "--memory-limit 360M" in found.stdout + found.stderr
