import os
import subprocess
import sys
from pathlib import Path

import pytest

from tensortriage.errors import StoreError
from tensortriage.values.files import partial_name, placed, read_regular, sweep_partial, write_text


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "result.json"
    path.write_bytes(b"earlier")
    with placed(path) as file:
        file.write(b"later")
        assert path.read_bytes() == b"earlier"
    assert path.read_bytes() == b"later"
    assert list(tmp_path.iterdir()) == [path]


def test_what_fails_leaves_nothing(tmp_path):
    path = tmp_path / "result.json"
    with pytest.raises(ValueError, match="no"), placed(path):
        raise ValueError("no")
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_its_place_is_replaced_and_not_written_through(tmp_path):
    (tmp_path / "mine").write_text("mine")
    path = tmp_path / "result.json"
    path.symlink_to("mine")
    with placed(path) as file:
        file.write(b"new")
    assert (tmp_path / "mine").read_text() == "mine"
    assert path.read_bytes() == b"new"
    assert not path.is_symlink()


def test_names_until_then_are_never_the_same(tmp_path):
    assert len({partial_name(tmp_path / "x") for _ in range(100)}) == 100


def test_a_long_name_is_cut(tmp_path):
    path = tmp_path / ("é" * 120)  # 240 bytes; 255 is the limit of most file systems
    with placed(path) as file:
        file.write(b"x")
    assert path.read_bytes() == b"x"


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    token = "0123456789abcdef"
    gone = tmp_path / f".x.{dead.pid}-{token}.partial"
    folder = tmp_path / f".x.{dead.pid}-{token[::-1]}.partial"
    alive = tmp_path / f".x.{os.getpid()}-{token}.partial"
    other = tmp_path / f".y.{dead.pid}-{token}.partial"
    foreign = tmp_path / ".x.partial"
    for path in (gone, alive, other, foreign):
        path.write_text("")
    folder.mkdir()
    (folder / "inner").write_text("")
    sweep_partial(tmp_path / "x")
    assert sorted(tmp_path.iterdir()) == sorted([alive, other, foreign])


def test_a_text_is_there_as_a_whole_or_not_at_all(tmp_path):
    path = tmp_path / "script.py"
    write_text(path, "x = '\udcff'\n")
    assert path.read_text() == "x = '\\udcff'\n"
    with pytest.raises(StoreError) as caught:
        write_text(tmp_path / "no/such/folder.py", "x")
    assert caught.value.slug == "file-unwritable"
    assert [one.name for one in tmp_path.iterdir()] == ["script.py"]


def test_a_small_file_takes_no_room_for_the_largest_that_may_be_read(tmp_path):
    path = tmp_path / "small"
    path.write_bytes(b"x" * 5)
    assert read_regular(path, most=1 << 50) == b"x" * 5  # a buffer of that size no machine has
    grown = Path("/proc/self/status")  # a regular file that says it is empty
    if grown.exists():
        assert b"VmRSS" in read_regular(grown)
