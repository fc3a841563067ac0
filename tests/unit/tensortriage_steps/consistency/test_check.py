"""A self-check on engines that are wrong in a known way, and on models that are not independent row by row.

What is right follows from how the fault is planted (`tensortriage_testing.fault_operators`) and from ONNX.
"""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from engine_scripts import engine_file
from registered_engines import register
from tensortriage.errors import DataError, UsageError
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage_steps.consistency.check import check_consistency
from tensortriage_steps.consistency.request import ConsistencyRequest
from tensortriage_testing import encoder, feed_for, mlp, save_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("consistency")
    save_model(mlp(width=34, layers=2, batch="batch"), folder / "mlp.onnx")
    small = encoder(layers=1, width=16, heads=2, tokens=6, vocabulary=40, batch="batch")
    save_model(small, folder / "encoder.onnx")
    np.savez(folder / "encoder.npz", **feed_for(small, batch=8))
    return folder


def check(folder, model, target="onnxruntime", **more):
    return check_consistency(ConsistencyRequest(model=folder / model, target=target, streams=False, **more))


def faulty(folder, kind, node):
    return f"script:{engine_file()}:Engine,kind={kind},node={node}"


@pytest.mark.lengthy
@pytest.mark.parametrize("kind", ["last-row", "rows-above", "swapped-rows"])
def test_a_fault_of_rows_is_named_without_a_reference(folder, kind):
    report = check(folder, "mlp.onnx", faulty(folder, kind, "/layer.1/Gemm"))
    assert report.exit_code == 1
    assert {answer.node for answer in report.broken} == {"/layer.1/Gemm"}


CONDITIONS = {
    "odd-batch": "smaller-batch",
    "batch-of=5": "smaller-batch",
    "shape-again": "same-feed-again",
    "misaligned": "misaligned-inputs",
    "strided": "strided-inputs",
    "buffer-again": "same-buffers-again",
    "threads=1": "other-threads",
    "threads=3": "other-threads",
    "other-stream": "two-streams",
}


@pytest.mark.lengthy
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_fault_that_needs_more_than_the_given_batch_is_named(folder, monkeypatch, tmp_path, condition):
    register(monkeypatch, tmp_path, contradicting="tensortriage_testing:ContradictingEngine")
    target = f"contradicting:kind=scale,node=/layer.1/Gemm,when={condition}"
    report = check_consistency(ConsistencyRequest(model=folder / "mlp.onnx", target=target))
    assert report.broken[0].relation == CONDITIONS[condition]
    assert report.broken[0].node == "/layer.1/Gemm"


@pytest.mark.lengthy
@pytest.mark.parametrize("condition", ["inputs-written", "other-stream", "strided", "threads=3"])
def test_what_a_process_of_its_own_is_fed_lies_and_runs_there_as_asked_for(folder, condition):
    file = engine_file("from tensortriage_testing import ContradictingEngine as Engine\n")
    target = f"script:{file}:Engine,kind=scale,node=/layer.1/Gemm,when={condition}"
    report = check_consistency(ConsistencyRequest(model=folder / "mlp.onnx", target=target))
    kind = "same-buffers-again" if condition == "inputs-written" else CONDITIONS[condition]
    assert {answer.relation for answer in report.broken} == {kind}


@pytest.mark.lengthy
def test_streams_of_builds_that_differ_show_nothing(folder):
    """The second stream's session is another build, here a wrong one; it was two streams that meet."""
    save_model(mlp(width=34, layers=2, batch=4), folder / "four.onnx")
    (folder / "second.py").write_text(
        "import os\n"
        "from tensortriage_testing import FaultyEngine\n"
        "class Engine(FaultyEngine):\n"
        "    def compile(self, model, options):\n"
        "        amount = '1.05' if 'BUILT' in os.environ else '1'\n"
        "        os.environ['BUILT'] = 'here'\n"
        "        return super().compile(model, {'kind': 'scale', 'node': '/layer.1/Gemm', 'amount': amount})\n"
    )
    request = ConsistencyRequest(model=folder / "four.onnx", target=f"script:{folder}/second.py:Engine")
    report = check_consistency(request)
    assert not report.broken
    told = {answer.answer for answer in report.answers if answer.relation == "two-streams"}
    assert told == {"unknown: a rebuild alone already changes the results"}


@pytest.mark.lengthy
def test_a_script_without_an_option_for_threads_runs_on_one_cpu(folder):
    (folder / "cpus.py").write_text(
        "import os\n"
        "from tensortriage_testing import FaultyEngine\n"
        "class Engine(FaultyEngine):\n"
        "    def compile(self, model, options):\n"
        "        one = os.environ.get('OMP_NUM_THREADS') == '1' and len(os.sched_getaffinity(0)) == 1\n"
        "        amount = '1.05' if one else '1'\n"
        "        return super().compile(model, {'kind': 'scale', 'node': '/layer.1/Gemm', 'amount': amount})\n"
    )
    report = check(folder, "mlp.onnx", f"script:{folder}/cpus.py:Engine")
    assert [(answer.question, answer.node) for answer in report.broken] == [
        ("does a feed give the same result with cpus=1?", "/layer.1/Gemm")
    ]


@pytest.mark.lengthy
def test_results_that_the_next_run_overwrites_are_told(folder):
    (folder / "one_buffer.py").write_text(
        "from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine\n"
        "class Session:\n"
        "    def __init__(self, own): self.own, self.buffers = own, {}\n"
        "    def run(self, feed):\n"
        "        for name, array in self.own.run(feed).items():\n"
        "            key = name, array.shape\n"
        "            self.buffers.setdefault(key, array.copy())[...] = array\n"
        "        return {name: self.buffers[name, shape] for name, shape in [key]}\n"
        "class Engine(OnnxRuntimeEngine):\n"
        "    def compile(self, model, options): return Session(super().compile(model, {}))\n"
    )
    report = check(folder, "mlp.onnx", f"script:{folder}/one_buffer.py:Engine")
    assert [answer.relation for answer in report.broken] == ["results-kept"]


@pytest.mark.lengthy
def test_memory_that_lies_otherwise_may_be_refused(folder):
    (folder / "careful.py").write_text(
        "from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine\n"
        "class Session:\n"
        "    def __init__(self, own): self.own = own\n"
        "    def run(self, feed):\n"
        "        if not feed['x'].flags.c_contiguous: raise ValueError('contiguous arrays, please')\n"
        "        return self.own.run(feed)\n"
        "class Engine(OnnxRuntimeEngine):\n"
        "    def compile(self, model, options): return Session(super().compile(model, {}))\n"
    )
    report = check(folder, "mlp.onnx", f"script:{folder}/careful.py:Engine")
    assert not report.broken
    (refused,) = [answer for answer in report.answers if answer.relation == "strided-inputs"]
    assert refused.outcome == "not-claimed"
    assert "contiguous arrays, please" in refused.answer


@pytest.mark.lengthy
def test_an_op_whose_rows_are_equal_is_not_blamed_for_those_of_another(folder):
    """The Add is off in every row alike, the MatMul behind it drops the remainder of a tile."""
    mixing(
        folder,
        [
            helper.make_node("Add", ["x", "mask"], ["h"], "add"),
            helper.make_node("MatMul", ["h", "w"], ["y"], "product"),
        ],
        [
            helper.make_tensor("mask", TensorProto.FLOAT, [6], np.linspace(0.1, 1, 6, dtype=np.float32)),
            helper.make_tensor("w", TensorProto.FLOAT, [6, 6], np.eye(6, dtype=np.float32) + np.float32(0.1)),
        ],
    )
    (folder / "remainder.py").write_text(
        "import numpy as np, onnx\n"
        "class Session:\n"
        "    def __init__(self, wanted): self.wanted = wanted\n"
        "    def run(self, feed):\n"
        "        h = (feed['x'] + np.linspace(0.1, 1, 6)).astype(np.float16).astype(np.float32)\n"
        "        y = h @ (np.eye(6, dtype=np.float32) + np.float32(0.1))\n"
        "        if len(y) % 2 and len(y) > 1: y[-1] = y[0]\n"
        "        return {name: {'h': h, 'y': y}[name] for name in self.wanted}\n"
        "class Engine:\n"
        "    def compile(self, model, options):\n"
        "        return Session([value.name for value in onnx.load(model).graph.output])\n"
    )
    report = check(folder, "mixing.onnx", f"script:{folder}/remainder.py:Engine")
    assert {answer.node for answer in report.broken} == {"product"}


def test_padding_that_leaks_is_named_by_the_op_that_lets_it_through(folder):
    node = "/layer.0/attention/Softmax"
    feeding = FeedRequest(paths=[str(folder / "encoder.npz")])
    report = check(folder, "encoder.onnx", faulty(folder, "padding-leak", node), feeding=feeding)
    assert [(answer.relation, answer.node) for answer in report.broken] == [("masked-positions", node)]


def test_a_healthy_engine_is_at_one_with_itself(folder):
    report = check_consistency(ConsistencyRequest(model=folder / "encoder.onnx", target="onnxruntime"))
    assert (report.exit_code, report.rows, report.made_up_rows) == (0, 8, 7)
    assert {answer.outcome for answer in report.answers} == {"holds"}
    assert len(report.answers) == 19


def mixing(folder, nodes, weights=()):
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 6]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "mixing", values[:1], values[1:], list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "mixing.onnx")


def test_a_mean_over_the_batch_is_the_models_own(folder):
    mixing(
        folder,
        [
            helper.make_node("ReduceMean", ["x"], ["m"], "mean", axes=[0], keepdims=1),
            helper.make_node("Sub", ["x", "m"], ["y"], "subtract"),
        ],
    )
    report = check(folder, "mixing.onnx")
    assert not report.broken
    assert {answer.node for answer in report.answers if answer.outcome == "not-claimed"} == {"mean"}


def test_rows_folded_into_others_are_the_models_own(folder):
    shapes = [helper.make_tensor(n, TensorProto.INT64, [2], s) for n, s in (("half", [-1, 12]), ("whole", [-1, 6]))]
    mixing(
        folder,
        [
            helper.make_node("Reshape", ["x", "half"], ["folded"], "fold"),
            helper.make_node("Softmax", ["folded"], ["soft"], "softmax", axis=-1),
            helper.make_node("Reshape", ["soft", "whole"], ["y"], "unfold"),
        ],
        shapes,
    )
    report = check(folder, "mixing.onnx")
    assert not report.broken
    assert {answer.node for answer in report.answers if answer.node} == {"fold"}
    assert any("the model itself fails on row 0 alone" in answer.answer for answer in report.answers)


@pytest.mark.lengthy
def test_picking_among_close_scores_is_no_contradiction(folder):
    """An index differs, and no value before it does: scores tie within their rounding."""
    (folder / "ties.py").write_text(
        "import numpy as np\n"
        "class Engine:\n"
        "    def compile(self, model, options):\n"
        "        return Session()\n"
        "class Session:\n"
        "    calls = 0\n"
        "    def run(self, feed):\n"
        "        self.calls += 1\n"
        "        return {'y': np.full(len(feed['x']), self.calls % 2, np.int64)}\n"
    )
    values = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 6]),
        helper.make_tensor_value_info("y", TensorProto.INT64, ["batch"]),
    ]
    graph = helper.make_graph(
        [helper.make_node("ArgMax", ["x"], ["y"], "pick", keepdims=0, axis=1)], "g", *([value] for value in values)
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "ties.onnx")
    report = check(folder, "ties.onnx", f"script:{folder}/ties.py:Engine")
    assert not report.broken
    assert "decided-otherwise" in {answer.outcome for answer in report.answers}


def test_a_model_of_one_row_claims_nothing_of_rows(folder):
    save_model(mlp(width=6, batch=1), folder / "one.onnx")
    report = check(folder, "one.onnx")
    assert (report.exit_code, report.rows) == (4, 0)
    assert "one row at a time" in report.unasked[0]


@pytest.mark.lengthy
def test_a_batch_size_that_the_engine_fails_at_is_told(folder):
    (folder / "refusing.py").write_text(
        "from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine\n"
        "class Engine(OnnxRuntimeEngine):\n"
        "    def compile(self, model, options):\n"
        "        session, run = super().compile(model, {}), None\n"
        "        run = session.run\n"
        "        def only_eight(feed):\n"
        "            if len(feed['x']) != 8: raise RuntimeError('eight rows, please')\n"
        "            return run(feed)\n"
        "        session.run = only_eight\n"
        "        return session\n"
    )
    report = check(folder, "mlp.onnx", f"script:{folder}/refusing.py:Engine")
    assert report.exit_code == 1
    assert {answer.outcome for answer in report.broken} == {"refused"}
    assert "eight rows, please" in report.broken[0].answer


def test_bad_requests_are_refused(folder):
    save_model(mlp(width=6, batch=4), folder / "four.onnx")
    with pytest.raises(UsageError) as caught:
        check(folder, "four.onnx", rows=5)
    assert caught.value.slug == "batch-fixed"
    save_model(encoder(layers=1, width=8, heads=2, tokens=4, vocabulary=5, batch="b"), folder / "e.onnx")
    np.savez(folder / "e.npz", input_ids=np.ones((2, 4), np.int64), attention_mask=np.ones((3, 4), np.int64))
    with pytest.raises(DataError):
        check(folder, "e.onnx", feeding=FeedRequest(paths=[str(folder / "e.npz")]))
