"""What loops return of their bodies; expected values are computed step by step."""

import numpy as np
import pytest

from meant_otherwise import meant, model, run
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.search import sites_of
from tensortriage_meanings.table.loops import LOOPS

X = np.array([[1, 2], [3, 5], [7, 11]], np.float32)
LOOP = """g (float[3,2] x, float[2] s, int64 n, bool c) => (float[3,2] y) {
    [l] end, y = Loop(n, c, s) <body = b (int64 i, bool on, float[2] h) => (bool go, float[2] next, float[2] was) {
        go = Identity(on)
        one = Gather<axis=0>(x, i)
        next = Add(h, one)
        was = Identity(h)
    }> }"""
SCAN = """g (float[2] s, float[3,2] x) => (float[3,2] y) {
    [l] end, y = Scan<num_scan_inputs=1>(s, x) <body = b (float[2] h, float[2] one) => (float[2] next, float[2] out) {
        next = Add(h, one)
        out = Mul(next, one)
    }> }"""
SCAN = SCAN.replace("Scan<num_scan_inputs=1>(s, x) <", "Scan(s, x) <num_scan_inputs = 1, ")
START = np.array([100, 200], np.float32)
FEED = {"x": X, "s": START, "n": np.array(3), "c": np.array(True)}
SUMS = START + np.cumsum(X, axis=0)


def test_a_loop_that_collects_its_state_after_the_update():
    made = run(meant(model(LOOP), LOOPS, "collected the state 'next' at the end"), **FEED)
    assert made == pytest.approx(SUMS)


def test_a_state_that_is_handed_on_as_it_was():
    made = run(meant(model(LOOP), LOOPS, "handed on the state 'h' at the beginning"), **FEED)
    assert made == pytest.approx(np.stack([START] * 3))


def test_a_scan_that_collects_another_of_its_results():
    made = run(meant(model(SCAN), LOOPS, "collected the state 'next' at the end"), x=X, s=START)
    assert made == pytest.approx(SUMS)


def test_a_shift_is_said_where_a_state_is_collected_before_or_after():
    words = [way.words for group in sites_of(Rewriter(model(LOOP)), LOOPS) for way in group.values()]
    assert ["shifted by one iteration" in each for each in words if "collected" in each] == [True]
