"""A culprit of a repeated block says how many of its instances are wrong: 3 of 4, or only one."""

import pytest

from diagnosing import ask
from engine_scripts import engine_file
from tensortriage.model.model import Model
from tensortriage.model.similarity.instances import Instances
from tensortriage_testing import encoder, feed_for, save_model

pytestmark = pytest.mark.slow

ENGINE = """
import onnx, onnxruntime as ort

WRONG = {wrong!r}

class Session:
    def __init__(self, session): self.session = session
    def run(self, feed):
        names = [value.name for value in self.session.get_outputs()]
        return dict(zip(names, self.session.run(None, dict(feed))))

class Engine:
    def compile(self, path, options):
        model = onnx.load(str(path))
        nodes = list(model.graph.node)
        model.graph.initializer.append(onnx.helper.make_tensor("factor", 1, [], [1.2]))
        for number, node in reversed(list(enumerate(nodes))):
            if node.name in WRONG:  # its result is 1.2 times what it should be, for all that read it
                result, node.output[0] = node.output[0], "right::" + node.output[0]
                nodes.insert(number + 1, onnx.helper.make_node("Mul", [node.output[0], "factor"], [result]))
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        return Session(ort.InferenceSession(model.SerializeToString(), options))
"""


@pytest.mark.lengthy
@pytest.mark.parametrize("right", [1, 3], ids=["all-but-one", "only-one"])
def test_instances_are_counted(tmp_path, right):
    message = encoder(layers=4, width=16, heads=2, tokens=4)
    path = save_model(message, tmp_path / "m.onnx")
    model = Model.load(path)
    place = Instances.of(model).alike[next(n.name for n in model.graph.nodes if n.op_type == "Softmax")]
    wrong = [name for name in place if name != place[2]] if right == 1 else [place[2]]
    file = engine_file(ENGINE.format(wrong=wrong))
    feed = feed_for(message)
    verdict, _ = ask(tmp_path, path, feed, f"script:{file}")
    assert verdict.verdict == "local-fault", verdict.summary
    first = verdict.culprits[0]
    assert first.op_type == "Softmax"
    assert (set(first.instances), first.alike) == (set(wrong), 4)
    if right == 1:
        assert f"3 of 4 layers, not in '{place[2]}'" in first.reason
    else:
        assert "the same op in the 3 other layers is right" in first.reason


@pytest.mark.lengthy
def test_where_memory_is_short_one_copy_of_each_block_is_asked_first(tmp_path):
    """The fault of one copy that is not the first is found too, after the others."""
    message = encoder(layers=4, width=16, heads=2, tokens=4)
    path = save_model(message, tmp_path / "m.onnx")
    place = Instances.of(Model.load(path)).alike
    softmax = place[next(n.name for n in Model.load(path).graph.nodes if n.op_type == "Softmax")]
    for wrong, alone in ((softmax, False), (softmax[2:3], True)):
        folder = tmp_path / str(len(wrong))
        folder.mkdir()
        (folder / "engine.py").write_text(ENGINE.format(wrong=list(wrong)))
        target = f"script:{folder / 'engine.py'}"
        verdict, report = ask(folder, path, feed_for(message), target, batch_bytes=24_000)
        assert (verdict.verdict, verdict.culprits[0].op_type) == ("local-fault", "Softmax"), verdict.summary
        assert set(verdict.culprits[0].instances) == set(wrong)
        measured = [row for row in report.layers.rows if row.local_error is not None]
        assert (len(measured) == len(report.layers.rows)) == alone


def test_every_op_of_a_small_model_has_its_three_figures(tmp_path):
    message = encoder(layers=1, width=16, heads=2, tokens=4)
    path = save_model(message, tmp_path / "m.onnx")
    name = next(n.name for n in Model.load(path).graph.nodes if n.op_type == "Softmax")
    verdict, report = ask(tmp_path, path, feed_for(message), f"fault:kind=scale,node={name}")
    assert verdict.culprits[0].node == name
    differing = [row for row in report.layers.rows if row.local_error and row.dtype == "float32"]
    assert len(differing) >= 1
    assert all(row.influence is not None and row.in_context_error is not None for row in differing)
    assert max(report.layers.rows, key=lambda row: row.influence or 0.0).node == name
