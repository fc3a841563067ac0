import pytest

from tensortriage.errors import UsageError
from tensortriage.runs.commands.failure_rules import Rules, codes
from tensortriage.runs.commands.process import Finished
from tensortriage.runs.commands.transcript import Printed


def failed(rules, code, *matched):
    return rules.judge(Finished(code, Printed(matched=matched), 1.0)).failed


# Expected values: the table of Polygraphy's rules in debug/subtool (0.53.6), and "ignored patterns pass".
@pytest.mark.parametrize(
    ("rules", "code", "matched", "expected"),
    [
        (Rules(), 0, (), False),
        (Rules(), 1, (), True),
        (Rules(), -11, (), True),
        (Rules(fail_codes=(2, 3)), 3, (), True),
        (Rules(fail_codes=(2, 3)), 1, (), False),
        (Rules(fail_codes=(0,)), 0, (), True),
        (Rules(ignore_codes=(1,)), 1, (), False),
        (Rules(ignore_codes=(1,)), 2, (), True),
        (Rules(fail_patterns=("NaN",)), 0, ("NaN",), True),
        (Rules(fail_patterns=("NaN",)), 1, (), False),
        (Rules(fail_patterns=("NaN", "Inf")), 0, ("Inf",), True),
        (Rules(fail_codes=(1,), fail_patterns=("NaN",)), 1, (), False),
        (Rules(fail_codes=(1,), fail_patterns=("NaN",)), 1, ("NaN",), True),
        (Rules(fail_codes=(1,), fail_patterns=("NaN",)), 2, ("NaN",), False),
        (Rules(ignore_codes=(1,), fail_patterns=("NaN",)), 1, ("NaN",), False),
        (Rules(ignore_patterns=("no device",)), 1, ("no device",), False),
        (Rules(ignore_patterns=("no device",)), 1, (), True),
        (Rules(fail_patterns=("a",), ignore_patterns=("b",)), 1, ("a", "b"), False),
        (Rules(), None, (), None),
    ],
)
def test_rules(rules, code, matched, expected):
    assert failed(rules, code, *matched) is expected


def test_signatures_tell_failures_apart():
    rules = Rules()
    first, second = (rules.judge(Finished(code, Printed(), 1.0)).signature for code in (1, -11))
    assert first == "exit code 1"
    assert second == "signal 11"


def test_an_abnormal_end_that_passes_by_the_rules_keeps_its_signature():
    ruling = Rules(fail_patterns=("NaN",)).judge(Finished(-6, Printed(), 1.0))
    assert (ruling.failed, ruling.signature) == (False, "signal 6")


@pytest.mark.parametrize(
    ("make", "slug"),
    [
        (lambda: Rules(fail_codes=(1,), ignore_codes=(2,)), "check-rules-conflict"),
        (lambda: Rules(fail_patterns=("(",)), "check-pattern-invalid"),
        (lambda: codes(["1", "one"]), "check-code-invalid"),
    ],
)
def test_rules_that_mean_nothing(make, slug):
    with pytest.raises(UsageError) as caught:
        make()
    assert caught.value.slug == slug
