"""What a parser's answer says of each node; answers in the form of TensorRT's parsers."""

from models import write
from tensortriage.model.model import Model
from tensortriage.runs.capabilities.capability import Support
from tensortriage.runs.capabilities.parser_support import ask_parser

MODEL = """
<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
net (float[2] x) => (float[2] y, float[2] z) {
   [first] a = Relu (x)
   [odd] b = my.Hammer (a)
   [after] c = Exp (b)
   [aside] z = Neg (a)
   [worse] y = Bernoulli (c)
}
"""


def problem(node, index, reason):
    return {"node": node, "op": "", "index": index, "code": "UNSUPPORTED_NODE", "reason": reason}


class Parser:
    def __init__(self, **told):
        self.told = told

    def capability(self, model, options):
        return self.told


def asked(tmp_path, *, partition=False, **told):
    path = write(tmp_path / "model.onnx", MODEL)
    return ask_parser(Parser(**told), Model.load(path), path, {}, target="tensorrt", partition=partition)


def test_a_model_that_is_taken_has_no_answers(tmp_path):
    found = asked(tmp_path, supported=True, groups=[{"nodes": [0, 1, 2, 3, 4], "supported": True}], problems=[])
    assert (found.outcome, found.nodes, found.answers, found.pieces) == ("ok", 5, (), ())


def test_nodes_behind_a_refused_one_are_not_known(tmp_path):
    """The second problem comes as 8.5 tells it: by place, without a name."""
    problems = [problem("odd", 1, "no plugin"), problem("", 4, "no importer")]
    found = asked(tmp_path, supported=False, groups=[], problems=problems)
    assert [(answer.nodes[0], answer.support) for answer in found.answers] == [
        ("first", Support.SUPPORTED),
        ("odd", Support.UNSUPPORTED),
        ("after", Support.UNKNOWN),
        ("aside", Support.SUPPORTED),
        ("worse", Support.UNSUPPORTED),
    ]
    assert found.message == "no plugin (unsupported_node); no importer (unsupported_node)"
    assert found.answers[1].op_types == ("my::Hammer",)


def test_groups_are_pieces_and_refused_nodes_pieces_of_their_own(tmp_path):
    """TensorRT-RTX calls a group unsupported that has no problem of its own, when another part of the model has."""
    groups = [{"nodes": [0, 3], "supported": False}, {"nodes": [2], "supported": False}]
    found = asked(tmp_path, partition=True, supported=False, groups=groups, problems=[problem("odd", 1, "no plugin")])
    assert [(piece.nodes, piece.support.value) for piece in found.pieces] == [
        (("first", "aside"), "supported"),
        (("odd",), "unsupported"),
        (("after",), "unknown"),
    ]


def test_without_a_reason_that_is_said(tmp_path):
    assert asked(tmp_path, supported=False, groups=[], problems=[]).message == "the parser gave no reason"
