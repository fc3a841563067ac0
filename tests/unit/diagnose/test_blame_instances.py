"""A culprit of a repeated block says how many of its instances are wrong: 3 of 4, or only one."""

import pytest

from diagnosing import ask
from tensortriage.model.instances import Instances
from tensortriage.model.model import Model
from tensortriage.testing import encoder, feed_for, save_model

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


@pytest.mark.parametrize("right", [1, 3], ids=["all-but-one", "only-one"])
def test_instances_are_counted(tmp_path, right):
    message = encoder(layers=4, width=16, heads=2, tokens=4)
    path = save_model(message, tmp_path / "m.onnx")
    model = Model.load(path)
    place = Instances.of(model).alike[next(n.name for n in model.graph.nodes if n.op_type == "Softmax")]
    wrong = [name for name in place if name != place[2]] if right == 1 else [place[2]]
    (tmp_path / "engine.py").write_text(ENGINE.format(wrong=wrong))
    feed = feed_for(message)
    verdict, _ = ask(tmp_path, path, feed, f"script:{tmp_path / 'engine.py'}")
    assert verdict.verdict == "local-fault", verdict.summary
    first = verdict.culprits[0]
    assert first.op_type == "Softmax"
    assert (set(first.instances), first.alike) == (set(wrong), 4)
    if right == 1:
        assert f"3 of 4 instances of its block, not in '{place[2]}'" in first.reason
    else:
        assert "the other 3 instances of its block are right" in first.reason
