"""Floors that are measured while engines build: the same ones, counted when they are taken up, else ended."""

import threading

import pytest

from diagnosing import CHAIN_FEED, softmax_chain
from tensortriage.diagnose.floors_ahead import floors_ahead
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.outputs import output_floors
from tensortriage.diagnose.rungs.number_format.format_range import scan_ranges
from tensortriage.errors import EngineError, RunFailed
from tensortriage.runs.lab import Lab

TARGETS = ["onnxruntime:optimization=none", "emulate:precision=fp16"]


@pytest.fixture
def asked(investigate):
    return lambda target=TARGETS[0], *more: investigate(softmax_chain(), CHAIN_FEED, *more, target=target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("feeds", [1, 2])
def test_the_floors_are_those_that_are_measured_in_turn(asked, target, feeds, monkeypatch):
    more = [CHAIN_FEED] * (feeds - 1)
    plain, ahead = asked(target, *more), asked(target, *more)
    expected = output_floors(plain)
    with floors_ahead(ahead) as inv:
        assert inv.floors_ahead is not None
        assert output_floors(inv) == expected
    assert ahead.lab.tally.checks == plain.lab.tally.checks
    assert ahead.lab.tally.builds_by_engine == plain.lab.tally.builds_by_engine
    assert scan_ranges(ahead, Evidence()).findings == scan_ranges(plain, Evidence()).findings
    monkeypatch.setattr(Lab, "stream", None)  # nothing is evaluated anew
    assert output_floors(ahead) == expected


def test_what_nobody_takes_up_is_ended_and_counts_nothing(asked):
    inv, before = asked(), set(threading.enumerate())
    with floors_ahead(inv) as ahead:
        pass
    assert ahead.floors_ahead(inv.golden.outputs(inv.question.feeds[0])) is None
    assert set(threading.enumerate()) <= before
    assert (inv.lab.tally.checks, inv.lab.tally.builds) == (1, 1)  # of the reference, just asked


def test_a_reference_that_fails_leaves_nobody_waiting(asked):
    inv = asked()
    with pytest.raises(RunFailed), floors_ahead(inv):
        raise RunFailed("it fails", slug="run-failed", cure="")
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("floors")]


def test_floors_that_cannot_be_evaluated_are_found_in_the_other_way(asked, monkeypatch):
    def fails(*_, **__):
        raise EngineError("no", slug="no", cure="")

    inv = asked()
    monkeypatch.setattr("tensortriage.envelope.floors.envelope_floors", fails)
    with floors_ahead(inv) as ahead:
        assert output_floors(ahead).source == "input jitter"


def test_a_question_that_another_engine_has_a_part_in_is_not_begun_with(asked, investigate):
    for inv in (asked("emulate:precision=int8"), investigate(softmax_chain(), CHAIN_FEED, trusts_float64=False)):
        with floors_ahead(inv) as ahead:
            assert ahead is inv
    with floors_ahead(asked()) as ahead:
        assert ahead.about(ahead.question).floors_ahead is None
