"""What a healthy engine may do; expected limits are computed here from the reasons in `thresholds`."""

import ast
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortriage.compare.judgement import thresholds, within
from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import beyond_any_share, gap_allowance_db
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.envelope import limits
from tensortriage.envelope.limits import Limit, floor_of_amplified, judged_by

SOURCES = Path(within.__file__).parents[2]
errors = st.floats(0.0, 1e6)


def test_few_elements_are_allowed_a_larger_gap():
    # 3 dB plus three standard deviations of 1/sqrt(n) nepers, 8.686 dB each.
    assert gap_allowance_db(100) == pytest.approx(3.0 + 3.0 * 8.6859 / 10.0, rel=1e-3)
    assert gap_allowance_db(10) > gap_allowance_db(1000) > 3.0


@pytest.mark.parametrize(
    ("right", "made", "gone"),
    [
        ([300], [301], False),  # 0.3 % of its size, though one of one is unequal
        ([300, 280], [310, 290], False),
        ([2], [1], True),
        ([True, False], [False, True], True),
        ([300, 280, 7], [301, 280, 7], False),  # a third unequal
        ([1.0], [2.0], True),
    ],
)
def test_half_of_the_signal_of_whole_numbers_is_half_of_their_size(right, made, gone):
    figure = measure(np.array(right), np.array(made))
    assert within.is_gone(figure, error_of(figure)) is gone
    allowed = judged_by(limits.healthy(len(right), 0.0, 1.0), figure, format_name="bf16")
    assert allowed.within is not gone
    assert within.is_gone(figure, math.inf)  # a decision that is no tie


def test_the_larger_of_floor_and_format_is_the_limit_and_half_of_the_signal_the_largest():
    many = 10**12  # so many elements that chance adds nothing to the 3 dB
    assert limits.healthy(many, 1e-6, None) == Limit(pytest.approx(1e-5), Basis.FLOOR, (limits.ORDERS,))
    assert limits.healthy(many, 1e-6, 1e-3) == Limit(
        pytest.approx(1e-3 * 10**0.15, rel=1e-3), Basis.FORMAT, (limits.FORMAT,)
    )
    assert limits.healthy(many, 1e-3, 1e-3) == Limit(pytest.approx(1e-2), Basis.FLOOR, (limits.ORDERS,))
    assert limits.healthy(many, 1e-6, 0.4) == Limit(0.5, Basis.LOST, (limits.FORMAT,))
    assert limits.healthy(many, 1e-6, math.inf) == Limit(0.5, Basis.LOST, (limits.FORMAT,))  # the format overflows
    for floor in (0.1, math.inf):  # healthy engines disagree: that acquits nobody
        assert limits.healthy(many, floor, None) == Limit(0.5, Basis.NOISE, (limits.ORDERS,))
    assert not limits.healthy(many, math.nan, None).allows(0.0)
    assert limits.healthy(many, 1e-6, 1e-4, 1e-3) == Limit(pytest.approx(1e-3 * 10**0.15, rel=1e-3), Basis.HARDWARE)
    assert limits.healthy(many, 1e-6, 1e-3, 1e-4).basis is Basis.FORMAT
    assert limits.healthy(many, 1e-6, None, math.inf) == limits.healthy(many, 1e-6, None)
    assert not within.within_healthy(math.inf, math.inf)


@given(errors, errors)
def test_a_limit_is_that_of_its_floor(error, floor):
    assert within.within_fp32(error, floor) == within.within_limit(error, limits.of_floor(floor))


def by(limit, reference, target):
    return judged_by(Limit(limit, Basis.FLOOR), measure(reference, target))


@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=8), st.floats(0.0, 2.0))
def test_a_judgement_is_the_comparison_of_relative_errors(numbers, limit):
    reference = np.float32(numbers)
    target = reference + np.float32(0.125)
    assert by(limit, reference, target).within == (error_of(measure(reference, target)) <= limit)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, object])
def test_exact_types_must_be_equal_where_healthy_evaluations_agree(dtype):
    reference, target = np.array([0, 1]).astype(dtype), np.array([0, 0]).astype(dtype)
    assert by(0.0, reference, reference).within
    judged = by(0.0, reference, target)
    assert (judged.within, judged.basis) == (False, Basis.EQUALITY)
    assert (by(0.6, reference, target).within, by(0.4, reference, target).within) == (True, False)


def test_equal_infinities_are_no_error_and_nan_always_is():
    inf, nan = np.float32([math.inf, 1]), np.float32([math.nan, 1])
    assert by(1.0, inf, inf).within
    assert by(1.0, inf[:1], inf[:1]).within
    assert not by(1.0, inf, -inf).within
    assert not by(1.0, nan, nan).within


def test_a_limit_of_zero_allows_only_equality():
    one = np.float32([1])
    assert by(0.0, one, one).ratio == 0.0
    assert by(0.0, one, np.float32([1.0000001])).ratio == math.inf
    assert by(0.0, one[:0], one[:0]).within


def test_the_basis_says_when_the_format_may_cost_more():
    lost = judged_by(limits.healthy(4, 0.0, 0.9), measure(np.ones(4), np.full(4, 2.0)), format_name="fp16")
    assert (lost.within, lost.basis) == (False, Basis.LOST)
    assert "fp16" in lost.limit


def computed(tree):
    """Return the names of the table that a module computes or compares with: all but those it only shows."""
    imports = [
        node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == thresholds.__name__
    ]
    taken = {alias.name for node in imports for alias in node.names}
    shown = {id(node) for text in ast.walk(tree) if isinstance(text, ast.JoinedStr) for node in ast.walk(text)}
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in shown} & taken


MAKERS = frozenset({"of_floor", "of_prediction", "of_rounding", "of_equal", "of_op", "half_at_most"})
"""What makes limits of floors and predictions; who is named next to them may."""

ALLOWED_TO = {
    "compare/judgement/within.py": "what is asked of an error and a threshold",
    "envelope/limits.py": "where limits are made",
    "envelope/judge.py": "the walk that gives them",
    "envelope/ops.py": "the limits of ops",
    "envelope/registry.py": "which of them a row gives",
    "envelope/setting.py": "floors give limits",
    "envelope/elements.py": "the same by another norm",
}


def test_limits_are_made_in_one_place():
    named = re.compile(rf"\b(?:{'|'.join([*MAKERS, 'Limit'])})\b")
    for path in sorted(SOURCES.rglob("*.py")):
        place, text = path.relative_to(SOURCES).as_posix(), path.read_text()
        made = {
            node.func.id
            for node in (ast.walk(ast.parse(text)) if named.search(text) else ())
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {*MAKERS, "Limit"}
        }
        assert not made or place in ALLOWED_TO, (place, made)


def test_no_other_module_compares_an_error_with_a_threshold():
    for path in sorted(SOURCES.rglob("*.py")):
        if path.relative_to(SOURCES).as_posix() not in ALLOWED_TO:
            text = path.read_text()
            names = computed(ast.parse(text)) if thresholds.__name__ in text else set()
            assert names & (set(vars(within)) | set(vars(limits))) == set(), path
            assert "gap_allowance_db" not in text, path


def test_every_threshold_has_its_reason():
    body = ast.parse(Path(thresholds.__file__).read_text()).body
    for place, node in enumerate(body):
        if isinstance(node, ast.Assign):
            reason = body[place + 1]
            assert isinstance(reason, ast.Expr), ast.unparse(node.targets[0])
            assert isinstance(reason.value, ast.Constant), ast.unparse(node.targets[0])
            assert len(reason.value.value) > 60


def test_chance_is_allowed_for_once_where_few_elements_carry_the_noise():
    """Of 20 elements two differ by a step: ten times as often as in a healthy engine, so no factor beyond 3 dB."""
    exact = np.ones(20)
    flipped = exact + np.where(np.arange(20) < 2, 0.03, 0.0)
    error = 0.03 * math.sqrt(2 / 20)
    assert 10 * floor_of_amplified(measure(exact, flipped)) == pytest.approx(error * 10 ** (3 / 20))
    noisy = exact + 0.01 * np.random.default_rng(0).standard_normal(20)
    figure = measure(exact, noisy)
    assert 10 * floor_of_amplified(figure) == pytest.approx(limits.of_rounding(figure.relative_rms_error, 20))


@pytest.mark.parametrize(
    ("target", "allowed", "beyond"),
    [
        ([-(2**31), -(2**31), 9], 1.6, True),  # any number may be another, and these are nowhere near
        ([4 * 10**9 + 256, 5 * 10**9 - 512, 9], 1.6, False),
        ([-(2**31), -(2**31), 9], 0.7, False),  # the share is a limit
    ],
)
def test_a_share_of_all_numbers_is_no_limit(target, allowed, beyond):
    figure = measure(np.array([4 * 10**9, 5 * 10**9, 9]), np.array(target))
    assert beyond_any_share(figure, allowed) is beyond
