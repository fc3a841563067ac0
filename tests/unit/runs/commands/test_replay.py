import json
from typing import get_args

import pytest

from tensortriage.errors import DataError
from tensortriage.runs.commands.replay import Entry, OutcomeWord, Replay, load_replay
from tensortriage.search.problem import CandidateOutcome

FIRST = Entry(0, "outputs", "abc", 0, 12, success=False, outcome="same", signature="exit code 1")
SECOND = Entry(1, "", "def", 2, None, success=True, outcome="pass")


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "replay.json"
    replay = Replay(path, "model+command")
    replay.add(FIRST)
    replay.add(SECOND)
    assert load_replay(path, "model+command") == (FIRST, SECOND)


def test_the_layout_is_polygraphys(tmp_path):
    path = tmp_path / "replay.json"
    Replay(path, "x").add(FIRST)
    entry = json.loads(path.read_text())["_N0_outputs"]
    assert entry["polygraphy_class"] == "IterationContext"
    assert entry["state"]["num_nodes"] == 12
    assert (entry["iteration_info"], entry["success"]) == ({"iteration": 0}, False)


def test_the_twin_has_the_running_check_failed(tmp_path):
    replay = Replay(tmp_path / "replay.json", "x")
    replay.add(FIRST)
    replay.about_to_check(SECOND)
    assert replay.twin.name == "replay_skip_current.json"
    assert load_replay(replay.twin, "x") == (FIRST, SECOND)


def test_a_foreign_replay_is_refused(tmp_path):
    path = tmp_path / "replay.json"
    Replay(path, "one model").add(FIRST)
    with pytest.raises(DataError) as caught:
        load_replay(path, "another model")
    assert caught.value.slug == "replay-foreign"


POLYGRAPHY = {
    "_N0_outputs": {
        "state": {"num_nodes": 3}, "iteration_info": {"iteration": 0}, "success": True,
        "polygraphy_class": "IterationContext",
    }
}  # fmt: skip


@pytest.mark.parametrize(
    ("content", "slug"),
    [
        (json.dumps(POLYGRAPHY), "replay-foreign"),
        ("{", "replay-unreadable"),
        ("[]", "replay-unreadable"),
        (None, "replay-unreadable"),
        ('{"tensortriage": {"format": "tensortriage.replay/1", "bound_to": "x"}, "_N0": {}}', "replay-unreadable"),
        ('{"tensortriage": {"format": "tensortriage.replay/1", "bound_to": "x"}, "_N0": 3}', "replay-unreadable"),
    ],
)
def test_damaged_and_unbound_replays_are_refused(tmp_path, content, slug):
    path = tmp_path / "replay.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataError) as caught:
        load_replay(path, "x")
    assert caught.value.slug == slug


def test_an_edited_replay_is_damaged(tmp_path):
    path = tmp_path / "replay.json"
    replay = Replay(path, "x")
    replay.add(FIRST)
    path.write_text(path.read_text().replace('"success": false', '"success": true'))
    with pytest.raises(DataError) as caught:
        load_replay(path, "x")
    assert caught.value.slug == "replay-unreadable"
    assert "checksum" in caught.value.message


def test_where_there_is_one_candidate_polygraphys_replays_do(tmp_path):
    path = tmp_path / "replay.json"
    path.write_text(json.dumps(POLYGRAPHY))
    (entry,) = load_replay(path, "anything", unbound=True)
    assert (entry.iteration, entry.phase, entry.nodes, entry.success, entry.outcome) == (0, "outputs", 3, True, "pass")
    Replay(path, "another").add(FIRST)
    with pytest.raises(DataError):
        load_replay(path, "anything", unbound=True)


@pytest.mark.parametrize("iteration", ["c", 0.5, True, None, [0]])
def test_an_iteration_without_a_number_is_damage(tmp_path, iteration):
    path = tmp_path / "replay.json"
    check = {**POLYGRAPHY["_N0_outputs"], "iteration_info": {"iteration": iteration}}
    path.write_text(json.dumps({"_N0_outputs": check}))
    with pytest.raises(DataError) as caught:
        load_replay(path, "x", unbound=True)
    assert caught.value.slug == "replay-unreadable"


def test_a_size_that_is_none_is_damage(tmp_path):
    path = tmp_path / "replay.json"
    path.write_text(json.dumps({"_N0": {**POLYGRAPHY["_N0_outputs"], "state": {"num_nodes": "3"}}}))
    with pytest.raises(DataError, match="num_nodes"):
        load_replay(path, "x", unbound=True)


@pytest.mark.parametrize("outcome", [3, "3", "passed", "", ["same"]])
def test_an_outcome_in_no_known_word_is_damage(tmp_path, outcome):
    path = tmp_path / "replay.json"
    path.write_text(json.dumps({"_N0": {**POLYGRAPHY["_N0_outputs"], "state": {"outcome": outcome}}}))
    with pytest.raises(DataError, match="outcome") as caught:
        load_replay(path, "x", unbound=True)
    assert caught.value.slug == "replay-unreadable"


def test_the_words_of_outcomes_are_those_of_the_search():
    assert set(get_args(OutcomeWord)) == {outcome.value for outcome in CandidateOutcome}
