"""One question to an engine as data: what tells it from others, and what the model is fed with."""

import dataclasses

import numpy as np
import pytest

from models import chain
from tensortriage.compare.judgement.tolerance import PolygraphyTolerance
from tensortriage.engines.spec import PLAIN
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.transforms.mark_outputs import inject
from tensortriage.runs.observation.experiment import (
    Experiment,
    Measurement,
    ObservedFigures,
    ObservedOutputs,
    ObservedPlan,
    ObservedValues,
)
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import MemoryStore

MODEL = chain(3)
FEED = Feed("f", {"x": np.ones((2, 3), np.float32)}, Origin.REAL)
STORE = MemoryStore({"v_0": np.ones((2, 3), np.float32)})
SPECS = {name: ValueSpec(name, DType.FLOAT, (2, 3)) for name in ("v_0", "v_1")}


def asked(**given):
    """Return a question about the outputs of a chain on a feed, unless it says otherwise."""
    return Experiment(**{"engine": PLAIN, "model": MODEL, "feed": FEED, **given})


FIGURES = ObservedFigures(("v_0",), STORE)
DIFFERENT = [
    asked(),
    asked(build=1),
    asked(repetition=1),
    asked(repetition=None),
    asked(injected={"v_0": np.zeros((2, 3), np.float32)}),
    asked(injected={"v_0": np.ones((2, 3), np.float32)}),
    asked(injected={"v_1": np.ones((2, 3), np.float32)}),
    asked(observed=ObservedPlan()),
    asked(observed=ObservedValues(("v_0",))),
    asked(observed=ObservedValues(("v_0", "v_1"))),
    asked(observed=FIGURES),
    asked(observed=ObservedFigures(("v_0",), MemoryStore({"v_0": np.zeros((2, 3), np.float32)}))),
    asked(observed=ObservedFigures(("v_0",), MemoryStore({"v_0": np.ones((3, 2), np.float32)}))),
    asked(observed=ObservedFigures(("v_0",), STORE, partly=True)),
    asked(observed=ObservedFigures(("v_0",), STORE, floors={"v_0": 0.1})),
    asked(observed=ObservedFigures(("v_0",), STORE, floors={"v_0": 0.1}, kept_too=True)),
    asked(observed=ObservedFigures(("v_0",), STORE, floors={})),
    asked(observed=ObservedFigures(("v_0",), STORE, tolerances={"v_0": PolygraphyTolerance(0.1, 0.1)})),
    asked(observed=ObservedFigures(("v_0",), STORE, tolerances={"v_0": PolygraphyTolerance(0.2, 0.1)})),
]


def test_different_questions_are_told_apart():
    assert len({repr(one.words) for one in DIFFERENT}) == len(DIFFERENT)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (asked(), asked(what="running", observed=ObservedOutputs())),
        (asked(observed=ObservedValues(("v_0",))), asked(observed=ObservedValues(("v_0",), SPECS))),
        (
            asked(observed=FIGURES),
            asked(observed=ObservedFigures(("v_0",), MemoryStore({n: STORE["v_0"].copy() for n in ("v_1", "v_0")}))),
        ),
        (asked(injected={}), asked()),
    ],
)
def test_who_asks_and_what_is_known_besides_makes_no_other_question(one, other):
    assert one.words == other.words


def test_figures_know_dtypes_and_shapes_of_what_they_are_against():
    assert FIGURES.specs == {"v_0": SPECS["v_0"]}


def test_without_switches_the_feed_is_what_is_fed():
    experiment = asked()
    assert experiment.tensors == FEED.tensors
    assert experiment.tensors is not FEED.tensors
    assert asked(feed=None).tensors == {}


def test_a_switch_is_on_for_what_is_replaced_alone_and_all_others_get_something_of_their_type():
    model = inject(MODEL, ["v_0", "v_1"], specs=SPECS)
    replacement = np.full((2, 3), 7, np.float32)
    fed = asked(model=model, injected={"v_1": replacement}).tensors
    assert set(fed) == {"x", "use::v_0", "use::v_1", "inject::v_0", "inject::v_1"}
    assert [fed[f"use::{name}"].tolist() for name in ("v_0", "v_1")] == [False, True]
    assert fed["use::v_0"].dtype == bool
    np.testing.assert_array_equal(fed["inject::v_1"], replacement)
    idle = fed["inject::v_0"]
    assert (idle.shape, idle.dtype, idle.any()) == ((1, 1), np.float32, np.False_)  # every dimension is free


def test_a_switch_of_fixed_shape_is_fed_that_shape():
    model = inject(MODEL, ["v_0"], specs=SPECS, fixed=True)
    assert asked(model=model).tensors["inject::v_0"].shape == (2, 3)


def test_a_measurement_of_nothing_has_nothing():
    made = Measurement()
    assert (list(made.tensors.names()), made.plan, made.choices, made.seconds, made.builds_made) == (
        [],
        None,
        (),
        0.0,
        0,
    )
    assert made.figures.metrics == {}


@pytest.mark.parametrize("one", [ObservedValues(("v_0",)), FIGURES, asked(), Measurement()], ids=type)
def test_what_is_asked_and_answered_cannot_be_changed(one):
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(one, dataclasses.fields(one)[0].name, None)


def test_all_values_are_measured_or_none_and_no_tensor_is_kept_unless_asked_for():
    assert (FIGURES.partly, FIGURES.kept_too, FIGURES.floors) == (False, False, None)
