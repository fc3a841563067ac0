"""One walk over one table: what explains first is named, and nothing is evaluated that no output needs."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import onnx
import onnx_ir
import pytest

from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.engines.spec import EngineSpec, Hardware
from tensortriage.envelope import judge as module
from tensortriage.envelope.costs import of_draws, of_format, of_freedoms, of_moved_inputs
from tensortriage.envelope.explanations import Explanation, Fused, Needs
from tensortriage.envelope.floors import expected_limits
from tensortriage.envelope.judge import Judge, Stage, beyond
from tensortriage.envelope.limits import FORMAT, ORDERS, Limit
from tensortriage.envelope.registry import REGISTRY, costing
from tensortriage.envelope.setting import Floors
from tensortriage.errors import EngineError
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.values.dtype import Precision

RIGHT = np.random.default_rng(0).standard_normal(4096)
NOISE = np.random.default_rng(1).standard_normal(4096)
NOISE *= np.sqrt(np.mean(RIGHT**2) / np.mean(NOISE**2))
FLOORS = Floors({"a": 1e-6, "b": 1e-6, "hidden": 1e-6}, {"a": 1e-3, "b": 1e-3, "hidden": 1e-3}, {"a": None}, "envelope")


def off_by(**errors):
    """Return the figures of values that are off by so much, relative to their RMS."""
    return {name: measure(RIGHT, RIGHT + error * NOISE) for name, error in errors.items()}


class SeenTarget:
    """What a target shows: values inside, and how far its ops alone are beyond their limits."""

    def __init__(self, inside=None, over=None, harmless=(), fused=None):
        self._inside, self._over, self._harmless = inside or {}, over, harmless
        self._fused = fused or Fused({}, wrong=False, certain=False)

    def are_harmless(self, values):
        return {*values} <= {"harmless"}

    def fused(self, *, windows=False):
        return self._fused

    def inside(self):
        return self._inside

    def alone(self, *, asked=True):
        return SimpleNamespace(over=self._over, chosen={}, harmless=self._harmless) if self._over and asked else None


@pytest.fixture
def setting(tmp_path):
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float[4] a, float[4] b) '
    onnx.save(
        onnx.parser.parse_model(f"{text}{{ hidden = Exp(x)\n a = Neg(hidden)\n b = Abs(hidden) }}"), tmp_path / "m.onnx"
    )
    return SimpleNamespace(
        lab=None, model=Model.load(tmp_path / "m.onnx"), feed=SimpleNamespace(tensors={}), kept=(), trusts_float64=True,
        target=EngineSpec("emulate", {"precision": "fp16"}), precision=Precision.FP16, values=("hidden", "a", "b"),
        hardware=Hardware.CPU, engine=SimpleNamespace(known_as="emulate"),
        op_types=frozenset({"Exp", "Neg", "Abs"}), parts=(),
    )  # fmt: skip


def row(name="row", costs=(), *, needs=None, raises=False):
    """Return an explanation of known costs."""

    def cost(*_):
        if raises:
            raise EngineError("it cannot be evaluated", slug="refused", cure="")
        return dict(costs)

    return Explanation(name=name, words="", source="", cost=cost, needs=needs or Needs())


def taking(*rows):
    """Return the stage that takes rows one by one."""
    return Stage(lambda _: [(each,) for each in rows])


def test_an_output_within_its_format_is_explained_without_any_evaluation(setting):
    found = Judge(setting, FLOORS, off_by(a=1e-6, b=1.2e-3)).walk()
    assert [found[name].basis for name in "ab"] == [Basis.FORMAT, Basis.FORMAT]
    assert not Judge(setting, FLOORS, off_by(a=1e-6, b=1.2e-3)).standing_out


@pytest.mark.parametrize(
    ("error", "inside", "marked", "by"),
    [
        (1e-3, 5e-2, 1e-3, FORMAT),  # near its prediction: nothing inside is asked about
        (3e-3, 1e-3, 3e-3, FORMAT),
        (3e-3, 5e-2, 3e-3, ORDERS),
        (3e-3, 5e-2, 4e-3, FORMAT),  # marking values moved the output: what was seen is another program
    ],
)
def test_few_elements_excuse_an_output_where_values_inside_are_explained(
    setting, monkeypatch, error, inside, marked, by
):
    monkeypatch.setattr(module, "WALK", ())

    # Nine elements may be 3 + 26/sqrt(9) = 11.7 dB beyond a prediction of 1e-3, so 3e-3 (9.5 dB) is.
    def few(size):
        return measure(RIGHT[:9], RIGHT[:9] * (1.0 + size))

    shown = SeenTarget({**off_by(hidden=inside), "a": few(marked)})
    judge = Judge(setting, FLOORS, {"a": few(error)}, shown=shown)
    assert judge.walk()["a"].by == (by,)
    assert judge.walk()["a"].allows(error) is (by == FORMAT)


@pytest.mark.parametrize("hardware", [Hardware.NPU, Hardware.CPU])
def test_functions_that_are_wrong_as_one_speak_against_the_format_of_an_npu(setting, monkeypatch, hardware):
    monkeypatch.setattr(module, "WALK", ())
    setting.hardware = hardware
    shown = SeenTarget(fused=Fused({}, wrong=True, certain=True))
    limit = Judge(setting, FLOORS, off_by(a=1e-3), shown=shown).walk()["a"]
    assert limit.allows(1e-3) is (hardware is Hardware.CPU)


def test_a_part_of_an_output_is_judged_as_if_it_were_one(setting):
    """The whole is within the format, its part has lost everything: nothing passes by a further row."""
    part = SimpleNamespace(name="a[scores]", output="a")
    setting.parts = (part,)
    floors = dataclasses.replace(
        FLOORS, fp32={**FLOORS.fp32, "a[scores]": 1e-6}, target={**FLOORS.target, "a[scores]": 2e-3}
    )
    figures = {**off_by(a=1e-3), "a[scores]": measure(RIGHT, 0.0 * RIGHT)}
    found = Judge(setting, floors, figures).walk()
    assert found["a"].allows(1e-3)
    assert not found["a[scores]"].allows(1.0)


def test_each_output_ends_at_the_first_set_that_explains_it(setting):
    judge = Judge(setting, FLOORS, off_by(a=5e-3, b=2e-2))
    assert judge.standing_out == ["a", "b"]
    rows = [row("first", {"a": 5e-3}), row("second", {"a": 5e-3, "b": 2e-2}), row("third", {"a": 1.0, "b": 1.0})]
    taken = judge.take(taking(*rows), judge.standing_out)
    assert {name: limit.by for name, limit in taken.limits.items()} == {"a": ("first",), "b": ("second",)}
    assert [held.explanations[0].name for held in taken.tried] == ["first", "second"]


def test_what_cannot_be_evaluated_or_is_not_finite_allows_nothing(setting):
    judge = Judge(setting, FLOORS, off_by(a=5e-3))
    for each in (row(raises=True), row(costs={"a": math.inf}), row(costs={"a": math.nan}), row()):
        assert judge.take(taking(each), ["a"]).limits == {}
    assert judge.take(taking(row(raises=True)), ["a"]).problem == "it cannot be evaluated"


def test_a_limit_leaves_half_of_the_signal_and_a_lost_output_never_passes(setting):
    assert Judge(setting, FLOORS, off_by(a=0.4)).held((row(costs={"a": 0.6}),)).limits["a"] == Limit(
        0.5, Basis.LOST, ("row",)
    )
    judge = Judge(setting, dataclasses.replace(FLOORS, target={"a": 0.9}), off_by(a=0.8))
    assert judge.walk()["a"] == Limit(0.5, Basis.LOST, ("number-format",))


def test_a_value_inside_has_to_be_explained_as_well(setting):
    shown = SeenTarget(off_by(hidden=2e-2))
    judge = Judge(setting, FLOORS, off_by(a=5e-3), shown=shown)
    needing = row(costs={"a": 5e-3, "hidden": 5e-3}, needs=Needs(inside=True))
    found = judge.held((needing,))
    assert (found.beyond, found.explains, found.explained) == ([], False, {})
    assert found.why_not.startswith("'hidden' inside is off by 2 %, at most 0.7")
    assert judge.take(taking(needing), ["a"]).limits == {}
    assert judge.take(taking(row(costs={"a": 5e-3})), ["a"]).limits  # who needs nothing inside does not look


def test_what_is_hidden_inside_is_not_explained_by_what_needs_finite_values(setting):
    hidden = {"hidden": measure(RIGHT, np.where(np.arange(RIGHT.size) == 7, np.nan, RIGHT))}
    judge = Judge(setting, FLOORS, off_by(a=5e-3), shown=SeenTarget(hidden))
    each = row(costs={"a": 5e-3}, needs=Needs(finite=True))
    assert judge.held((each,)).why_not == "'hidden' inside is NaN or Inf"
    assert judge.held((row(costs={"a": 5e-3}),)).explains


@pytest.mark.parametrize(
    ("needs", "over", "holds"),
    [
        (Needs(), {"hidden": 9.0}, True),
        (Needs(alone=1.0), {"hidden": 1.1}, False),
        (Needs(alone=5.0), {"hidden": 1.1}, True),
        (Needs(alone=1.0), None, False),
        (Needs(alone=1.0, unproven=True), None, True),
        (Needs(alone=1.0), {"spared": 1.1}, False),
        (Needs(alone=1.0, makes_it=True), {"spared": 1.1}, True),
        (Needs(alone=1.0, makes_it=True), {"harmless": 1.1}, True),
        (Needs(alone=1.0, makes_it=True), {"hidden": 1.1}, False),
    ],
)
def test_ops_have_to_be_right_alone_where_a_row_needs_that(setting, needs, over, holds):
    judge = Judge(setting, FLOORS, off_by(a=5e-3), shown=SeenTarget(over=over, harmless=["spared"]))
    assert judge.held((row(costs={"a": 5e-3}),), needs=needs).explains is holds


def test_where_no_target_can_be_asked_ops_are_not_taken_to_be_right_alone(setting):
    """Edits have no target: a model that draws numbers was within what moved inputs do to it."""
    judge = Judge(setting, FLOORS, off_by(a=5e-3))
    assert not judge.held((row(costs={"a": 5e-3}),), needs=Needs(alone=1.0, unproven=True)).explains


@pytest.mark.parametrize(
    ("cost", "over", "explains"), [(5e-3, 1.1, True), (2e-2, 1.1, False), (2e-2, 0.9, True), (2e-2, None, True)]
)
def test_freedoms_that_excuse_more_than_a_hundredth_must_excuse_each_op(setting, monkeypatch, cost, over, explains):
    each = row(costs={"a": cost})
    monkeypatch.setattr(module, "of_freedoms", each.cost)
    shown = SeenTarget(over=over and {"hidden": over}, harmless=["hidden"])
    assert Judge(setting, FLOORS, off_by(a=cost), shown=shown).held((each,)).explains is explains


@pytest.mark.parametrize(("error", "cost", "reached"), [(0.3, 1e-2, False), (9e-2, 1e-2, True), (0.3, np.inf, True)])
def test_far_beyond_all_freedoms_no_value_inside_is_asked_for(setting, monkeypatch, error, cost, reached):
    """Ten times what all allow together; where that is not finite, nothing is known."""
    setting.target = EngineSpec("tensorrt", {"precision": "fp16"})
    setting.op_types = frozenset({"MatMul"})
    monkeypatch.setattr(module, "of_freedoms", lambda *_: {"a": cost})
    assert Judge(setting, FLOORS, off_by(a=error)).in_reach is reached


def test_an_exact_type_is_explained_by_a_share(setting):
    """Of 4096 predicted to differ in 1 %, 41 do, and 19 more by three standard deviations."""
    numbers = np.arange(4096)
    judge = Judge(setting, FLOORS, {"a": measure(numbers, np.where(numbers < 55, numbers + 1, numbers))})
    assert judge.held((row(costs={"a": 0.01}),)).explains
    assert not judge.held((row(costs={"a": 0.005}),)).explains


@pytest.mark.parametrize(("reads", "explains"), [("whole", False), ("fraction", True)])
def test_no_format_changes_what_is_made_of_whole_numbers_alone(setting, reads, explains):
    """Three of three may differ by chance where rounding was seen to change none; of whole numbers it changes none."""
    ops = {"whole": "s = Identity(n)", "fraction": "s = Cast<to=7>(x)"}
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (int64[3] n, float[3] x) => (int64[3] a) <int64[1] k = {{3}}>
        {{ {ops[reads]} a, at = TopK(s, k) }}"""
    setting.model = Model.from_ir(onnx_ir.from_proto(onnx.parser.parse_model(text)))
    setting.specs = lambda: value_specs(setting.model)
    floors = Floors({"a": 0.0}, {"a": 0.0}, {"a": None}, "envelope")
    right = np.array([1 << 37, 1 << 36, 1 << 35])
    judge = Judge(setting, floors, {"a": measure(right, np.array([7, 5, 1]))})
    assert judge.against(costing(of_format), {"a": 0.0}, ["a"]).explains is explains


def test_rows_stand_in_the_order_of_the_walk():
    order = [each.cost for each in REGISTRY]
    assert REGISTRY[0].name == ORDERS
    assert [each.name for each in costing(of_format)] == [FORMAT]
    assert order.index(of_format) < order.index(of_freedoms) < order.index(of_moved_inputs) < order.index(of_draws)
    assert costing(of_draws)[0].needs.alone == 1.0


def test_beyond_names_the_ops():
    assert beyond(SimpleNamespace(over={"a": 2.0, "b": 6.0}), 5.0) == ["b"]


def test_what_is_expected_of_a_class_is_added_to_its_format(setting, monkeypatch):
    setting.target = EngineSpec("tensorrt", {"precision": "fp16"})
    setting.op_types = frozenset({"MatMul"})
    monkeypatch.setattr("tensortriage.envelope.floors.of_freedoms", lambda *_: {"a": 1e-2})
    found = expected_limits(setting, FLOORS, {"a": 4096, "b": 4096})
    assert (found["a"].basis, found["b"].basis) == (Basis.HARDWARE, Basis.FORMAT)
