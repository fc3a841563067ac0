"""Origins as torch 2.13 writes them; the texts were copied from exported files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortriage.model.provenance.origin import BODY, UNKNOWN, NodeOrigin, read_origin

LLAMA = {
    "pkg.torch.onnx.name_scopes": "['', 'model', 'model.layers.1', 'model.layers.1.self_attn', "
    "'model.layers.1.self_attn.o_proj', 'linear_10']",
    "pkg.torch.onnx.class_hierarchy": "['transformers.models.llama.modeling_llama.LlamaForCausalLM', "
    "'transformers.models.llama.modeling_llama.LlamaModel', "
    "'transformers.models.llama.modeling_llama.LlamaDecoderLayer', "
    "'transformers.models.llama.modeling_llama.LlamaAttention', 'torch.nn.modules.linear.Linear', "
    "'aten.linear.default']",
    "pkg.torch.onnx.fx_node": "%linear_10 : [num_users=1] = call_function[target=torch.ops.aten.linear.default]",
    "pkg.torch.onnx.stack_trace": 'File "/venv/site-packages/transformers/models/llama/modeling_llama.py", line 281, '
    "in forward\n    attn_output = self.o_proj(attn_output)\n"
    '  File "/venv/site-packages/torch/nn/modules/linear.py", line 134, in forward\n    return F.linear(',
}


def test_everything_that_the_dynamo_exporter_says():
    origin = read_origin("node_linear_10", LLAMA)
    assert origin == NodeOrigin(
        "model.layers.1.self_attn.o_proj",
        "Linear",
        "/venv/site-packages/transformers/models/llama/modeling_llama.py",
        281,
        "aten.linear.default",
        "linear_10",
    )
    assert origin.label == "model.layers.1.self_attn.o_proj (Linear, modeling_llama.py:281)"


def test_the_network_itself_goes_by_its_class():
    metadata = {
        "pkg.torch.onnx.name_scopes": "['', 'add']",
        "pkg.torch.onnx.class_hierarchy": "['__main__.Net', 'aten.add.Tensor']",
        "pkg.torch.onnx.stack_trace": 'File "C:\\\\nets\\\\net.py", line 7, in forward\n    return x + 1',
    }
    origin = read_origin("node_add", metadata)
    assert (origin.module, origin.is_known, origin.label) == ("", True, "Net (net.py:7)")


def test_a_stack_of_pytorch_alone_still_tells_a_place():
    trace = {"pkg.torch.onnx.stack_trace": 'File "/x/torch/nn/functional.py", line 9, in f\n    pass'}
    assert read_origin("n", trace).source == "functional.py:9"


def test_the_verbose_older_exporter():
    stack = (
        "/venv/site-packages/torch/nn/modules/linear.py(134): forward\n"
        "/venv/site-packages/torch/nn/modules/module.py(1768): _slow_forward\n"
        "/home/user/net.py(28): forward\n/home/user/net.py(45): forward\n"
    )
    assert read_origin("/layers.0/attn/o_proj/MatMul", {}, stack).label == "layers.0.attn.o_proj (net.py:28)"


@pytest.mark.parametrize(
    ("scopes", "module"),
    [
        ("['', 'model', 'model.encoder', 'model.encoder.layer.0', 'model.encoder.layer.0.output', 'linear_5']",
         "model.encoder.layer.0.output"),
        ("['', 'add']", ""),
        ("['', 'a', 'other.b', 'x']", "a.other.b"),
        ("['', 'a', 'a', 'a.b', 'x']", "a.b"),
    ],
)  # fmt: skip
def test_nested_scopes(scopes, module):
    assert read_origin("node", {"pkg.torch.onnx.name_scopes": scopes}).module == module


@pytest.mark.parametrize("text", ["", "no list", "[", "[" * 5000, "[" + " " * 200_000 + "]", "[1, 2]", "['\\", "{}"])
def test_metadata_that_make_no_sense_fall_back_to_the_name(text):
    metadata = dict.fromkeys(LLAMA, text)
    assert read_origin("/a/b", metadata, text) == NodeOrigin("a")


def test_nothing_is_known_of_a_plain_name():
    assert read_origin("MatMul_12", {}) == UNKNOWN
    assert not UNKNOWN.is_known
    assert UNKNOWN.label == ""


def test_a_name_that_says_as_much_is_not_repeated():
    name = "/layer1/layer1.0/conv1/Conv"
    assert read_origin(name, {}).beside(name) == ""
    assert read_origin("node_linear_10", LLAMA).beside("node_linear_10").startswith("model.layers.1.self_attn.o_proj (")


def test_the_branch_that_a_node_was_taken_from_is_always_told():
    name, body = "/layer1/layer1.0/conv1/Conv", {BODY: "choice/then_branch"}
    assert read_origin(name, body).beside(name) == "in choice/then_branch"
    assert read_origin("node_linear_10", LLAMA | body).beside("node_linear_10").endswith(") in choice/then_branch")


@given(st.text(), st.dictionaries(st.sampled_from(sorted(LLAMA)), st.text()), st.text())
def test_no_text_of_a_stranger_is_too_odd(name, metadata, doc_string):
    origin = read_origin(name, metadata, doc_string)
    assert origin.line >= 0
    assert isinstance(origin.label, str)


IN_A = NodeOrigin("net.a", operator="aten.add.Tensor")


@pytest.mark.parametrize(
    ("name", "users", "makers", "module"),
    [
        ("n", [IN_A, NodeOrigin("net.b", operator="aten.mul.Tensor")], [], "net"),  # as an optimizer put it in
        ("n", [NodeOrigin("net.a")], [NodeOrigin("net.a")], "net.a"),  # names are paths
        ("n", [NodeOrigin("net.a")], [NodeOrigin("net.b")], ""),
        ("n", [NodeOrigin("net.a")], [], ""),
        ("/top/n", [NodeOrigin("net.a")], [NodeOrigin("net.a")], ""),  # its own name is a path
    ],
)
def test_a_node_without_a_module_has_that_of_the_nodes_around(name, users, makers, module):
    assert UNKNOWN.among(name, users=users, makers=makers).module == module
