"""The engine's process: its answers to requests, which nothing disturbs, and how it describes errors."""

import gc
import json
import linecache
import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import tensortriage_worker
from tensortriage.errors import EngineMissing
from tensortriage_worker import exchange, script_adapter, serve
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.exchange import Item
from tensortriage_worker.serve import describe

ADAPTER = "an_adapter_of_tests"


class Session:
    """Doubles its input."""

    inputs, outputs = None, [{"name": "y", "dtype": "float32", "shape": None}]

    def __init__(self, options):
        self.info, self.closed = {"options": options}, False

    def run(self, feed):
        return [Item("y", feed["x"].array * 2)]

    def plan(self):
        return [{"name": "r", "nodes": []}]

    def answer(self, question, feed, arguments, spill):
        spill.add(Item("spilled", np.ones(1)))
        return {"question": question, "fed": sorted(feed), **arguments}, [Item("given", np.zeros(1))]

    def close(self):
        self.closed = True


@pytest.fixture
def server(monkeypatch):
    """Return a server that has an adapter, and takes part of the collector's state back."""
    adapter = types.ModuleType(ADAPTER)
    adapter.probe = lambda options: {"seen": options}
    adapter.compile = lambda model, options: Session(options)
    adapter.answer = lambda question, model, options: (
        {"model": str(model), "question": question},
        [Item("a", np.ones(1))],
    )
    monkeypatch.setitem(sys.modules, ADAPTER, adapter)
    yield serve._Server()
    gc.unfreeze()


def ask(server, operation, **fields):
    answer = server.handle({"op": operation, "adapter": ADAPTER, "options": {}, "shards": [], **fields})
    assert answer.pop("seconds") >= 0
    return answer


def taken(answer):
    return {item.name: item.array.tolist() for item in exchange.take(answer["shards"])}


def test_a_model_is_built_run_told_and_closed(server, tmp_path):
    folders = [str(tmp_path)]
    assert ask(server, "probe", options={"a": "1"}) == {"info": {"seen": {"a": "1"}}}
    built = ask(server, "compile", model="m.onnx", options={"a": "1"})
    assert built == {"inputs": None, "outputs": Session.outputs, "info": {"options": {"a": "1"}}}
    session = server._session
    shards = exchange.put(folders, [Item("x", np.float32([1, 2]))])
    assert taken(ask(server, "run", shards=shards, folders=folders)) == {"y": [2, 4]}
    assert ask(server, "plan") == {"plan": [{"name": "r", "nodes": []}]}
    for _ in range(2):
        assert ask(server, "close")["resident_bytes"] > 1 << 20
    assert session.closed
    assert ask(server, "plan")["error"]["kind"] == "run"
    assert list(tmp_path.iterdir()) == []


def test_questions_are_of_the_session_or_of_a_model(server, tmp_path):
    ask(server, "compile", model="m.onnx")
    folders = [str(tmp_path)]
    shards = exchange.put(folders, [Item("x", np.ones(1))])
    answer = ask(server, "answer", question="why", shards=shards, folders=folders, arguments={"n": 3})
    assert answer["info"] == {"question": "why", "fed": ["x"], "n": 3}
    assert taken(answer) == {"spilled": [1], "given": [0]}
    answer = ask(server, "answer", question="why", model="m.onnx", folders=folders)
    assert answer["info"] == {"model": "m.onnx", "question": "why"}
    assert taken(answer) == {"a": [1]}


def test_what_outlives_sessions_is_kept_from_the_collector_once(server):
    ask(server, "close")
    gc.unfreeze()  # what tests before have kept
    ask(server, "compile", model="m.onnx")
    ask(server, "close")
    frozen = gc.get_freeze_count()
    assert frozen > 0
    ask(server, "compile", model="m.onnx")
    ask(server, "close")
    assert gc.get_freeze_count() <= frozen


def test_whoever_is_here_says_so(server, monkeypatch):
    found = server.hello()
    assert (found["pid"], found["executable"], found["numpy"], found["ml_dtypes"]) == (
        os.getpid(), sys.executable, np.__version__, True,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "numpy", None)
    found = server.hello()
    assert (found["numpy"], "ml_dtypes" in found) == ("", False)
    assert found["reason"]


def test_a_failure_is_an_answer(server):
    assert ask(server, "no_such_question")["error"]["kind"] == "build"
    assert ask(server, "probe", adapter="no_such_adapter")["error"]["message"].startswith("ModuleNotFoundError")
    assert set(serve.ADAPTERS) >= {"onnxruntime", "script"}


@pytest.mark.parametrize(
    ("adapter", "text", "kind"),
    [
        ("ncnn", "None.no_such_option", "adapter"),
        ("ncnn", "int(no_such_word=1)", "adapter"),
        ("ncnn", "{}['lost']", "adapter"),
        ("ncnn", "import no_such_module", "adapter"),
        ("ncnn", "raise RuntimeError('refused')", "build"),
        ("ncnn", "raise AttributeError('PyTorch is not installed next to it')", "build"),
        ("ncnn", "json.loads('x')", "build"),
        ("ncnn", "json.loads(None)", "build"),  # in the lines of another package
        (script_adapter.__name__, "None.no_such_option", "build"),
    ],
)
def test_an_adapters_own_mistake_is_no_refusal(adapter, text, kind):
    place = Path(serve.__file__).with_name("an_adapter.py")
    linecache.cache[str(place)] = (len(text), None, [text], str(place))
    with pytest.raises(Exception) as caught:
        exec(compile(text, str(place), "exec"), {"json": json})
    told = describe(caught.value, during="compile", adapter=adapter)
    assert (told["kind"], told["slug"]) == (kind, "")
    assert ("(an_adapter.py:1)" in told["message"]) is (kind == "adapter")


class WithSlug(Exception):
    slug = "a-slug"


class OwnKind(Exception):
    kind = types.SimpleNamespace(value="usage")


@pytest.mark.parametrize(
    ("error", "during", "kind", "message"),
    [
        (ValueError("no\n  such"), "compile", "build", "ValueError: no such"),
        (ValueError(), "run", "run", "ValueError"),
        (ValueError("x"), "plan", "run", "ValueError: x"),
        (ValueError("x"), "close", "run", "ValueError: x"),
        (ValueError("x"), "probe", "build", "ValueError: x"),
        (SystemExit(3), "run", "run", "it called sys.exit(3)"),
        (AdapterError(AdapterFailure.BUILD, "refused"), "compile", "build", "refused"),
        (MemoryError("lots"), "run", "memory", "MemoryError: lots"),
        (RuntimeError("std::bad_alloc"), "run", "memory", "RuntimeError: std::bad_alloc"),
        (AdapterError(AdapterFailure.MEMORY, "the device is full"), "run", "memory", "the device is full"),
        (OwnKind("x"), "run", "run", "OwnKind: x"),
    ],
)
def test_errors_without_a_slug(error, during, kind, message):
    told = describe(error, during=during)
    assert (told["kind"], told["slug"], told["cure"]) == (kind, "", "")
    assert told["message"].startswith(message)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (AdapterError(AdapterFailure.USAGE, "no", "slug", "do"), ("usage", "no", "slug", "do")),
        (EngineMissing("no", slug="slug", cure="do"), ("EngineMissing", "no", "slug", "do")),
        (WithSlug("no"), ("WithSlug", "no", "a-slug", "")),
        (exchange.NoRoom("no"), ("NoRoom", "no", "exchange-full", exchange.NoRoom.cure)),
    ],
)
def test_errors_with_a_slug_keep_their_words(error, told):
    found = describe(error, during="run")
    assert (found["kind"], found["message"], found["slug"], found["cure"]) == told


def raised(text, file="mine.py"):
    """Return the error that a script raises."""
    try:
        exec(compile(text, file, "exec"), {"np": np})
    except Exception as error:
        return error


def test_the_place_of_an_error_is_in_the_users_code(tmp_path):
    (tmp_path / "mine.py").write_text("\n\nraise MemoryError('by hand')")
    text = (tmp_path / "mine.py").read_text()
    found = describe(raised(text, str(tmp_path / "mine.py")), during="run")
    assert (found["kind"], found["message"]) == ("run", "MemoryError: by hand (mine.py:3)")
    allocator = describe(raised("\nnp.ones(1 << 55)"), during="run")
    assert (allocator["kind"], allocator["message"].endswith("(mine.py:2)")) == ("memory", True)
    inside = describe(raised("1 / 0", "/x/site-packages/module.py"), during="run")
    assert "module.py" not in inside["message"]


SCRIPT = """
import os, sys
print("printed"); os.system("echo native"); sys.stdin.read()
class Engine:
    def compile(self, model, options): return self
    def run(self, feed): return {}
"""


def start(supervisor, home):
    code = "import sys; sys.path.insert(0, sys.argv[3]); from tensortriage_worker.serve import main; main()"
    package = str(Path(tensortriage_worker.__file__).parents[1])
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, "-c", code, str(home), str(supervisor), package], text=True, **pipes)


def test_what_a_script_prints_does_not_disturb_the_answers(tmp_path):
    (tmp_path / "engine.py").write_text(SCRIPT)
    options = {"file": str(tmp_path / "engine.py")}
    requests = [{"op": "compile", "adapter": "script", "model": "m", "options": options, "id": 5}, {"op": "close"}]
    done = start(os.getpid(), tmp_path)
    out, err = done.communicate("".join(json.dumps(request) + "\n" for request in requests), timeout=60)
    hello, built, closed = map(json.loads, out.splitlines())
    assert (hello["pid"], built["id"], closed["id"]) == (done.pid, 5, None)
    assert built["inputs"] is None
    assert (err.split(), done.returncode) == (["printed", "native"], 0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere nobody tells that the supervisor is gone")
def test_it_does_not_begin_for_a_supervisor_that_is_gone(tmp_path):
    done = start(os.getppid(), tmp_path)
    out, _ = done.communicate("", timeout=60)
    assert (out, done.returncode) == ("", 1)
