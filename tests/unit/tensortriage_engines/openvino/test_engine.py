"""OpenVINO's options, ladder, and plans in terms of ONNX; nothing here starts OpenVINO."""

import pytest

from models import write
from tensortriage.engines.base import Plan, Region
from tensortriage.errors import UsageError
from tensortriage_engines.openvino.engine import OpenVinoEngine, _in_terms_of_onnx

ENGINE = OpenVinoEngine()
GROUPS = "config.DYNAMIC_QUANTIZATION_GROUP_SIZE"


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"precision": "f32"}, "fp32"),
        ({"precision": "BF16"}, "bf16"),
        ({"precision": " fp16"}, "fp16"),
        ({"precision": "Dynamic"}, "fp32"),
    ],
)
def test_the_format_of_options_that_name_one(options, word):
    assert ENGINE.precision(options) == word


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ({"precision": "int8"}, "engine-option-value"),
        ({"threads": "0", "precision": "fp32"}, "engine-option-value"),
        ({"hint.speed": "1", "precision": "fp32"}, "engine-option-unknown"),
        ({"precison": "fp32"}, "engine-option-unknown"),
    ],
)
def test_options_that_cannot_be(options, slug, tmp_path):
    for ask in (ENGINE.precision, ENGINE.check, lambda given: ENGINE.compile(tmp_path / "m.onnx", given)):
        with pytest.raises(UsageError) as caught:
            ask(options)
        assert caught.value.slug == slug


class Isolated:
    """Remembers what the adapter is asked."""

    def __init__(self):
        self.asked = []

    def probe(self, settings):
        self.asked.append(settings)
        return {"precision": "bf16"}

    def compile(self, model, settings, **how):
        self.asked.append(settings)
        return how


@pytest.fixture
def watched():
    engine = OpenVinoEngine()
    engine.isolated = Isolated()
    return engine, engine.isolated.asked


def test_what_options_leave_open_the_engine_is_asked_for(watched):
    engine, asked = watched
    assert (
        engine.precision({"worker": "python"}) == engine.precision({"precision": "auto", "worker": "python"}) == "bf16"
    )
    assert engine.precision({"precision": "fp16"}) == "fp16"
    assert asked == [{"worker": "python"}, {"worker": "python", "precision": "auto"}]


def test_options_become_words_of_the_adapter(watched, tmp_path):
    engine, asked = watched
    options = {"device": "gpu", "threads": "04", "precision": "half", "hint.performance": "latency", "config.KEY": "1"}
    engine.check(options)
    how = engine.compile(tmp_path / "m.onnx", options)
    words = {"device": "gpu", "threads": "4", "precision": "fp16", "hint.performance": "latency", "config.KEY": "1"}
    assert asked == [words, words]
    path = write(tmp_path / "n.onnx", "g (float[2] a, int64[k] b) => (float[2] y) { y = Neg(a) }")
    assert [(spec.name, spec.shape) for spec in how["terms"].declared_inputs(path)] == [("a", (2,)), ("b", ("k",))]


@pytest.mark.parametrize(
    ("device", "hardware", "varies"),
    [(None, "cpu", False), ("CPU", "cpu", False), ("GPU.1", "gpu", True), ("npu", "npu", True), ("AUTO", "any", True)],
)
def test_what_is_known_of_a_device(device, hardware, varies):
    options = {} if device is None else {"device": device}
    assert (ENGINE.hardware(options), ENGINE.builds_vary(options)) == (hardware, varies)
    assert ENGINE.tells_plan(options)


@pytest.mark.parametrize(
    ("options", "quantizes"),
    [
        ({}, True),
        ({GROUPS: "32"}, True),
        ({GROUPS: "0"}, False),
        ({"hint.execution": "Accuracy"}, False),
        ({"hint.execution": "performance"}, True),
    ],
)
def test_activations_are_rounded_unless_options_forbid_it(options, quantizes):
    assert ENGINE.quantizes_activations(options) is quantizes


def test_rungs_go_from_the_most_accurate_settings_to_those_given():
    rungs = ENGINE.ladder({"precision": "bf16", "threads": "1"})
    assert [options for _, options in rungs] == [
        {"precision": "fp32", "threads": "1", GROUPS: "0", "hint.execution": "accuracy"},
        {"precision": "fp32", "threads": "1", GROUPS: "0"},
        {"precision": "fp32", "threads": "1"},
        {"precision": "bf16", "threads": "1"},
    ]
    assert [words for words, _ in ENGINE.ladder({"precision": "fp32"})][-2:] == [
        "precision=fp32, no dynamic quantization",
        "as given",
    ]


@pytest.fixture
def path(tmp_path):
    return write(
        tmp_path / "m.onnx",
        """g (float[2] x) => (float[2] y) {
            [first] a = Exp(x)  ["layer/second"] b = Neg(a)  ["third.1"] c = Abs(b)  [last] y = Relu(c) }""",
    )


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("first", "first"),
        ("y", "last"),  # an operation whose value is an output is called after it
        ("a", "first"),
        ("layer/second", "layer/second"),
        ("layer/second/part", "layer/second"),
        ("first.12.3", "first"),
        ("third.1", "third.1"),
        ("third.1.2", ""),  # of numbers, all are taken off or none
        ("first/transpose_b", ""),
        ("stranger", ""),
        ("first.x", ""),
        ("", ""),
    ],
)
def test_names_that_openvino_makes_of_nodes(path, name, node):
    named, *_ = _in_terms_of_onnx(Plan((Region("r", (name,)), Region("s", ("first", "y")))), path).regions
    assert [*named.nodes[-1:]] == ([node] if node else [])


def test_a_region_executes_all_on_the_way_to_the_one_before(path):
    plan = _in_terms_of_onnx(Plan((Region("r", ("a",), precision="f32"), Region("s", ("y",), precision="odd"))), path)
    assert [region.nodes for region in plan.regions] == [("first",), ("layer/second", "third.1", "last")]
    assert [region.precision for region in plan.regions] == ["float32", "odd"]
