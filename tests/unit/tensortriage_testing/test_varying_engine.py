"""The engine whose builds differ: what is drawn, forced and told, and when the planted fault shows."""

import contextlib
import json

import numpy as np
import pytest

from tensortriage.errors import BuildFailed, UsageError
from tensortriage.model.model import Model
from tensortriage_testing import VaryingEngine, feed_for, mlp, save_model


class Bench:
    """One model, and what builds of it give."""

    def __init__(self, folder):
        proto = mlp()
        self.folder = folder
        self.path = save_model(proto, folder / "m.onnx")
        self.feed = feed_for(proto)
        self.names = [node.name for node in Model.load(self.path).graph.nodes]
        self.right, _ = self.built(tactics="1")

    def built(self, **options):
        """Return the outputs of a build, and the tactic of every node."""
        with contextlib.closing(VaryingEngine().compile(self.path, options)) as session:
            return session.run(self.feed), session.tactics()

    def is_wrong(self, outputs):
        return any(not np.allclose(outputs[name], array, atol=1e-6) for name, array in self.right.items())

    def record(self, **tactics):
        """Return a file that gives some nodes their tactics."""
        path = self.folder / "tactics.json"
        choices = [{"layer": name, "tactic": hex(number)} for name, number in tactics.items()]
        path.write_text(json.dumps({"choices": choices}))
        return str(path)


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_the_fault_shows_where_its_node_drew_tactic_zero(bench):
    fault = {"node": bench.names[0], "kind": "scale", "draws": str(bench.folder / "draws")}
    seen = set()
    for _ in range(12):
        outputs, choices = bench.built(**fault)
        assert [choice.layer for choice in choices] == bench.names
        drawn = int(choices[0].tactic, 16)
        assert drawn < 3
        assert bench.is_wrong(outputs) == (drawn == 0)
        seen.add(drawn)
    assert seen == {0, 1, 2}


def test_a_file_of_draws_repeats_the_sequence(bench):
    def sequence(name):
        return [[c.tactic for c in bench.built(draws=str(bench.folder / name))[1]] for _ in range(4)]

    first = sequence("one")
    assert sequence("two") == first
    assert sequence("one") != first  # it continues counting


def test_a_second_node_must_have_drawn_zero_as_well(bench):
    first, second = bench.names[0], bench.names[1]
    fault = {"node": first, "kind": "scale", "also": second}
    both = bench.record(**{first: 0, second: 0})
    assert bench.is_wrong(bench.built(load_tactics=both, **fault)[0])
    one = bench.record(**{first: 0, second: 1})
    assert not bench.is_wrong(bench.built(load_tactics=one, **fault)[0])


def test_given_tactics_are_taken_and_must_exist(bench):
    first = bench.names[0]
    _, choices = bench.built(load_tactics=bench.record(**{first: 2}))
    assert choices[0].tactic == "0x2"
    with pytest.raises(BuildFailed, match="no tactic 3"):
        bench.built(load_tactics=bench.record(**{first: 3}))
    with pytest.raises(BuildFailed, match="no entry for 'unknown'"):
        bench.built(load_tactics=bench.record(unknown=0))


def test_keyed_tactics_need_an_entry_of_the_timing_cache(bench):
    first = bench.names[0]
    given = {"keyed": "true", "timing_cache": str(bench.folder / "cache")}
    record = bench.record(**{first: 2})
    with pytest.raises(BuildFailed, match="no entry"):
        bench.built(load_tactics=record, **given)
    _, choices = bench.built(**given)  # writes the cache
    assert all(choice.key for choice in choices)
    _, choices = bench.built(load_tactics=record, **given)
    assert choices[0].tactic == "0x2"


def test_an_engine_that_is_saved_says_what_it_is_made_of(bench):
    path = bench.folder / "saved"
    engine = VaryingEngine()
    options = engine.saving(engine.pinning({"tactics": "4"}, bench.record(**{bench.names[0]: 3})), path)
    _, choices = bench.built(**options)
    saved = json.loads(path.read_text())["tactics"]
    assert saved == {choice.layer: int(choice.tactic, 16) for choice in choices}
    assert saved[bench.names[0]] == 3


@pytest.mark.parametrize(("options", "vary"), [({}, True), ({"tactics": "1"}, False), ({"tactics": "2"}, True)])
def test_builds_differ_where_there_is_a_choice(options, vary):
    assert VaryingEngine().builds_vary(options) is vary


def test_the_words_of_the_faulty_engine_are_understood(bench):
    assert VaryingEngine().precision({"precision": "fp16", "tactics": "2", "keyed": "true"}) == "fp16"
    with pytest.raises(UsageError):
        bench.built(nonsense="1")
