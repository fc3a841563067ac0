import pytest

from tensortriage.errors import StoreError, UsageError
from tensortriage.runs.case import LOCK, Case


def test_a_case_can_be_reopened(tmp_path):
    with Case(tmp_path / "case") as case:
        case.checks.put("key", "question", 1.5, seconds=0.0)
        case.write("note.json", {"format": "x/1"})
    with Case(tmp_path / "case") as again:
        assert again.checks.get("key", float) == 1.5
        assert (again.folder / "note.json").exists()


def test_a_directory_with_other_things_is_refused_and_untouched(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError) as caught:
        Case(tmp_path)
    assert caught.value.slug == "case-foreign-directory"
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_in_the_way_is_refused(tmp_path):
    path = tmp_path / "case"
    path.write_text("")
    with pytest.raises(UsageError) as caught:
        Case(path)
    assert caught.value.slug == "case-not-a-directory"


def test_an_impossible_path_is_a_store_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as caught:
        Case(tmp_path / "file" / "case")
    assert caught.value.slug == "case-unwritable"


def test_temporary_files_of_a_killed_run_are_removed_on_open(tmp_path):
    with Case(tmp_path / "case") as case:
        left = case.temporary / "triage-x" / "model.onnx"
    left.parent.mkdir(parents=True)
    left.write_text("left behind")
    with Case(tmp_path / "case"):
        assert not left.exists()


def test_two_commands_do_not_work_in_one_case(tmp_path, monkeypatch):
    monkeypatch.setattr("tensortriage.runs.case.PATIENCE_SECONDS", 0.0)
    with Case(tmp_path / "case") as case:
        (case.temporary / "mine").mkdir(parents=True)
        with pytest.raises(UsageError) as caught:
            Case(tmp_path / "case")
        assert caught.value.slug == "case-in-use"
        assert (case.temporary / "mine").exists()
    Case(tmp_path / "case").close()


def test_a_case_that_no_other_command_knows_is_not_locked(tmp_path):
    with Case(tmp_path / "case", own=True) as case:
        case.checks.put("key", "question", 1.5, seconds=0.0)
        assert not (case.folder / LOCK).exists()
    with Case(tmp_path / "case") as case:
        assert case.checks.get("key", float) == 1.5
        assert (case.folder / LOCK).exists()


@pytest.mark.parametrize("name", ["runs", "tmp", "checks.sqlite", ".lock", "runs/key", "engines", "case.json"])
def test_links_inside_a_case_are_not_followed_out_of_it(name, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.txt").write_text("mine")
    folder = tmp_path / "case"
    Case(folder).close()
    (folder / name).unlink(missing_ok=True) if not (folder / name).is_dir() else (folder / name).rmdir()
    (folder / name).symlink_to(outside)
    with pytest.raises(UsageError) as caught:
        Case(folder)
    assert caught.value.slug == "case-has-link"
    assert name in caught.value.message
    assert [path.name for path in outside.iterdir()] == ["mine.txt"]


def test_the_case_itself_may_be_a_link(tmp_path):
    (tmp_path / "large disk").mkdir()
    (tmp_path / "case").symlink_to("large disk")
    Case(tmp_path / "case").close()
    assert (tmp_path / "large disk" / "checks.sqlite").exists()


def test_a_case_that_was_killed_before_its_first_check_goes_on(tmp_path):
    (tmp_path / "case/runs").mkdir(parents=True)
    (tmp_path / "case/.lock").touch()
    with Case(tmp_path / "case") as case:
        case.checks.put("key", "question", 1.5, seconds=0.0)
    (tmp_path / "mine/runs/1").mkdir(parents=True)
    with pytest.raises(UsageError):
        Case(tmp_path / "mine")


def test_a_path_that_sqlite_cannot_open_is_told(tmp_path):
    folder = tmp_path.joinpath(*["d" * 100] * 5)
    with pytest.raises(UsageError) as caught:
        Case(folder)
    assert caught.value.slug == "case-path-too-long"
    assert not folder.exists()
