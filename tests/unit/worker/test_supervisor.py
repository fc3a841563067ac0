"""The supervisor: files come and go, engine processes end and are told of, and nothing of either is left."""

import contextlib
import fcntl
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from tensortriage.engines.process.workers import Worker, WorkerDied
from tensortriage_worker import supervisor
from tensortriage_worker.supervisor import MemoryWatch, Supervisor, count_oom_kills, descendants, has_room

SECONDS = 30
ENDS = """
import os, subprocess, sys
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
print(child.pid, os.environ["TMPDIR"], os.getcwd(), flush=True)
os._exit(3)
"""


class Host:
    """The other end of a supervisor's channel."""

    def __init__(self):
        self.heard = queue.Queue()

    def setcallback(self, callback, endmarker):
        self.say = lambda message: callback(message if isinstance(message, bytes) else json.dumps(message))
        self.leave = lambda: callback(endmarker)

    def send(self, item):
        self.heard.put(json.loads(item) if isinstance(item, str) else item)

    def ask(self, *messages):
        for message in messages:
            self.say(message)
        return self.heard.get(timeout=SECONDS)


@pytest.fixture
def fast(tmp_path, monkeypatch):
    """Return a folder in place of shared memory, which is not there yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(supervisor, "FAST_FOLDER", str(tmp_path / "fast"))
    return tmp_path / "fast"


@contextlib.contextmanager
def serving(tmp_path):
    """Yield a host whose supervisor serves in a thread; when it leaves, the folders are gone."""
    host = Host()
    host.supervisor = Supervisor(host, str(tmp_path))
    thread = threading.Thread(target=host.supervisor.serve)
    thread.start()
    while not hasattr(host, "leave"):
        time.sleep(0.001)
    yield host
    host.leave()
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert not any(map(os.path.exists, host.supervisor.folders))


@pytest.fixture
def host(tmp_path, fast):
    with serving(tmp_path) as host:
        yield host


@pytest.fixture(scope="module")
def worker():
    made = Worker(sys.executable, "supervisor")
    yield made
    made.close()


def test_a_file_is_stored_in_chunks_and_fetched_once(host):
    stored = host.ask({"op": "store", "name": "model/net.bin", "bytes": 5})["storing"]
    assert Path(stored) == Path(host.supervisor.folders[0], "model", "net.bin")
    assert host.ask(b"ab", b"cde") == {"stored": True}
    assert Path(stored).read_bytes() == b"abcde"
    shard = host.ask({"op": "store", "name": "", "bytes": 3})["storing"]
    assert (Path(shard).parent, Path(shard).suffix) == (Path(host.supervisor.folders[0]), ".safetensors")
    assert host.ask(b"xyz") == {"stored": True}
    assert host.ask({"op": "fetch", "path": shard}) == {"bytes": 3}
    assert host.heard.get(timeout=SECONDS) == b"xyz"
    assert not os.path.exists(shard)
    assert "refused" in host.ask({"op": "fetch", "path": shard})
    host.say({"op": "remove", "path": stored})
    assert host.ask({"op": "store", "name": "empty", "bytes": 0})["storing"].endswith("empty")
    assert host.heard.get(timeout=SECONDS) == {"stored": True}
    assert not os.path.exists(os.path.dirname(stored))


def test_removing_a_shard_leaves_its_folder(host):
    shard = host.ask({"op": "store", "name": "", "bytes": 0})["storing"]
    host.heard.get(timeout=SECONDS)
    for _ in range(2):
        host.say({"op": "remove", "path": shard})
    assert "refused" in host.ask({"op": "fetch", "path": shard})
    assert os.path.isdir(host.supervisor.folders[0])


def test_what_is_outside_of_the_folders_is_not_sent(host, tmp_path):
    (tmp_path / "secret").write_text("s")
    link = os.path.join(host.supervisor.folders[0], "link")
    os.symlink(tmp_path / "secret", link)
    for path in (tmp_path / "secret", link):
        assert "refused" in host.ask({"op": "fetch", "path": str(path)})
    assert (tmp_path / "secret").exists()


def test_a_file_without_room_is_refused(host):
    assert "no room for 1099511627776 MB" in host.ask({"op": "store", "name": "x", "bytes": 1 << 60})["refused"]


def test_shared_memory_is_used_first_where_it_has_room(tmp_path, fast):
    fast.mkdir()
    with serving(tmp_path) as host:
        assert [Path(folder).parent for folder in host.supervisor.folders] == [fast, tmp_path]
        assert host.ask({"op": "store", "name": "", "bytes": 0})["storing"].startswith(str(fast))
        host.supervisor.unpack({"package/inner/module.py": "x = 1"})
        assert Path(host.supervisor.folders[1], "package", "inner", "module.py").read_text() == "x = 1"


def test_folders_that_nobody_holds_are_swept(tmp_path):
    old = time.time() - 2 * supervisor.STALE_SECONDS
    stale, young, held = (tmp_path / (supervisor.PREFIX + name) for name in ("stale", "young", "held"))
    for folder in (stale, young, held):
        folder.mkdir()
        (folder / "lock").touch()
    for folder in (stale, held):
        os.utime(folder, (old, old))
    with open(held / "lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        supervisor.sweep_stale_folders(str(tmp_path))
    assert sorted(tmp_path.iterdir()) == [held, young]


def test_the_end_of_an_engine_process_is_told_and_takes_what_it_started_along(worker, tmp_path):
    (tmp_path / "ends.py").write_text(ENDS)
    request = {"op": "compile", "adapter": "script", "model": "m", "options": {"file": str(tmp_path / "ends.py")}}
    for folder in worker.folders:
        Path(folder, "left.safetensors").touch()
    with pytest.raises(WorkerDied) as caught:
        worker.ask(request, seconds=SECONDS)
    death = caught.value.death
    assert (death["code"], death["cause"], death["oom_killed"]) == (3, "", False)
    child, scratch, folder = death["tail"].split()
    assert not Path(f"/proc/{child}").exists()
    assert Path(scratch) == Path(worker.folders[-1], "tmp")
    assert folder == os.getcwd()
    assert not any(Path(folder, "left.safetensors").exists() for folder in worker.folders)


def test_a_process_that_is_killed_is_told_with_the_cause_and_can_be_started_again(worker, tmp_path):
    assert worker.settle()
    first = worker.hello["pid"]
    worker.send({"op": "kill", "cause": "no reason"})
    with pytest.raises(WorkerDied) as caught:
        worker.receive(SECONDS)
    assert (caught.value.death["code"], caught.value.death["cause"]) == (-9, "no reason")
    assert worker.settle()
    assert worker.hello["pid"] != first
    (tmp_path / "sleeps.py").write_text("import time\ntime.sleep(600)")
    request = {"op": "compile", "adapter": "script", "model": "m", "options": {"file": str(tmp_path / "sleeps.py")}}
    with pytest.raises(WorkerDied) as caught:
        worker.ask(request, seconds=SECONDS, memory_bytes=1 << 20)
    assert caught.value.death["cause"] == "memory"


def test_memory_is_that_of_all_descendants():
    with contextlib.ExitStack() as closing:
        reading, writing = os.pipe()
        closing.callback(os.close, writing)
        child = subprocess.Popen(["cat"], stdin=reading)
        os.close(reading)
        closing.callback(child.wait)
        closing.callback(child.kill)
        assert child.pid in descendants(os.getpid())
        resident = supervisor.resident_bytes(child.pid)
        assert 1 << 12 <= resident < 1 << 30
        assert MemoryWatch(1).exceeded()
        assert not MemoryWatch(1 << 60).exceeded()
        assert not MemoryWatch(None).exceeded()


def test_what_is_not_there_has_no_size_and_no_room(tmp_path):
    assert supervisor.resident_bytes(1 << 30) == 0
    assert descendants(1 << 30) == []
    assert not has_room(str(tmp_path / "absent"), 0)
    assert has_room(str(tmp_path), 1)
    assert not has_room(str(tmp_path), 1 << 60)
    told = [line.split()[1] for line in Path("/proc/vmstat").read_text().splitlines() if line.startswith("oom_kill ")]
    assert count_oom_kills() == int((told or ["0"])[0])
