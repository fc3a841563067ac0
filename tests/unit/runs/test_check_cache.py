import contextlib
import dataclasses
import functools
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortriage.errors import StoreError
from tensortriage.runs.check_cache import CheckCache, digest
from tensortriage.runs.observation.derived import Derived


@dataclasses.dataclass(frozen=True)
class Answer:
    error: float
    names: tuple[str, ...] = ()


def test_an_answer_is_asked_for_once_and_survives_reopening(tmp_path):
    asked = []

    def ask():
        asked.append(1)
        return Answer(float("inf"), ("x",))

    for _ in range(2):
        cache = CheckCache(tmp_path / "checks.sqlite")
        assert Derived(Answer, "key", "question", cache).of(ask) == Answer(float("inf"), ("x",))
        cache.close()
    assert len(asked) == 1


def test_an_answer_of_another_shape_is_asked_for_again(tmp_path):
    cache = CheckCache(tmp_path / "checks.sqlite")
    cache.put("key", "question", {"something": "else"}, seconds=0.0)
    assert cache.get("key", Answer) is None
    assert Derived(Answer, "key", "question", cache).of(lambda: Answer(1.0)) == Answer(1.0)
    assert cache.get("key", Answer) == Answer(1.0)
    cache.close()


def test_a_file_that_is_no_cache_is_an_error_and_is_left_alone(tmp_path):
    path = tmp_path / "checks.sqlite"
    path.write_bytes(b"not a database at all, but long enough to be read as one" * 20)
    with pytest.raises(StoreError) as caught:
        CheckCache(path)
    assert caught.value.slug == "check-cache-unusable"
    assert path.read_bytes().startswith(b"not a database")
    assert str(path) not in {file.path for file in psutil.Process().open_files()}


WRITE_FOREVER = """
import itertools, pathlib, sys
from tensortriage.runs.check_cache import CheckCache
cache = CheckCache(pathlib.Path(sys.argv[1]))
for number in itertools.count():
    cache.put(str(number), "q", {"error": float(number), "names": []}, seconds=0.0)
"""


def test_a_killed_writer_loses_no_finished_answer(tmp_path):
    path = tmp_path / "checks.sqlite"
    writer = subprocess.Popen([sys.executable, "-c", WRITE_FOREVER, str(path)])
    while not path.exists() or _count(path) < 50:
        assert writer.poll() is None
    writer.kill()
    writer.wait()
    cache = CheckCache(path)
    count = len(cache)
    assert count >= 50
    assert all(cache.get(str(number), Answer) == Answer(float(number)) for number in range(count))
    cache.close()


def _count(path):
    database = sqlite3.connect(path)
    try:
        return database.execute("SELECT COUNT(*) FROM checks").fetchone()[0]
    except sqlite3.Error:
        return 0
    finally:
        database.close()


@given(st.dictionaries(st.text(), st.integers()), st.lists(st.text()))
def test_a_digest_ignores_the_order_of_a_dictionary_and_nothing_else(mapping, words):
    reordered = dict(reversed(list(mapping.items())))
    assert digest(mapping, words) == digest(reordered, words)
    assert digest(mapping, [*words, "more"]) != digest(mapping, words)


def read_all(path, count):
    """Read every answer."""
    with contextlib.closing(CheckCache(path)) as cache:
        for number in range(count):
            cache.get(f"key {number}", str)


def test_a_cache_that_is_damaged_or_foreign_is_an_error_whenever_it_shows(tmp_path):
    foreign = sqlite3.connect(tmp_path / "foreign.sqlite")
    foreign.execute("CREATE TABLE checks (other TEXT)")
    foreign.close()
    with pytest.raises(StoreError):
        CheckCache(tmp_path / "foreign.sqlite")
    path = tmp_path / "checks.sqlite"
    cache = CheckCache(path)
    for number in range(200):
        cache.put(f"key {number}", "question", "x" * 1000, seconds=0.0)
    cache.close()
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))
    with pytest.raises(StoreError) as caught:
        read_all(path, 200)
    assert caught.value.slug == "check-cache-unusable"


def test_a_damaged_answer_is_asked_for_again(tmp_path):
    path = tmp_path / "checks.sqlite"
    cache = CheckCache(path)
    cache.put("key", "question", 1.5, seconds=0.0)
    cache.put("other", "question", 2.5, seconds=0.0)
    cache.close()
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE checks SET answer = '9.5' WHERE key = 'key'")
    cache = CheckCache(path)
    assert cache.get("key", float) is None
    assert Derived(float, "key", "question", cache).of(lambda: 1.5) == 1.5
    assert cache.get("key", float) == 1.5
    assert cache.get("other", float) == 2.5
    cache.close()


def test_question_and_answer_may_name_a_file_of_any_bytes(tmp_path):
    with contextlib.closing(CheckCache(tmp_path / "checks.sqlite")) as cache:
        cache.put("key", "outputs on m\udcff.npz", ["m\udcff.npz", "ä"], seconds=0.0)
        assert cache.get("key", list[str]) == ["m\udcff.npz", "ä"]


def test_threads_ask_one_cache_in_turn(tmp_path, request):
    """Two threads in one connection, from Python 3.12 on: an error of SQLite, or the answer to another question."""
    request.addfinalizer(functools.partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(1e-6)
    with contextlib.closing(CheckCache(tmp_path / "checks.sqlite")) as cache, ThreadPoolExecutor(16) as pool:
        cache.put("0", "question", 0.0, seconds=0.0)

        def ask(number):
            cache.put(str(number), "question", float(number), seconds=0.0)
            return all(cache.get(str(key), float) == key for key in (number, 0))

        assert all(pool.map(ask, range(400)))
        assert len(cache) == 400
