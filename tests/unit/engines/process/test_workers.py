"""Workers as the host sees them: beside one real worker, a connection that says what a test wants."""

import json
import queue
import sys
import types

import pytest

from tensortriage.engines.process import workers
from tensortriage.engines.process.transport import SharedFolder, Wire
from tensortriage.engines.process.workers import Worker, WorkerDied, WorkerTimeout, close_idle, give_back, lease
from tensortriage.errors import EngineMissing, StoreError, UsageError

HELLO = {"pid": 7, "numpy": "2", "ml_dtypes": True}
DIED = {"died": {"code": 3, "cause": "", "tail": "last words"}}


class Silence(Exception):
    """No answer came in time."""


class RemoteError(Exception):
    """What runs at the other end raised."""


class Channel:
    """A connection to a supervisor.

    Args:
        answers: What it says to each question of an engine's process, in order; an exception is raised.
        greeting: What it says of itself.
        hello: What the engine's process says when it starts.
    """

    RemoteError = RemoteError

    def __init__(self, answers, greeting, hello):
        self.answers, self.greeting, self.hello = list(answers), greeting, hello
        self.sent, self.waited, self._said = [], [], queue.SimpleQueue()

    def send(self, item):
        message = json.loads(item) if isinstance(item, str) else {"op": "bytes", "bytes": item}
        self.sent.append(message)
        if "files" in message:
            self._said.put(self.greeting)
        elif message["op"] == "start":
            self._said.put(self.hello)
        elif message["op"] == "kill":
            self._said.put({"died": {"code": -9, "cause": message["cause"], "tail": ""}})
        elif self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, OSError):
                raise answer
            self._said.put(answer(message) if callable(answer) else answer)

    def receive(self, timeout):
        self.waited.append(timeout)
        answer = Silence() if self._said.empty() else self._said.get()
        if isinstance(answer, Exception | KeyboardInterrupt):
            raise answer
        return json.dumps(answer) if isinstance(answer, dict) else answer


@pytest.fixture
def connected(monkeypatch, tmp_path):
    """Return what makes workers at the other end of such a connection."""
    folder = tmp_path / "exchange"
    folder.mkdir()
    made = {"folders": [str(folder)], "pid": 6, "watches_memory": True}

    def connect(*answers, greeting=made, hello=HELLO, interpreter="python", affinity="a"):
        channel, ended = Channel(answers, greeting, hello), []
        process = types.SimpleNamespace(wait=lambda timeout: 0)
        gateway = types.SimpleNamespace(
            remote_exec=lambda source: channel, exit=lambda: ended.append("exit"), join=lambda timeout: True,
            _io=types.SimpleNamespace(popen=process, kill=lambda: None),
        )  # fmt: skip

        class Group(list):
            def _cleanup_atexit(self):
                """Be what execnet registers."""

            def makegateway(self, spec):
                self.append(gateway)
                return gateway

        execnet = types.SimpleNamespace(
            Group=Group, TimeoutError=Silence, RemoteError=RemoteError, HostNotFound=RemoteError
        )
        monkeypatch.setitem(sys.modules, "execnet", execnet)
        worker = Worker(interpreter, affinity)
        return worker, channel, ended

    yield connect
    close_idle()


def echo(message):
    return {"id": message["id"], "seen": message["op"]}


def test_an_engine_process_is_started_with_the_first_question(connected, tmp_path):
    worker, channel, ended = connected(echo, echo)
    assert (worker.alive, worker.supervisor_pid, worker.folders) == (False, 6, (str(tmp_path / "exchange"),))
    assert isinstance(worker.transport, SharedFolder)
    for number in (1, 2):
        assert worker.ask({"op": "run"}, seconds=5, memory_bytes=9)["id"] == number
    assert worker.hello == HELLO
    assert [message["op"] for message in channel.sent[1:]] == ["start", "run", "run"]
    assert channel.sent[-1] == {"op": "run", "memory": 9, "id": 2}
    assert channel.waited[-1] == 5
    worker.close()
    worker.close()
    assert worker.closed
    assert not (tmp_path / "exchange").exists()
    assert ended


def test_a_worker_on_another_machine_has_a_wire_and_folders_that_are_not_ours(connected, tmp_path):
    worker, _, _ = connected(interpreter="ssh://host")
    assert isinstance(worker.transport, Wire)
    worker.close()
    assert (tmp_path / "exchange").exists()


def test_a_process_that_dies_is_told_and_started_again(connected):
    worker, channel, _ = connected(DIED, echo)
    with pytest.raises(WorkerDied) as caught:
        worker.ask({"op": "run"}, seconds=5)
    assert caught.value.death == DIED["died"]
    assert (worker.alive, worker.closed) == (False, False)
    assert worker.ask({"op": "run"}, seconds=5)["seen"] == "run"
    assert [message["op"] for message in channel.sent[1:]] == ["start", "run", "start", "run"]


def test_a_process_that_is_late_is_killed(connected):
    worker, channel, _ = connected()
    with pytest.raises(WorkerTimeout):
        worker.ask({"op": "run"}, seconds=5)
    assert channel.sent[-1] == {"op": "kill", "cause": "time limit"}
    assert (worker.alive, worker.closed) == (False, False)
    worker.kill("again")
    assert channel.sent[-1]["cause"] == "time limit"  # nothing remains to kill


@pytest.mark.parametrize(
    "said",
    [
        "no JSON",
        "[1, 2]",
        "7",
        "[" * 100000,
        {"seen": "run"},
        {"id": 9},
        b"bytes",
        RemoteError("gone"),
        EOFError(),
        OSError(),
    ],
    ids=lambda said: str(said)[:12] or type(said).__name__,
)
def test_a_process_that_says_something_else_is_ended(connected, said):
    worker, _, ended = connected(said)
    with pytest.raises(WorkerDied) as caught:
        worker.ask({"op": "run"}, seconds=5)
    assert caught.value.death["code"] is None
    assert worker.closed
    assert ended


def test_an_interruption_ends_the_worker(connected):
    worker, _, _ = connected(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        worker.ask({"op": "run"}, seconds=5)
    assert worker.closed


@pytest.mark.parametrize(
    ("hello", "said"),
    [
        (DIED, "last words"),
        (Silence(), "said nothing"),
        ({"pid": 7, "numpy": "", "reason": "no numpy"}, "no numpy"),
        ({"pid": "x"}, "gave an unexpected answer"),
        (b"bytes", "no greeting"),
    ],
)
def test_a_process_that_cannot_start(connected, hello, said):
    worker, _, _ = connected(echo, hello=hello)
    with pytest.raises(EngineMissing, match=said) as caught:
        worker.ask({"op": "run"}, seconds=5)
    assert caught.value.slug == "worker-unusable"


@pytest.mark.parametrize(
    ("greeting", "kind", "slug"),
    [
        ({"refused": "disk full"}, StoreError, "exchange-full"),
        (RemoteError("older than Python 3.8"), EngineMissing, "worker-unusable"),
        (EOFError(), EngineMissing, "worker-unusable"),
        (KeyboardInterrupt(), KeyboardInterrupt, ""),
    ],
)
def test_a_supervisor_that_cannot_start(connected, greeting, kind, slug):
    with pytest.raises(kind) as caught:
        connected(greeting=greeting)
    assert getattr(caught.value, "slug", "") == slug


def test_memory_is_limited_where_it_can_be_watched(connected, tmp_path):
    greeting = {"folders": [], "pid": 6, "watches_memory": False}
    worker, _, _ = connected(echo, greeting=greeting)
    with pytest.raises(UsageError) as caught:
        worker.ask({"op": "run"}, seconds=5, memory_bytes=1)
    assert caught.value.slug == "memory-limit-unsupported"
    assert worker.ask({"op": "run"}, seconds=5)["seen"] == "run"


def test_files_go_as_they_are_and_a_silent_line_is_lost(connected):
    worker, channel, _ = connected(b"chunk")
    worker.send(b"abc")
    assert channel.sent[-1] == {"op": "bytes", "bytes": b"abc"}
    assert worker.receive(5) == b"chunk"
    with pytest.raises(WorkerDied):
        worker.receive(5)
    assert worker.closed


def test_a_supervisor_that_does_not_kill_is_ended(connected):
    worker, channel, _ = connected(echo)
    worker.ask({"op": "run"}, seconds=5)
    channel.answers.append(None)
    channel.send = channel.sent.append
    worker.kill("time limit")
    assert worker.closed


def test_idle_workers_are_leased_again_for_the_same_purpose(connected):
    worker, _, _ = connected(echo, echo)
    worker.ask({"op": "run"}, seconds=5)
    give_back(worker)
    assert lease("python", "a") is worker
    worker.close()
    give_back(worker)  # a closed one is not kept
    assert worker not in workers._idle


def test_an_idle_worker_that_died_meanwhile_is_not_leased(connected):
    dead, _, _ = connected(echo, OSError())
    dead.ask({"op": "run"}, seconds=5)
    give_back(dead)
    connected(echo)[0].close()  # what is made from now on is another one
    found = lease("python", "a")
    assert found is not dead
    assert dead.closed
    found.close()


def test_the_oldest_of_too_many_idle_workers_is_ended(connected, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    close_idle()
    made = [connected(echo)[0] for _ in range(workers.MAX_IDLE + 1)]
    for worker in made:
        give_back(worker)
    assert [worker.closed for worker in made] == [True, *[False] * workers.MAX_IDLE]
    close_idle()
    assert all(worker.closed for worker in made)


def test_a_package_travels_as_text_with_nothing_of_those_around_it(tmp_path, monkeypatch):
    for name, text in (("around", "z = 3"), ("around/inner", "x = 1"), ("around/inner/deep", "y = 2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text)
    (tmp_path / "around" / "inner" / "note.txt").write_text("no module")
    monkeypatch.syspath_prepend(tmp_path)
    assert workers._texts("around.inner") == {
        "around/__init__.py": "",
        "around/inner/__init__.py": "x = 1",
        "around/inner/deep/__init__.py": "y = 2",
    }


def test_a_real_worker_answers_and_leaves_nothing(tmp_path):
    worker = Worker(sys.executable, "real")
    assert worker.settle()
    assert worker.hello["executable"] == sys.executable
    assert worker.ask({"op": "close"}, seconds=30)["resident_bytes"] > 0
    worker.kill("no reason")
    assert not worker.alive
    worker.close()
    assert not worker.settle()
