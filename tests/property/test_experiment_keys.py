"""An experiment is known by its content: two that differ have different keys, or answers that are equal bit by bit."""

import collections
import dataclasses
import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from models import chain
from tensortriage.compare.judgement.tolerance import PolygraphyTolerance
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.errors import TriageError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.transforms.mark_outputs import inject
from tensortriage.runs.lab import Lab
from tensortriage.runs.observation.experiment import (
    Experiment,
    ObservedFigures,
    ObservedOutputs,
    ObservedPlan,
    ObservedValues,
)
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import MemoryStore
from tensortriage_worker.feeding import LAYOUTS

NAMES = ("v_0", "v_1")
SPECS = {name: ValueSpec(name, DType.FLOAT, (2, 3)) for name in NAMES}
MODELS = (chain(3, "Sigmoid"), inject(chain(3, "Sigmoid"), NAMES, specs=SPECS), chain(3, "Tanh"))
FEEDS = tuple(
    Feed(name, {"x": np.full((2, 3), value, np.float32)}, origin)
    for name, value, origin in (("a", 0.3, Origin.REAL), ("b", 0.3, Origin.RANDOM), ("c", 0.7, Origin.REAL))
)
SHAPES = st.sampled_from([(2, 3), (3, 2)])
NUMBERS = st.sampled_from([0.0, 0.5, 0.574, 0.575, np.nan])
ARRAYS = st.builds(lambda shape, number: np.full(shape, number, np.float32), SHAPES, NUMBERS)
STORES = st.fixed_dictionaries(dict.fromkeys(NAMES, ARRAYS)).map(MemoryStore)
TOLERANCES = st.builds(PolygraphyTolerance, st.sampled_from([0.0, 0.1]), st.just(0.1))
SOME = st.sampled_from([("v_0",), ("v_1",), NAMES])
FIGURES = st.builds(
    ObservedFigures,
    names=SOME,
    against=STORES,
    tolerances=st.dictionaries(st.sampled_from(NAMES), TOLERANCES, max_size=2),
    partly=st.booleans(),
    floors=st.none() | st.fixed_dictionaries(dict.fromkeys(NAMES, st.sampled_from([1e-9, 1.0]))),
    kept_too=st.booleans(),
)
ROUNDED = EngineSpec("float64", {"format": "bf16"})
FIELDS = {
    "engine": st.sampled_from([PLAIN, EngineSpec("float64"), ROUNDED]),
    "model": st.sampled_from(MODELS),
    "feed": st.sampled_from(FEEDS),
    "observed": st.one_of(
        st.builds(ObservedOutputs, stored=st.booleans(), known_only=st.booleans()),
        st.builds(ObservedValues, SOME, st.sampled_from([None, SPECS])),
        FIGURES,
        st.just(ObservedPlan()),
    ),
    "injected": st.dictionaries(st.sampled_from(NAMES), ARRAYS, max_size=1),
    "build": st.sampled_from([0, 1]),
    "repetition": st.sampled_from([0, 1]),
    "layout": st.sampled_from(["", *LAYOUTS]),
    "what": st.sampled_from(["", "running"]),
}
EXPERIMENTS = st.builds(Experiment, **FIELDS)


@st.composite
def neighbours(draw):
    """Return two experiments of which the second differs in one field at most."""
    one, name = draw(EXPERIMENTS), draw(st.sampled_from(sorted(FIELDS)))
    return one, dataclasses.replace(one, **{name: draw(FIELDS[name])})


def answer(experiment):
    """Return all that an answer says, in words that are equal only for equal bits."""
    with Lab() as lab:
        try:
            found = lab.answer(dataclasses.replace(experiment, repetition=None))
        except TriageError as error:
            return f"{type(error).__name__}: {error.message}"
    arrays = {name: np.asarray(found.tensors[name]) for name in found.tensors.names()}
    tensors = {name: (array.dtype.name, array.shape, array.tobytes()) for name, array in arrays.items()}
    return repr((sorted(tensors.items()), found.figures, found.unseen, found.plan))


@given(st.one_of(neighbours(), st.tuples(EXPERIMENTS, EXPERIMENTS)))
@settings(max_examples=100, deadline=None)
def test_different_questions_have_different_keys_or_the_same_answer(pair):
    with Lab() as lab:
        one, other = map(lab.key_of, pair)
    assert one != other or answer(pair[0]) == answer(pair[1])


def test_measurements_of_one_run_have_a_key_for_each_answer():
    found = collections.defaultdict(set)
    stores = [MemoryStore(dict.fromkeys(NAMES, np.full((2, 3), value, np.float32))) for value in (0.5, 0.575)]
    all_floors = (None, dict.fromkeys(NAMES, 1e-9), dict.fromkeys(NAMES, 1.0))
    tolerances = ({}, {"v_0": PolygraphyTolerance(0.0, 0.1)}, {"v_0": PolygraphyTolerance(0.1, 0.1)})
    for parts in itertools.product((("v_0",), NAMES), stores, tolerances, (False, True), all_floors, (False, True)):
        observed = ObservedFigures(*parts)
        one = Experiment(engine=ROUNDED, model=MODELS[0], feed=FEEDS[0], observed=observed)
        with Lab() as lab:
            found[lab.key_of(one)].add(answer(one))
    assert {len(answers) for answers in found.values()} == {1}
    assert len(set().union(*found.values())) >= 20  # most things do make a difference
