"""Steps of small decoders: what is planted at a length is found at the step of that length; what is healthy passes."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from engine_scripts import engine_file
from tensortriage.errors import DataError, EngineError, UsageError
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage_steps.request import StepsRequest
from tensortriage_steps.walk import walk
from tensortriage_testing import gpt2_decoder, llama_decoder, save_model

PROMPT = 8
SMALL = {"layers": 2, "depth": 20, "vocabulary": 31}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("steps")
    save_model(gpt2_decoder(**SMALL), folder / "gpt2.onnx")
    save_model(llama_decoder(**SMALL), folder / "llama.onnx")
    return folder


@pytest.fixture
def ask(folder, tmp_path):
    def run(model, target="onnxruntime", **more):
        given = {"steps": 5, "diagnosis": False, "drift": False, **more}
        return walk(StepsRequest(model=folder / model, target=target, case=tmp_path / "case", **given))

    return run


def faulty(folder, kind, node, length):
    return f"script:{engine_file()}:Engine,kind={kind},node={node},length={length}"


@pytest.mark.parametrize(
    ("model", "kind", "node", "value"),
    [
        ("gpt2.onnx", "stale-row", "/model/layers.1/self_attn/Concat_value", "present.1.value"),
        ("gpt2.onnx", "mask-short", "/model/layers.1/self_attn/Where", "logits"),
        ("llama.onnx", "row-before", "/model/layers.1/self_attn/rotary/Gather_sin", "present_key_1"),
    ],
)
def test_the_first_wrong_step_is_that_of_the_planted_length(ask, folder, tmp_path, model, kind, node, value):
    step = 3
    length = PROMPT + step - (kind == "row-before")  # positions count from 0
    report = ask(model, faulty(folder, kind, node, length))
    assert (report.verdict, report.exit_code) == ("fault", 1)
    assert [row.step for row in report.rows if row.outside] == [step]
    assert (report.first, report.value, report.again) == (step, value, True)
    assert "triage diagnose" in report.next[0]
    page = (tmp_path / "case" / "report.html").read_text()
    assert (page.count("✓ right"), page.count("✗ wrong")) == (4, 1)
    assert f"step {step} is wrong" in page


def test_a_healthy_narrow_engine_drifts_within_its_prediction(ask):
    report = ask("llama.onnx", "emulate:precision=bf16", drift=True, steps=6, free_running=True)
    assert (report.verdict, report.exit_code) == ("drift", 0)
    last = report.rows[-1]
    assert any(value.error > 0 for value in last.drifted)
    assert last.length == PROMPT + 5
    assert report.free is not None
    assert report.free.first is None or report.free.tie


@pytest.mark.lengthy
def test_states_that_are_not_taken_as_given_drift_beyond(ask, tmp_path):
    """An engine that is right on the states of others, and takes its own for a thousandth larger than they are."""
    script = tmp_path / "coarse.py"
    script.write_text(
        "import onnxruntime as ort\n"
        "class Engine:\n"
        "    def compile(self, model, options):\n"
        "        return Session(str(model))\n"
        "class Session:\n"
        "    def __init__(self, path):\n"
        "        self.inner, self.told = ort.InferenceSession(path), []\n"
        "    def run(self, feed):\n"
        "        feed = {n: self.taken(a) for n, a in feed.items()}\n"
        "        names = [o.name for o in self.inner.get_outputs()]\n"
        "        found = dict(zip(names, self.inner.run(None, feed)))\n"
        "        self.told = [a.tobytes() for a in found.values()]\n"
        "        return found\n"
        "    def taken(self, array):\n"
        "        return (array * 1.001).astype(array.dtype) if array.tobytes() in self.told else array\n"
    )
    report = ask("gpt2.onnx", f"script:{script}:Engine", drift=True, steps=4, reference="float64:rounding=results")
    assert report.verdict == "drift-beyond"
    assert not any(row.outside for row in report.rows)


@pytest.mark.lengthy
def test_what_the_session_ran_before_is_told_from_what_the_feed_holds(ask, tmp_path):
    script = tmp_path / "third.py"
    script.write_text(
        "import onnxruntime as ort\n"
        "class Engine:\n"
        "    def compile(self, model, options):\n"
        "        return Session(str(model))\n"
        "class Session:\n"
        "    def __init__(self, path):\n"
        "        self.inner, self.count = ort.InferenceSession(path), 0\n"
        "    def run(self, feed):\n"
        "        self.count += 1\n"
        "        names = [o.name for o in self.inner.get_outputs()]\n"
        "        found = dict(zip(names, self.inner.run(None, feed)))\n"
        "        return {n: a * 1.1 if self.count == 3 else a for n, a in found.items()}\n"
    )
    report = ask("gpt2.onnx", f"script:{script}:Engine")
    assert (report.verdict, report.first, report.again) == ("fault", 2, False)
    assert "earlier runs of the session" in report.summary
    assert json.loads((tmp_path / "case/steps.json").read_text())["format"] == "tensortriage.steps/1"


@pytest.fixture
def few_positions(tmp_path):
    """A model whose table of positions has five rows, so that two tokens and three more is all it can take."""
    graph = _with_memo()
    graph.node[0].CopyFrom(helper.make_node("Gather", ["table", "position_ids"], ["e"], "embed"))
    graph.input.append(helper.make_tensor_value_info("position_ids", TensorProto.INT64, (1, "sequence")))
    path = tmp_path / "few.onnx"
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.savez(tmp_path / "two.npz", input_ids=np.array([[1, 2]]))
    return {
        "model": path,
        "carry": ("memo=scratch",),
        "feeding": FeedRequest(paths=[str(tmp_path / "two.npz")]),
    }


def test_a_reference_that_fails_names_the_step_and_leaves_what_was_measured(ask, few_positions, tmp_path):
    report = ask(**few_positions, steps=9, free_running=True)
    assert (report.verdict, report.exit_code, report.first) == ("inconclusive", 4, None)
    assert [row.step for row in report.rows] == [0, 1, 2, 3]
    assert "the first 4 steps are right, and then the reference stops: at step 4: " in report.summary
    assert "--steps 4" in report.summary
    assert (tmp_path / "case" / "report.html").read_text().count("✓ right") == 4
    assert ask(**few_positions, steps=4).verdict == "match"  # the cure


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("failing", "reason"),
    [
        ("os._exit(3)", "crashed"),
        ("return {n: a * a.dtype.type('nan') for n, a in outputs.items()}", "holds NaN on step 4"),
        ("raise ValueError('full')", "full"),
    ],
)
def test_a_wrong_step_before_the_reference_fails_is_the_finding(ask, folder, tmp_path, failing, reason):
    """The target is wrong where the cache is 9 rows long; the reference ends, or goes wrong, after 11 rows."""
    script = tmp_path / "ends.py"
    script.write_text(
        "import os\n"
        "import onnxruntime as ort\n"
        "class Engine:\n"
        "    def compile(self, model, options):\n"
        "        return Session(str(model))\n"
        "class Session:\n"
        "    def __init__(self, path):\n"
        "        self.inner = ort.InferenceSession(path)\n"
        "    def run(self, feed):\n"
        "        names = [o.name for o in self.inner.get_outputs()]\n"
        "        outputs = dict(zip(names, self.inner.run(None, feed)))\n"
        "        if feed['past_key_values.0.key'].shape[2] >= 11:\n"
        f"            {failing}\n"
        "        return outputs\n"
    )
    node = "/model/layers.1/self_attn/Concat_value"
    target = faulty(folder, "stale-row", node, 9)
    report = ask("gpt2.onnx", target, reference=f"script:{script}:Engine", steps=6)
    assert (report.verdict, report.exit_code, report.first, report.again) == ("fault", 1, 1, True)
    assert len(report.rows) == 4
    assert reason in report.stopped
    assert "the reference stops: " in (tmp_path / "case" / "report.html").read_text()


def test_a_reference_that_fails_at_once_is_an_error(ask, few_positions, tmp_path):
    np.savez(tmp_path / "two.npz", input_ids=np.array([[1, 2, 3, 1, 2, 3]]))  # six positions
    with pytest.raises(EngineError):
        ask(**few_positions, steps=9)


def test_tokens_may_be_given_step_by_step(ask, tmp_path):
    tokens = {f"{number}/input_ids": np.array([[token]]) for number, token in enumerate((3, 1, 4))}
    np.savez(tmp_path / "tokens.npz", **tokens)
    report = ask("gpt2.onnx", steps=None, feeding=FeedRequest(paths=[str(tmp_path / "tokens.npz")]))
    assert [row.length for row in report.rows] == [1, 2, 3]
    assert report.inputs == "real"


def test_a_script_makes_the_next_feed(ask, tmp_path):
    script = tmp_path / "between.py"
    script.write_text(
        "import numpy as np\n"
        "def next_feed(outputs, feed, step):\n"
        "    assert 'logits' in outputs and int(step) >= 0\n"
        "    return {'input_ids': np.full((1, 1), 7)}\n"
    )
    report = ask("gpt2.onnx", steps=3, between=str(script))
    assert (report.verdict, len(report.rows)) == ("match", 3)
    script.write_text("def next_feed(outputs, feed, step):\n    return {'nothing': feed['input_ids']}\n")
    with pytest.raises(UsageError) as caught:
        ask("gpt2.onnx", steps=3, between=str(script))
    assert caught.value.slug == "between-unknown-input"


@pytest.mark.lengthy
def test_latents_that_a_script_carries_drift_too_and_it_may_remember_its_steps(ask, recurrent, tmp_path):
    """A scheduler of several steps, which knows its own earlier ones: each engine has one of its own."""
    script = tmp_path / "scheduler.py"
    script.write_text(
        "seen = []\n"
        "def next_feed(outputs, feed, step):\n"
        "    seen.append(outputs['hn'])\n"
        "    assert len(seen) == int(step) + 1, 'another engine was here'\n"
        "    return {'x': 0.5 * seen[-1] - 0.25 * seen[0]}\n"
    )
    given = {"steps": 4, "carry": ("none",), "between": str(script), "drift": True}
    healthy = ask(recurrent, "emulate:precision=bf16", **given)
    assert (healthy.verdict, healthy.carried) == ("drift", ())
    assert all(row.drifted for row in healthy.rows)


def test_states_of_other_names_are_asked_for(ask, tmp_path):
    path = tmp_path / "memo.onnx"
    save_model(helper.make_model(_with_memo(), opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    with pytest.raises(UsageError) as caught:
        ask(path, steps=2)
    assert caught.value.slug == "steps-nothing-carried"
    assert "--carry 'memo=scratch'" in (caught.value.cure or "")
    report = ask(path, steps=2, carry=("memo=scratch",))
    assert (report.verdict, report.carried) == ("match", ("memo=scratch",))


def _with_memo():
    """Scores of tokens, and a cache of their embeddings under a name of its own."""
    weights = [
        helper.make_tensor(name, TensorProto.FLOAT, shape, np.linspace(-1, 1, int(np.prod(shape))))
        for name, shape in (("table", (5, 4)), ("head", (4, 5)))
    ]
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["e"], "embed"),
        helper.make_node("Concat", ["scratch", "e"], ["memo"], "keep", axis=1),
        helper.make_node("ReduceSum", ["memo", "axes"], ["sum"], "sum"),
        helper.make_node("Add", ["sum", "e"], ["mixed"], "mix"),
        helper.make_node("MatMul", ["mixed", "head"], ["logits"], "score"),
    ]
    weights.append(helper.make_tensor("axes", TensorProto.INT64, (1,), [1]))
    shapes = {"scratch": (1, "past", 4), "logits": (1, "sequence", 5), "memo": (1, "total", 4)}
    ends = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()}
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, (1, "sequence"))
    return helper.make_graph(nodes, "memo", [ids, ends["scratch"]], [ends["logits"], ends["memo"]], weights)


@pytest.fixture(scope="module")
def recurrent(tmp_path_factory):
    """``hn = tanh(x + h0)``, of which nothing grows and nothing is a token."""
    path = tmp_path_factory.mktemp("recurrent") / "cell.onnx"
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("x", "h0", "hn")]
    nodes = [helper.make_node("Add", ["x", "h0"], ["s"], "add"), helper.make_node("Tanh", ["s"], ["hn"], "tanh")]
    graph = helper.make_graph(nodes, "cell", values[:2], values[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_a_recurrent_cell_carries_its_state_and_gets_new_numbers(ask, recurrent):
    report = ask(recurrent, steps=3, drift=True)
    assert report.carried == ("hn=h0",)
    assert report.verdict == "match"
    assert report.rows[0].divergence is None


def test_what_leads_nowhere_is_refused(ask, recurrent, tmp_path):
    with pytest.raises(UsageError) as caught:
        ask(recurrent, carry=("none",))
    assert caught.value.slug == "steps-nothing-carried"
    np.savez(
        tmp_path / "two.npz", **{f"{n}/{name}": np.ones((2, 3), np.float32) for n in (0, 1) for name in ("x", "h0")}
    )
    with pytest.raises(DataError) as few:
        ask(recurrent, feeding=FeedRequest(paths=[str(tmp_path / "two.npz")]))
    assert few.value.slug == "steps-too-few"


@pytest.fixture(scope="module")
def merged(tmp_path_factory):
    """A decoder in both branches of an If, as Optimum merges the two that it exports."""
    folder, model = tmp_path_factory.mktemp("merged"), gpt2_decoder(layers=1, depth=8, vocabulary=17)
    weights = list(model.graph.initializer)
    del model.graph.initializer[:]
    branches = []
    for word in ("later", "first"):
        graph = onnx.compose.add_prefix_graph(model.graph, f"{word}/", rename_inputs=False, rename_initializers=False)
        branches.append(helper.make_graph(graph.node, word, [], graph.output))
    names = [value.name for value in model.graph.output]
    node = helper.make_node(
        "If", ["use_cache_branch"], names, name="optimum::if", then_branch=branches[0], else_branch=branches[1]
    )
    flag = helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1])
    graph = helper.make_graph([node], "merged", [*model.graph.input, flag], model.graph.output, weights)
    made = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    return save_model(made, folder / "merged.onnx")


@pytest.mark.lengthy
@pytest.mark.parametrize(("word", "step", "branch"), [("later", 3, "then"), ("first", 0, "else")])
def test_a_fault_in_a_branch_is_named_with_step_and_op(ask, folder, merged, word, step, branch):
    node = f"{word}//model/layers.0/self_attn/Concat_value"
    report = ask(merged, faulty(folder, "stale-row", node, PROMPT + step), diagnosis=True)
    assert (report.first, report.diagnosis.node, report.diagnosis.body) == (step, node, f"optimum::if/{branch}_branch")
    assert report.summary.endswith(f" in optimum::if/{branch}_branch")
    assert report.value == "present.0.value"  # all come from one If: not the first of them, which is logits
