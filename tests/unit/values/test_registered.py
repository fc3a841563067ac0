"""Entry points as they lie in the folders of distributions."""

import importlib.metadata
import sys

import pytest

from tensortriage.values.registered import OWN, EntryPoint, registered

GROUP = "some.group"


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """Return a function that puts a distribution into the front of the path, or behind all others."""

    def put(name, rows, *, behind=False):
        folder = tmp_path / f"at-{len(list(tmp_path.iterdir()))}"
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(rows)
        monkeypatch.setattr(sys, "path", [*sys.path, str(folder)] if behind else [str(folder), *sys.path])
        return folder

    return put


def test_entries_of_a_group_by_name(distribution):
    distribution(
        "Some_Package", "[other]\na = a:b\n[some.group]\n# none\ntwo = m : c.d [extra]\n\none=m:c\n[more]\nz=z:z\n"
    )
    assert registered(GROUP) == {
        "one": EntryPoint("one", "m:c", "some-package"),
        "two": EntryPoint("two", "m:c.d", "some-package"),
    }
    assert {each.name for each in importlib.metadata.entry_points(group=GROUP)} == {"one", "two"}


def test_what_is_installed_is_what_the_standard_library_finds():
    for group in ("console_scripts", "pytest11", "tensortriage.engines", "tensortriage.commands"):
        theirs = {
            each.name: each.value.partition("[")[0].strip() for each in importlib.metadata.entry_points(group=group)
        }
        assert {name: each.value for name, each in registered(group).items()} == theirs


def test_a_distribution_that_is_there_twice_is_the_first(distribution):
    distribution("package", "[some.group]\none = m:new\n")
    distribution("package", "[some.group]\none = m:old\ntwo = m:old\n", behind=True)
    assert {name: each.value for name, each in registered(GROUP).items()} == {"one": "m:new"}


def test_of_two_distributions_with_one_name_ours_counts_and_else_the_first(distribution):
    distribution("package", "[some.group]\none = m:mine\n")
    distribution("another", "[some.group]\none = m:other\n", behind=True)
    assert registered(GROUP)["one"].distribution == "package"
    distribution("package", "[tensortriage.engines]\nmnn = m:mine\n")
    assert registered("tensortriage.engines")["mnn"].distribution == OWN


def test_odd_folders_are_passed_over(distribution, tmp_path):
    folder = distribution("package", "[some.group]\none = m:c\n")
    (folder / "empty-1.dist-info").mkdir()
    (folder / "odd-1.dist-info").mkdir()
    (folder / "odd-1.dist-info" / "entry_points.txt").write_bytes(b"[some.group]\none = \xff\n")
    sys.path.insert(0, str(tmp_path / "nowhere"))
    assert list(registered(GROUP)) == ["one"]


def test_what_is_registered_is_imported_when_it_is_loaded():
    assert EntryPoint("one", "json.decoder:JSONDecoder.decode", "").load() is __import__("json").JSONDecoder.decode


def test_its_first_line_is_read_from_the_source(distribution):
    folder = distribution("package", "")
    (folder / "heavy").mkdir()
    (folder / "heavy" / "__init__.py").write_text(
        'raise ImportError\ndef one(a,\n        b: int) -> None:\n    """Do it all.\n\n    More."""\n'
    )
    (folder / "heavy" / "inner.py").write_text('def two():\n    pass\n\ndef three():\n    """Only this."""\n')
    assert EntryPoint("one", "heavy:one", "package").summary() == "Do it all."
    assert EntryPoint("three", "heavy.inner:three", "package").summary() == "Only this."
    assert EntryPoint("two", "heavy.inner:two", "package").summary() == "From the package package."
    assert EntryPoint("four", "heavy.inner:four", "package").summary() == "From the package package."
    assert EntryPoint("four", "nowhere:four", "package").summary() == "From the package package."
