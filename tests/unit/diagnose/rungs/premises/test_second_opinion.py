"""Who is wrong, the reference or somebody else: every engine in turn is made wrong at one op."""

import numpy as np
import onnx
import pytest

from diagnosing import ask, step
from engine_scripts import engine_file
from tensortriage.diagnose.climb import climb
from tensortriage.diagnose.measurements.local_errors.witnesses import Opinion
from tensortriage.diagnose.rungs.premises import second_opinion
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.float64.kernels import call, kernel_for
from tensortriage.engines.registry import known
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.runs.case import Case
from tensortriage.runs.questions.question import Question
from tensortriage.workflows.diagnosis.verdict_of import FoundAfter, verdict_of
from tensortriage_testing import feed_for, mlp, save_model

PLAIN = "onnxruntime:optimization=none"


@pytest.fixture
def asked(tmp_path):
    """Return a function that diagnoses an MLP with some reference and target, and returns the verdict."""
    proto = mlp(seed=3)
    path = save_model(proto, tmp_path / "mlp.onnx")
    file = engine_file()
    node = next(node.name for node in proto.graph.node[4:] if node.op_type in ("Gemm", "MatMul"))
    wrong = f"script:{file}:Engine,kind=scale,amount=1.01,node={node}"

    def ask(reference, target):
        question = Question(
            model=Model.load(path),
            feeds=[Feed("real", feed_for(proto), Origin.REAL)],
            reference=EngineSpec.parse(wrong if reference == "wrong" else reference),
            target=EngineSpec.parse(wrong if target == "wrong" else target),
        )
        with Case(tmp_path / "case") as case:
            inv = Investigation.begin(question, case)
            try:
                return verdict_of(climb(inv), FoundAfter())
            finally:
                inv.lab.close()

    ask.node = node
    ask.wrong = EngineSpec.parse(wrong)
    return ask


def test_a_wrong_reference_is_found_although_its_floor_hides_it(asked):
    verdict = asked("wrong", "onnxruntime")
    assert verdict.verdict == "comparison-unsound"
    assert verdict.culprits[0].node == asked.node
    assert verdict.culprits[0].local_error == pytest.approx(0.01, rel=0.01)  # the factor that was planted
    assert "float64" in verdict.summary


OUTPUTS_ALONE = """
from pathlib import Path
import onnxruntime

class Session:
    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(str(path))
    def run(self, feed):
        outputs = [each.name for each in self.session.get_outputs()]
        return {name: array * abs(array) for name, array in zip(outputs, self.session.run(None, feed))}

class Engine:
    def compile(self, path, options):
        return Session(Path(__file__).with_name("mlp.onnx"))  # a program of its own, whatever model it is given
"""


def test_a_reference_that_shows_outputs_alone_is_wrong_at_no_op(asked, tmp_path):
    """Nobody saw the operands of its ops: the file is not what it computes, and that is all that is known."""
    (tmp_path / "own.py").write_text(OUTPUTS_ALONE)
    verdict = asked(f"script:{tmp_path / 'own.py'}:Engine", PLAIN)
    assert (verdict.verdict, verdict.culprits) == ("comparison-unsound", ())
    assert "it shows its outputs alone, so that no op can be named" in verdict.summary


@pytest.mark.lengthy
def test_a_reference_in_a_narrow_format_is_said_to_be_one(asked):
    verdict = asked("emulate:precision=bf16", PLAIN)
    assert verdict.verdict == "comparison-unsound"
    assert "it computes in bf16, which a reference should not" in verdict.summary
    assert "which a reference should not" not in asked("wrong", "onnxruntime").summary


@pytest.mark.lengthy
def test_a_wrong_target_is_blamed_and_the_others_are_named(asked):
    verdict = asked(PLAIN, "wrong")
    assert verdict.verdict == "local-fault"
    assert verdict.culprits[0].node == asked.node
    answers = {step.question: step.answer for step in verdict.steps}
    assert answers["is the target wrong there, or the reference?"].startswith("the target: float64")


@pytest.mark.lengthy
def test_a_reference_that_is_off_by_little_does_not_acquit_a_target_that_is_off_by_much(asked):
    """A hundredth of one factor against the half that another engine is off by at the same op."""
    verdict = asked("wrong", str(asked.wrong).replace("amount=1.01", "amount=1.5"))
    assert verdict.verdict == "local-fault"
    assert verdict.culprits[0].node == asked.node
    answers = {step.question: step.answer for step in verdict.steps}
    assert answers["does the reference compute what the model defines?"].startswith("nearly: ")
    assert answers["is the target wrong there, or the reference?"].startswith(
        "the target: the reference is off as well"
    )


@pytest.mark.lengthy
def test_wrong_kernels_of_our_own_blame_nobody_and_hide_nobody(asked, monkeypatch):
    for op_type in ("Gemm", "MatMul"):
        right = kernel_for(op_type)
        monkeypatch.setitem(call._TABLE, op_type, lambda given, right=right: right(given) * 1.03)
    healthy = asked(PLAIN, "onnxruntime")
    assert healthy.verdict == "match"
    assert any("float64 alone differs" in step.answer for step in healthy.steps)
    assert asked(PLAIN, "wrong").verdict == "local-fault"


def test_a_fault_that_reference_and_target_share_is_no_match(asked):
    verdict = asked("wrong", "wrong")
    assert verdict.verdict == "comparison-unsound"
    assert verdict.culprits[0].node == asked.node


RIGHT = np.linspace(1.0, 2.0, 7)


def opinion(families=None, **errors):
    results = {name: RIGHT * (1.0 + error) for name, error in errors.items()}
    return Opinion("y", 1e-6, results, {"reference": "onnxruntime", **(families or {})})


def test_the_reference_is_alone_only_when_two_independent_witnesses_agree():
    assert opinion(reference=1e-3, float64=0, onnx=0).reference_is_alone
    assert opinion(reference=1e-3, onnx=0, target=0).reference_is_alone
    assert not opinion(reference=1e-3, float64=0).reference_is_alone
    assert not opinion(reference=1e-3, float64=0, onnx=5e-4).reference_is_alone
    assert not opinion(reference=1e-3, float64=0, onnx=0, target=1e-3).reference_is_alone
    assert not opinion(reference=0, float64=1e-3, onnx=0).reference_is_alone


def test_float64_is_alone_when_somebody_independent_sides_with_the_reference():
    assert opinion(reference=0, float64=1e-3, onnx=0).float64_is_alone
    assert not opinion(reference=0, float64=0, onnx=0).float64_is_alone
    assert not opinion(reference=0, float64=1e-3, onnx=0, target=1e-3).float64_is_alone
    assert not opinion({"target": "onnxruntime"}, reference=0, float64=1e-3, target=0).float64_is_alone


def test_two_that_share_kernels_are_one_witness():
    shared = {"second": "openvino", "target": "openvino"}
    assert opinion(reference=1e-3, second=0, target=0).reference_is_alone
    assert not opinion(shared, reference=1e-3, second=0, target=0).reference_is_alone
    assert opinion(shared, reference=1e-3, second=0, target=0, float64=0).reference_is_alone


def test_an_engine_with_the_kernels_of_the_reference_does_not_speak_for_it():
    akin = {"second": "onnxruntime"}
    assert opinion(akin, reference=1e-3, second=1e-3, float64=0, onnx=0).reference_is_alone


def test_results_of_other_shapes_never_agree():
    both = Opinion("y", 1e-6, {"reference": np.ones(3), "float64": np.ones(4)})
    assert not both.agree("reference", "float64")
    assert not both.agree("reference", "target")


def test_where_nobody_else_contradicts_the_reference_float64_takes_its_place(monkeypatch):
    monkeypatch.setattr(second_opinion, "independent_engines", lambda inv: {})
    assert second_opinion.better_than(None, opinion(reference=1e-3, float64=0)) in known()


def test_a_reference_whose_operands_nobody_saw_is_wrong_at_no_op(tmp_path):
    """Asked of the last op, though nothing says that the whole is outside its envelope."""
    (tmp_path / "own.py").write_text(OUTPUTS_ALONE)
    path = save_model(mlp(seed=3), tmp_path / "mlp.onnx")
    question = Question(
        model=Model.load(path), feeds=[Feed("real", feed_for(mlp(seed=3)), Origin.REAL)],
        reference=EngineSpec.parse(f"script:{tmp_path / 'own.py'}:Engine"), target=EngineSpec.parse(PLAIN),
    )  # fmt: skip
    with Case(tmp_path / "case") as case:
        inv = Investigation.begin(question, case)
        found = second_opinion.at_the_culprit(inv, question.feeds[0], question.model.outputs[0].name, 0.5)
        inv.lab.close()
    assert (found.kind.value, tuple(found.culprits)) == ("comparison-unsound", ())
    assert "it shows its outputs alone, so that no op can be named" in found.summary


LOGISTIC = """
import numpy as np

class Program:
    def compile(self, model_path, options):
        return self

    def run(self, feed):
        score = feed["x"].astype(np.float64) @ np.array([0.8, -0.5, 0.3]) + 0.2
        second = 1 / (1 + np.exp(-score))
        return {"y": np.stack([1 - second, second], 1).astype(np.float32)}
"""


def test_nobody_is_right_where_no_other_engine_computes_the_op(tmp_path):
    """Only ONNX Runtime has it here. Its Softmax of -s and s is a sigmoid of 2 s; the program's one of s."""
    (tmp_path / "own.py").write_text(LOGISTIC)
    classifier = onnx.helper.make_node(
        "LinearClassifier", ["x"], ["label", "y"], "classifier", domain="ai.onnx.ml", post_transform="SOFTMAX",
        coefficients=[-0.8, 0.5, -0.3, 0.8, -0.5, 0.3], intercepts=[-0.2, 0.2], classlabels_ints=[0, 1],
    )  # fmt: skip
    typed = (("x", 1, [12, 3]), ("label", 7, [12]), ("y", 1, [12, 2]))
    values = [onnx.helper.make_tensor_value_info(*each) for each in typed]
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    model = onnx.helper.make_model(
        onnx.helper.make_graph([classifier], "g", values[:1], values[1:]), opset_imports=opsets, ir_version=8
    )
    model.graph.output.pop(0)
    feed = {"x": np.random.default_rng(4).standard_normal((12, 3), np.float32)}
    verdict, _ = ask(tmp_path, model, feed, "onnxruntime", reference=f"script:{tmp_path / 'own.py'}:Program")
    assert verdict.verdict == "comparison-unsound"
    assert "no other engine agrees with either" in step(verdict, "is the target wrong there").answer
    assert "Sigmoid of 0.5 times the model's logits" in verdict.summary
