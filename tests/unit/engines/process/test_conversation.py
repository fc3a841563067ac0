"""What the answers, the silence and the end of an engine's process mean; the process is a list of what it answers."""

import signal
from pathlib import Path

import numpy as np
import pytest

from tensortriage.engines.base import Limits
from tensortriage.engines.process.conversation import LIBRARIES_BYTES, NO_CURE, RETIRED_BYTES, Conversation
from tensortriage.engines.process.transport import SharedFolder
from tensortriage.engines.process.workers import WorkerDied, WorkerTimeout
from tensortriage.errors import (
    BuildFailed,
    DataError,
    EngineCrashed,
    EngineHung,
    EngineMissing,
    EngineOutOfMemory,
    ModelError,
    RunFailed,
    UsageError,
)
from tensortriage_worker import exchange
from tensortriage_worker.exchange import Item

ITEMS = (Item("x", np.float32([1, 2])),)
LIMITS = Limits(build_seconds=7, run_seconds=3, memory_bytes=5 << 20)


class Worker:
    """Gives prepared answers; one that is an exception is raised, one that is a function is asked."""

    alive, closed = True, True  # closed: the pool of workers is not to have it

    interpreter = "/there/bin/python"
    own_bytes = None

    def __init__(self, folder: Path, *answers):
        self.folders = (str(folder),)
        self.transport = SharedFolder(self.folders)
        self.answers, self.asked, self.ended = list(answers), [], []

    def ask(self, request, *, seconds, memory_bytes):
        self.asked.append((request, seconds, memory_bytes))
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer(request) if callable(answer) else answer

    def kill(self, cause):
        self.ended.append(cause)

    def close(self):
        self.ended.append("closed")

    def distrusted(self, what):
        return WorkerDied({"code": None, "cause": what, "tail": ""})


@pytest.fixture
def talk(tmp_path):
    """Return what makes a conversation about given answers."""
    return lambda *answers, limits=LIMITS: Conversation(Worker(tmp_path, *answers), "Engine", limits)


def death(code=None, *, cause="", tail="", oom_killed=False):
    return WorkerDied({"code": code, "cause": cause, "tail": tail, "oom_killed": oom_killed})


def failure(kind, message, slug="", cure=""):
    return {"error": {"kind": kind, "message": message, "slug": slug, "cure": cure}}


def test_inputs_go_there_and_outputs_come_back_and_no_file_stays(talk, tmp_path):
    def echo(request):
        (item,) = exchange.take(request["shards"])
        return {"shards": exchange.put(request["folders"], [Item("y", item.array * 2)])}

    conversation = talk(echo)
    (found,) = conversation.run(ITEMS)
    assert (found.name, found.array.tolist()) == ("y", [2, 4])
    assert list(tmp_path.iterdir()) == []
    ((request, seconds, memory),) = conversation.worker.asked
    assert (request["op"], seconds, memory) == ("run", 3, 5 << 20)


def test_questions_of_the_adapter_are_passed_on(talk):
    def told(request):
        return {
            "info": {"seen": request["question"], "n": request["n"]},
            "shards": exchange.put(request["folders"], ITEMS),
        }

    info, arrays = talk(told).query("why", n=3, seconds=1.0)
    assert info == {"seen": "why", "n": 3}
    assert {name: array.tolist() for name, array in arrays.items()} == {"x": [1, 2]}


def test_builds_may_take_longer_than_runs(talk):
    conversation = talk({"info": {}}, {"inputs": None, "outputs": None, "info": {}}, {"plan": None})
    for operation in ("probe", "compile", "plan"):
        conversation.ask(operation)
    assert [seconds for _, seconds, _ in conversation.worker.asked] == [7, 7, 3]


@pytest.mark.parametrize("lost", ["absent.safetensors", "../outside.safetensors"])
def test_shards_that_are_not_there_are_wrong_outputs(talk, tmp_path, lost):
    conversation = talk({"shards": [str(tmp_path / lost)]})
    with pytest.raises(RunFailed) as caught:
        conversation.run(())
    assert caught.value.slug == "engine-outputs-wrong"


def test_inputs_that_were_not_taken_are_removed(talk, tmp_path):
    with pytest.raises(EngineCrashed):
        talk(death(1)).run(ITEMS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("said", "kind", "slug"),
    [
        (death(3, tail="a\n\nb\n"), EngineCrashed, "engine-crashed"),
        (death(-signal.SIGKILL, cause="memory"), EngineOutOfMemory, "memory-limit-reached"),
        (death(-signal.SIGKILL, oom_killed=True), EngineOutOfMemory, "engine-out-of-memory"),
        (death(-signal.SIGABRT, tail="std::bad_alloc"), EngineOutOfMemory, "engine-out-of-memory"),
        (death(1, tail="std::bad_alloc"), EngineCrashed, "engine-crashed"),
        (WorkerTimeout(), EngineHung, "engine-hung"),
        ({"shards": 3}, EngineCrashed, "engine-crashed"),
    ],
)
def test_the_end_of_a_process_is_told_once_and_then_it_is_over(talk, said, kind, slug):
    conversation = talk(said)
    for expected_kind, expected in ((kind, slug), (EngineCrashed, "session-dead")):
        with pytest.raises(expected_kind) as caught:
            conversation.run(())
        assert (type(caught.value), caught.value.slug) == (expected_kind, expected)
        assert caught.value.cure


def test_a_process_killed_for_memory_without_a_limit_has_crashed(talk):
    with pytest.raises(EngineCrashed):
        talk(death(None, cause="memory"), limits=Limits()).run(())


@pytest.mark.parametrize(
    ("code", "cause", "words"),
    [
        (None, "", "its process ended"),
        (None, "lost", "lost"),
        (0, "", "exit code 0"),
        (9, "", "exit code 9"),
        (-11, "", "SIGSEGV"),
        (-99, "", "signal 99"),
    ],
)
def test_how_a_process_ended(talk, code, cause, words):
    with pytest.raises(EngineCrashed, match=words):
        talk(death(code, cause=cause)).run(())


def test_the_last_words_are_those_about_a_fatal_error(talk):
    lines = ["early", "before", "near", "Fatal Python error: Aborted", "thread", "frame", *"abcdefgh"]
    for told, expected in (
        (lines, "before | near | Fatal Python error: Aborted | thread | frame"),
        (lines[6:], "c | d | e | f | g | h"),
    ):
        with pytest.raises(EngineCrashed) as caught:
            talk(death(1, tail="\n".join([*told, "", "Extension modules: numpy"]))).run(())
        assert caught.value.message.endswith(f"; it last printed: {expected}")
    with pytest.raises(EngineCrashed) as caught:
        talk(death(1)).run(())
    assert "printed" not in caught.value.message


@pytest.mark.parametrize(
    ("said", "kind", "slug", "cure"),
    [
        (failure("usage", "no", "bad-option", "do"), UsageError, "bad-option", "do"),
        (failure("data", "no", "bad-feed"), DataError, "bad-feed", NO_CURE),
        (failure("ModelError", "no", "bad-model", "do"), ModelError, "bad-model", "do"),
        (failure("Strange", "no", "odd", "do"), RunFailed, "odd", "do"),
        (failure("usage", "no", "Not A Slug", "do"), RunFailed, "run-failed", None),
        (failure("build", "no such op"), BuildFailed, "build-failed", None),
        (failure("adapter", "AttributeError: no use_bf16_packed (adapter.py:7)"), EngineMissing, "adapter", None),
        (failure("run", "no"), RunFailed, "run-failed", None),
    ],
)
def test_a_refusal_is_an_error_of_its_kind_and_the_conversation_goes_on(talk, said, kind, slug, cure):
    conversation = talk(said, {"shards": []})
    with pytest.raises(kind) as caught:
        conversation.run(())
    assert caught.value.slug == slug
    assert cure is None or caught.value.cure == cure
    assert conversation.run(()) == []


def test_a_lack_of_memory_ends_the_process(talk):
    conversation = talk(failure("memory", "bad_alloc"))
    with pytest.raises(EngineOutOfMemory):
        conversation.run(())
    assert conversation.worker.ended == ["it ran out of memory"]
    with pytest.raises(EngineCrashed):
        conversation.run(())


def test_an_interruption_closes_the_worker(talk):
    conversation = talk(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        conversation.run(())
    assert conversation.worker.ended == ["closed"]


@pytest.mark.parametrize(
    ("held", "limits", "kills"),
    [
        (RETIRED_BYTES, Limits(), 0),
        (RETIRED_BYTES + 1, Limits(), 1),
        (3 << 20, LIMITS, 1),
        (2 << 20, LIMITS, 0),
    ],
)
def test_a_process_that_holds_much_memory_is_not_kept(talk, held, limits, kills):
    conversation = talk({"resident_bytes": held}, limits=limits)
    conversation.end()
    assert len(conversation.worker.ended) == kills
    assert conversation.worker.asked[0][0] == {"op": "close"}
    assert conversation.worker.asked[0][1] <= 10


@pytest.mark.parametrize(
    ("first", "later", "ended"),
    [
        (2 << 30, 2 << 30, []),
        (2 << 30, 3 << 30, []),
        (2 << 30, (3 << 30) + 1, ["it uses too much memory"]),
        (LIBRARIES_BYTES + RETIRED_BYTES + 1, 0, ["it uses too much memory"]),
    ],
)
def test_what_an_engine_holds_from_its_first_model_on_is_its_own(talk, first, later, ended):
    """CUDA and TensorRT hold 2 GB: every build began with four seconds of loading them again."""
    built = {"inputs": None, "outputs": None, "info": {}}
    conversation = talk(built, {"resident_bytes": first}, built, {"resident_bytes": later}, limits=Limits())
    for _ in range(2):
        conversation.ask("compile")
        conversation.end()
    assert conversation.worker.ended == ended


def test_what_was_delivered_is_withdrawn(talk, tmp_path):
    conversation, withdrawn = talk(), []
    conversation.worker.alive = False
    conversation.worker.transport.withdraw = withdrawn.append
    assert conversation.deliver(tmp_path / "m.onnx") == str(tmp_path / "m.onnx")
    assert conversation.deliver_file(tmp_path / "e.py") == str(tmp_path / "e.py")
    conversation.end()
    assert withdrawn == [str(tmp_path / "m.onnx"), str(tmp_path / "e.py")]
    assert conversation.worker.asked == []
