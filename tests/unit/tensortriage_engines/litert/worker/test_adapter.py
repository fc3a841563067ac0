"""What LiteRT's adapter makes of a file's tensors and operators, and of the converter's report; without LiteRT."""

import json
import types

import numpy as np
import pytest

from tensortriage_engines.litert.worker import adapter
from tensortriage_engines.litert.worker.adapter import LiteRtFile
from tensortriage_worker.adapter import AdapterError, AdapterFailure
from tensortriage_worker.exchange import Item


def row(name, shape, index=0, dtype=np.float32, **more):
    return {"name": name, "shape": np.int32(shape), "index": index, "dtype": dtype, "quantization": (0.0, 0), **more}


def spec(name, shape, dtype="float32"):
    return {"name": name, "shape": shape, "dtype": dtype}


def op(kind, inputs, outputs):
    return {"op_name": kind, "inputs": inputs, "outputs": outputs}


class Interpreter:
    """A file of given tensors and operators, whose tensors hold what a function makes of the inputs."""

    def __init__(self, inputs, outputs, *, inner=(), ops=(), function=lambda fed: {}):
        self.inputs, self.outputs, self.inner, self.ops, self.function = inputs, outputs, inner, list(ops), function
        self.fed, self.held = {}, {}

    def get_input_details(self):
        return self.inputs

    def get_output_details(self):
        return self.outputs

    def get_tensor_details(self):
        return [*self.inputs, *self.outputs, *self.inner]

    def set_tensor(self, index, array):
        self.fed[index] = array

    def invoke(self):
        self.held = self.function(self.fed)

    def get_tensor(self, index):
        if index not in self.held:
            raise ValueError("not kept")
        return self.held[index]

    def _get_ops_details(self):
        return self.ops


def opened(interpreter, inputs, outputs, report=None):
    return LiteRtFile(interpreter, {"inputs": inputs, "outputs": outputs}, {}, report or {})


@pytest.mark.parametrize(
    ("rows", "specs", "all_needed", "found"),
    [
        ([row("a", [2]), row("b", [3])], [spec("x", [2]), spec("y", [3])], True, {"x": "a", "y": "b"}),  # by place
        ([row("b", [3])], [spec("a", [2]), spec("b", [3])], False, {"b": "b"}),  # one was dropped
        ([row("b", [3])], [spec("a", [2]), spec("b", [3])], True, None),
        ([row("a", [2]), row("b", [3])], [spec("b", [3])], False, None),  # what of the file has no partner
        ([row("a", [2]), row("b", [3])], [spec("b", [3])], True, {"b": "b"}),
        ([row("a", [2])], [spec("x", [3])], True, None),  # another number of elements
        ([row("a", [1])], [spec("x", [])], True, {"x": "a"}),  # a scalar is one element
        ([row("a", [1, 2, 2, 8])], [spec("x", [1, 8, 2, 2])], True, {"x": "a"}),  # another layout
        ([row("a", [2])], [spec("x", None)], True, {"x": "a"}),
        ([row("a", [2])], [spec("x", ["n"])], True, {"x": "a"}),
        ([row("a", [1], shape_signature=np.int32([-1]))], [spec("x", [3])], True, {"x": "a"}),
    ],
)
def test_tensors_of_a_file_are_those_of_the_model_by_place_or_name(rows, specs, all_needed, found):
    if found is None:
        with pytest.raises(AdapterError) as caught:
            adapter._matched(rows, specs, "inputs", all_needed=all_needed)
        assert caught.value.kind is AdapterFailure.BUILD
    else:
        matched = adapter._matched(rows, specs, "inputs", all_needed=all_needed)
        assert {name: each["name"] for name, each in matched.items()} == found


def test_inputs_get_the_shape_and_type_of_the_file_and_outputs_those_of_the_model():
    inputs, outputs = [row("a", [1], 0, np.int32)], [row("b", [1], 1, np.int32)]
    session = opened(
        Interpreter(inputs, outputs, function=lambda fed: {1: fed[0] * 2}),
        [spec("x", [], "int64")],
        [spec("y", [], "int64")],
    )
    (item,) = session.run({"x": Item("x", np.array(3, np.int64))})
    assert (item.name, item.array.shape, item.array.dtype, int(item.array)) == ("y", (), np.int64, 6)
    assert session._interpreter.fed[0].dtype == np.int32
    session.close()


def test_what_the_runtime_refuses_is_a_failed_run():
    session = opened(Interpreter([row("a", [2])], [row("b", [2])]), [spec("x", [2])], [spec("y", [2])])
    with pytest.raises(AdapterError) as caught:
        session.run({"x": Item("x", np.zeros(3, np.float32))})
    assert caught.value.kind is AdapterFailure.RUN


@pytest.mark.parametrize(
    ("found", "declared", "ops", "moved"),
    [
        ([1, 2, 3, 8], [1, 8, 2, 3], [], True),
        ([1, 8, 2, 3], [1, 8, 2, 3], [], False),
        ([1, 4, 4, 4], [1, 4, 4, 4], [op("CONV_2D", [0], [1])], True),  # only its maker tells
        ([1, 4, 4, 4], [1, 4, 4, 4], [op("TRANSPOSE", [0], [1])], False),
        ([1, 4, 4, 4], [1, 4, 4, 4], [op("CONV_2D", [0], [2]), op("RELU", [2], [1])], True),
        ([1, 4, 4, 4], [1, 4, 4, 4], [op("CONV_2D", [0], [3]), op("RESHAPE", [3], [2]), op("ADD", [9, 2], [1])], False),
        ([1, 4, 4, 4], [1, 4, 4, 4], [op("RELU", [0], [1])], False),
        ([1, 4, 4, 4], [1, 4, 4, 4], [op("DELEGATE", [0], [1])], False),
        ([1, 4, 4, 4], [1, "c", 4, 4], [op("CONV_2D", [0], [1])], True),
        ([4, 4], [4, 4], [op("CONV_2D", [0], [1])], False),
        ([1, 4, 4, 4], None, [op("CONV_2D", [0], [1])], False),
    ],
)
def test_outputs_whose_channels_are_last_are_brought_into_the_layout_of_the_model(found, declared, ops, moved):
    array = np.arange(np.prod(found), dtype=np.float32).reshape(found)
    interpreter = Interpreter([], [row("b", found, 1)], ops=ops, function=lambda fed: {1: array})
    (item,) = opened(interpreter, [], [spec("y", declared)]).run({})
    np.testing.assert_array_equal(item.array, np.moveaxis(array, -1, 1) if moved else array)


def record(value, tensor, *, exists=True, status="direct"):
    return {
        "onnx_output_name": value, "resolved_tflite_tensor_name": tensor, "exists_in_final_model": exists,
        "status": status, "assume_channel_last_layout": False, "more": 1,
    }  # fmt: skip


REPORT = {
    "records": [
        record("a", "t"),
        record("b", "t", status="rewritten"),
        record("c", "u", exists=False),
        record("d", "t", status="lost"),
    ]
}


def test_operators_are_told_with_the_values_that_they_make():
    interpreter = Interpreter([], [], inner=[row("t", [2], 5)], ops=[op("ADD", [], [5]), op("DELEGATE", [5], [7])])
    assert opened(interpreter, [], [], REPORT).plan() == [
        {"name": "0 t", "nodes": ["a", "b"], "kind": "ADD", "precision": "float32", "implementation": ""},
        {"name": "1 DELEGATE", "nodes": [], "kind": "DELEGATE", "precision": "", "implementation": "XNNPACK"},
    ]
    interpreter._get_ops_details = None  # a release that tells nothing
    assert opened(interpreter, [], [], REPORT).plan() == []


def test_the_report_and_the_tensors_that_were_kept_are_told():
    interpreter = Interpreter([], [], inner=[row("t", [1], 5), row("u", [1], 6)], function=lambda fed: {5: np.ones(1)})
    session = opened(interpreter, [], [], REPORT)
    told, items = session.answer("records", {}, {}, None)
    assert [each["onnx_output_name"] for each in told["records"]] == ["a", "b", "d"]
    assert ("more" in told["records"][0], items) == (False, [])
    spilled = types.SimpleNamespace(found=[])
    spilled.add = spilled.found.append
    session.answer("captured", {}, {"wanted": ["t", "u", "stranger"]}, spilled)
    assert [item.name for item in spilled.found] == ["t"]


def test_a_report_holds_of_an_edited_file_where_tensors_are_the_same():
    mine = Interpreter([], [], inner=[row("t", [2]), row("u", [2])])
    theirs = Interpreter([], [], inner=[row("t", [2]), row("u", [3])])
    report = {"records": [record("a", "t"), record("b", "u"), record("c", "v")]}
    assert adapter._of_file(report, mine, theirs) == {"records": [record("a", "t")]}
    assert adapter._of_file({}, mine, theirs) == {"records": []}


def test_file_and_report_travel_in_one():
    packed = (3).to_bytes(8, "little") + b"abc" + json.dumps(REPORT).encode()
    assert adapter._unpacked(packed) == (b"abc", REPORT)


def test_progress_is_not_what_the_converter_said():
    lines = ["1", "error: 2", "error 50%|##| 3it/s]", "error: 3", "error: 4", "error: 5"]
    assert adapter._said(lines) == ["error: 3", "error: 4", "error: 5"]


class Runtime:
    """Remembers how an interpreter is requested."""

    OpResolverType = types.SimpleNamespace(BUILTIN="all", BUILTIN_WITHOUT_DEFAULT_DELEGATES="plain")

    def __init__(self, refusal=None):
        self.refusal = refusal

    def Interpreter(self, **words):  # noqa: N802 - LiteRT's name
        self.words = words
        return self

    def allocate_tensors(self):
        if self.refusal:
            raise self.refusal


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delegate": "xnnpack"}, (None, "all", False)),
        ({"delegate": "none", "threads": "2", "observe": "preserved"}, (2, "plain", True)),
    ],
)
def test_options_of_the_interpreter(options, words):
    loaded = adapter._loaded(Runtime(), b"file", options).words
    assert loaded["model_content"] == b"file"
    assert words == tuple(
        loaded[key] for key in ("num_threads", "experimental_op_resolver_type", "experimental_preserve_all_tensors")
    )


@pytest.mark.parametrize("error", [RuntimeError("no\n kernel"), ValueError("no kernel")])
def test_a_file_that_the_runtime_refuses(error):
    with pytest.raises(AdapterError, match="no kernel") as caught:
        adapter._loaded(Runtime(error), b"file", {"delegate": "none"})
    assert caught.value.kind is AdapterFailure.BUILD


def test_quantized_inputs_and_outputs_take_and_give_real_numbers():
    scaled = row("a", [3], 0, np.int8, quantization=(0.5, -2))
    assert adapter._told(scaled) == {"name": "a", "dtype": "float32", "shape": [3]}
    stored = adapter._stored(np.float32([0.0, 1.0, 1000.0]), scaled)
    assert (stored.dtype, stored.tolist()) == (np.int8, [-2, 0, 127])
    assert adapter._real(stored, scaled).tolist() == [0.0, 1.0, 64.5]
    assert adapter._told(row("b", [3], 0, np.int8))["dtype"] == "int8"


def test_a_file_that_does_not_run_is_refused_in_the_words_of_the_runtime():
    class Failing(Interpreter):
        def invoke(self):
            raise RuntimeError("node 7 failed to prepare")

    with pytest.raises(AdapterError, match="node 7 failed to prepare") as caught:
        adapter._results(Failing([row("a", [2])], [row("b", [2])]))
    assert caught.value.kind is AdapterFailure.BUILD


def test_layouts_are_told_by_who_makes_a_tensor_or_where_it_begins():
    ops = [op("CONV_2D", [0], [5]), op("LOGISTIC", [5], [6]), op("LOGISTIC", [0], [7])]
    inner = [row("t", [1], 6), row("u", [1], 7)]
    report = {"records": [record("a", "t"), record("b", "u")]}
    session = opened(Interpreter([row("x", [1], 0)], [], inner=inner, ops=ops), [spec("x", [1])], [], report)
    told = session.answer("records", {}, {}, None)[0]["records"]
    assert [(each["channels_last"], each["input"]) for each in told] == [(True, ""), (False, "x")]
