"""``triage polygraphy``: the lines, names and exit codes that scripts of Polygraphy's users depend on.

The expected lines are those that Polygraphy 0.53.6 printed for the same command lines.
"""

import json
import re
import sys

import numpy as np
import onnx
import pytest

from running_cli import EXAMPLES, triage
from tensortriage.inputs.files.data_file import Iteration, Kind
from tensortriage.inputs.files.save_data import save
from tensortriage.workflows.comparison.saved_results import load_saved

pytestmark = pytest.mark.lengthy

MODEL = EXAMPLES / "digits_cnn.onnx"


def polygraphy(*words, cwd):
    return triage("polygraphy", *words, cwd=cwd)


def test_a_comparison_that_passes(tmp_path):
    done = polygraphy("run", MODEL, "--onnxrt", "--onnxrt", "--save-outputs", "out.json", cwd=tmp_path)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"\[I\] RUNNING \| Command: polygraphy run .*", lines[0])
    name = r"onnxrt-runner-N%d-\d\d/\d\d/\d\d-\d\d:\d\d:\d\d"
    pair = f"{name % 0} vs\\. {name % 1}"
    assert re.search(rf"^\[I\] Accuracy Comparison \| {pair}$", done.stdout, re.MULTILINE)
    assert "[I]         PASSED | Output: 'logits' | Difference is within tolerance" in done.stdout
    assert "[I]     PASSED | All outputs matched | Outputs: ['logits']" in lines
    summary = rf"^\[I\] Accuracy Summary \| {pair} \| Passed: 1/1 iterations \| Pass Rate: 100\.00%$"
    assert re.search(summary, done.stdout, re.MULTILINE)
    assert re.fullmatch(r"\[I\] PASSED \| Runtime: \d+\.\d{3}s \| Command: polygraphy run .*", lines[-1])
    runners = [runner for runner, _ in json.loads((tmp_path / "out.json").read_text())["lst"]]
    assert [re.fullmatch(name % number, runner) is not None for number, runner in enumerate(runners)] == [True, True]


def test_a_comparison_that_fails(tmp_path):
    done = polygraphy("run", MODEL, "--onnxrt", "--fp-to-fp16", "--save-outputs", "half.json", cwd=tmp_path)
    assert done.returncode == 0
    done = polygraphy("run", MODEL, "--onnxrt", "--load-outputs", "half.json", cwd=tmp_path)
    assert done.returncode == 1
    assert "[E]         FAILED | Output: 'logits' | Difference exceeds tolerance" in done.stdout
    assert "[E]     FAILED | Mismatched outputs: ['logits']" in done.stdout.splitlines()
    assert "| Passed: 0/1 iterations | Pass Rate: 0.00%" in done.stdout
    assert re.match(r"\[E\] FAILED \| Runtime: ", done.stdout.splitlines()[-1])


def test_made_up_inputs_are_polygraphys(tmp_path):
    assert polygraphy("run", MODEL, "--onnxrt", "--save-inputs", "in.json", cwd=tmp_path).returncode == 0
    found = next(load_saved(tmp_path / "in.json")).results[0]["image"]
    expected = np.random.RandomState(1).random_sample((1, 1, 8, 8)).astype(np.float32)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["run", "missing.onnx", "--onnxrt"], 1),
        (["run", MODEL, "--no-such-option"], 1),
        (["run", MODEL, "--tf"], 1),
        (["run", MODEL, "--onnxrt", "--load-outputs", "missing.json"], 1),
        (["surgeon", "extract", MODEL], 2),
        (["check", "lint", MODEL], 0),
        (["inspect", "sparsity", MODEL], 1),
        (["-v"], 0),
        (["--version"], 0),
    ],
)
def test_exit_codes(words, code, tmp_path):
    done = polygraphy(*words, cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr


def test_validation_and_levels(tmp_path):
    done = polygraphy("run", MODEL, "--onnxrt", "--validate", "-q", cwd=tmp_path)
    assert "PASSED | Output Validation" in done.stdout
    assert "Accuracy" not in done.stdout


def test_errors_are_marked(tmp_path):
    done = polygraphy("run", "missing.onnx", "--onnxrt", cwd=tmp_path)
    assert done.stderr.startswith("[!] ")


def test_nothing_is_left_behind_but_polygraphys_own_files(tmp_path):
    check = tmp_path / "check.py"
    check.write_text(
        "import onnx; exit(any(n.op_type == 'Gemm' for n in onnx.load('polygraphy_debug.onnx').graph.node))"
    )
    words = ["debug", "reduce", MODEL, "-o", "small.onnx", "--mode", "bisect", "--check", sys.executable, check]
    done = polygraphy(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [node.op_type for node in onnx.load(tmp_path / "small.onnx").graph.node] == ["Gemm"]
    replays = {"polygraphy_debug_replay.json", "polygraphy_debug_replay_skip_current.json"}
    assert {path.name for path in tmp_path.iterdir()} == {"small.onnx", "check.py", *replays}


def test_nothing_asked_is_nothing_wrong(tmp_path):
    for words in ([], [MODEL], ["-q"], ["--log-file", "logs/x.log", "-v"]):
        assert polygraphy("run", *words, cwd=tmp_path).returncode == 0
    assert "No runners have been selected" in (tmp_path / "logs/x.log").read_text()
    assert triage("run", cwd=tmp_path).returncode == 2


@pytest.mark.parametrize("option", ["--use-subprocess", "--warm-up"])
def test_what_needs_runners_one_after_the_other(option, tmp_path):
    words = [option, "2"] if option == "--warm-up" else [option]
    done = polygraphy("run", MODEL, "--onnxrt", *words, cwd=tmp_path)
    assert done.returncode == 1
    assert f"{option} requires --sequential-runners" in done.stderr
    assert polygraphy("run", MODEL, "--onnxrt", *words, "--sequential-runners", cwd=tmp_path).returncode == 0


def test_accuracy_results_are_those_that_judged(tmp_path):
    words = ["--compare", "simple", "l2", "--check-error-stat", "max", "--atol", "0.5", "--iterations", "2"]
    words += ["--save-accuracy-results", "acc.json"]
    done = polygraphy("run", MODEL, "--onnxrt", "--onnxrt", *words, cwd=tmp_path)
    assert done.returncode == 0
    simple, l2 = json.loads((tmp_path / "acc.json").read_text())["lst"]
    (runners, iterations), *others = simple["lst"]
    assert others == []
    assert [runner[:16] for runner in runners] == ["onnxrt-runner-N0", "onnxrt-runner-N1"]
    assert [entry["logits"]["passed"] for entry in iterations] == [None, None]
    limits = iterations[0]["logits"]["thresholds"]
    assert (limits["check_error_stat"], limits["atol"], limits["rtol"]) == ("max", 0.5, 1e-5)
    assert l2["lst"][0][1][0]["logits"]["polygraphy_class"] == "L2Result"
    done = polygraphy("check", "accuracy", "acc.json", "--check-error-stat", "max", cwd=tmp_path)
    assert "| Passed: 2/2 iterations | Pass Rate: 100.00%" in done.stdout


def test_averages(tmp_path):
    words = ["run", MODEL, "--onnxrt", "--onnxrt", "--iterations", "2", "--check-average"]
    done = polygraphy(*words, "--check-error-stat", "mean", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "| Passed: 1/1 outputs" in done.stdout
    assert "Pass Rate" not in done.stdout
    for more, words_of in (([], "not supported with check_error_stat='elemwise'"),
                           (["--compare", "indices"], "does not produce averageable metrics")):  # fmt: skip
        refused = polygraphy(*words, *more, cwd=tmp_path)
        assert refused.returncode == 1
        assert words_of in refused.stderr


def test_means_over_feeds_decide(tmp_path):
    """The errors are 0.2 and 0: their mean, 0.1, is within 0.15, the first by itself is not."""
    words = ["--iterations", "2", "--save-outputs", "golden.json"]
    assert triage("run", MODEL, "--onnxrt", *words, "--save-inputs", "in.json", cwd=tmp_path).returncode == 0
    saved = next(load_saved(tmp_path / "golden.json"))
    moved = [{"logits": saved.results[0]["logits"] + np.float32(0.2)}, saved.results[1]]
    save(tmp_path / "moved.json", [("moved", map(Iteration, moved))], kind=Kind.OUTPUTS)
    words = ["run", MODEL, "--load-outputs", "golden.json", "moved.json", "--load-inputs", "in.json"]
    words += ["--check-error-stat", "mean", "--atol", "0.15", "--rtol", "0"]
    assert triage(*words, cwd=tmp_path).returncode == 1
    done = triage(*words, "--check-average", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "means over all iterations" in done.stdout


def test_loaded_outputs_are_not_saved_again(tmp_path):
    assert polygraphy("run", MODEL, "--onnxrt", "--save-outputs", "golden", cwd=tmp_path).returncode == 0
    words = ["--load-outputs", "golden", "--save-outputs", "new"]
    assert polygraphy("run", MODEL, "--onnxrt", *words, cwd=tmp_path).returncode == 0
    assert len(json.loads((tmp_path / "new/0000000000.json").read_text())["lst"]) == 1


def test_values_of_all_layers_feed_a_part(tmp_path):
    words = ["--onnx-outputs", "mark", "all", "--save-inputs", "in.json", "--save-outputs", "layers.json"]
    assert polygraphy("run", MODEL, "--onnxrt", *words, cwd=tmp_path).returncode == 0
    assert polygraphy("data", "merge", "in.json", "layers.json", "-o", "all.json", cwd=tmp_path).returncode == 0
    words = ["--inputs", "/Relu_1_output_0:auto:auto", "-o", "part.onnx"]
    assert polygraphy("surgeon", "extract", MODEL, *words, cwd=tmp_path).returncode == 0
    words = ["--load-inputs", "all.json", "--load-outputs", "layers.json"]
    done = polygraphy("run", "part.onnx", "--onnxrt", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "PASSED | All outputs matched | Outputs: ['logits']" in done.stdout


def test_shapes_as_they_once_were_written(tmp_path):
    words = ["--inputs", "image,3x1x8x8", "--save-inputs", "in.json"]
    assert polygraphy("run", MODEL, "--onnxrt", *words, cwd=tmp_path).returncode == 0
    assert next(load_saved(tmp_path / "in.json")).results[0]["image"].shape == (3, 1, 8, 8)


def test_weights_in_another_directory(tmp_path):
    """An engine looks for external data next to the model, where they are not."""
    model = onnx.load(MODEL)
    (tmp_path / "weights").mkdir()
    onnx.save(model, tmp_path / "weights/m.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    (tmp_path / "weights/m.onnx").rename(tmp_path / "m.onnx")
    done = polygraphy("run", "m.onnx", "--onnxrt", "--onnxrt", "--external-data-dir", "weights", cwd=tmp_path)
    assert done.returncode == 0, done.stdout


LISTING = """\
[I] ==== ONNX Model ====
    Name: odd | ONNX Opset: 18 | Other Opsets: {'com.microsoft': 1}

    ---- 1 Graph Input(s) ----
    {x [dtype=float32, shape=(2, 2)]}

    ---- 2 Graph Output(s) ----
    {z [dtype=float32, shape=('n',)],
     r [dtype=float32, shape=(0, -1)]}

    ---- 2 Initializer(s) ----
    Initializer | w [dtype=float32, shape=[2, 2]] | Values:
        [[0.  0.1]
         [0.2 0.3]]

    Initializer | s [dtype=float32, shape=[2]] | Values:
        [1. 1.]

    ---- 4 Node(s) ----
    Node 0    | fm [Op: FusedMatMul]
        {x [dtype=float32, shape=(2, 2)],
         Initializer | w [dtype=float32, shape=(2, 2)]}
         -> {a}
        ---- Attributes ----
        fm.alpha = 0.5

    Node 1    | rs [Op: Resize]
        {a,
         ,
         Initializer | s [dtype=float32, shape=(2,)]}
         -> {y}
        ---- Attributes ----
        rs.axes = [0, 1]
        rs.mode = linear

    Node 2    | sp [Op: Split]
        {y}
         -> {q,
             r [dtype=float32, shape=(0, -1)]}

    Node 3    |  [Op: If]
        {q}
         -> {z [dtype=float32, shape=('n',)]}
        ---- Attributes ----
        else_branch =
                ---- 0 Subgraph Input(s) ----
                {}

                ---- 1 Subgraph Output(s) ----
                {k [dtype=float32, shape=(2,)]}

                ---- 0 Initializer(s) ----
                {}

                ---- 1 Node(s) ----
                Node 0    |  [Op: Constant]
                    {} -> {k [dtype=float32, shape=(2,)]}
                    ---- Attributes ----
                    value = Tensor: [dtype=float32, shape=[2]] | Values:
                        [1. 1.]
"""


def test_inspect_model_prints_the_listing_that_scripts_read(tmp_path):
    """The text is what Polygraphy 0.53.6 printed for this model."""

    def node(op, inputs, outputs, name="", **more):
        return onnx.helper.make_node(op, inputs, outputs, name, **more)

    def value(name, *shape):
        return onnx.helper.make_tensor_value_info(name, 1, shape)

    one = onnx.numpy_helper.from_array(np.ones(2, np.float32), "s")
    body = onnx.helper.make_graph([node("Constant", [], ["k"], value=one)], "else", [], [value("k", 2)])
    nodes = [
        node("FusedMatMul", ["x", "w"], ["a"], "fm", domain="com.microsoft", alpha=0.5),
        node("Resize", ["a", "", "s"], ["y"], "rs", mode="linear", axes=[0, 1]),
        node("Split", ["y"], ["q", "r"], "sp"), node("If", ["q"], ["z"], else_branch=body),
    ]  # fmt: skip
    weights = onnx.numpy_helper.from_array(np.array([[0, 0.1], [0.2, 0.3]], np.float32), "w")
    graph = onnx.helper.make_graph(nodes, "odd", [value("x", 2, 2)], [value("z", "n"), value("r", 0, None)],
                                   [weights, one])  # fmt: skip
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("com.microsoft", 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "odd.onnx")
    done = polygraphy("inspect", "model", "odd.onnx", "--show", "layers", "attrs", "weights", cwd=tmp_path)
    first, *lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert first.startswith("[I] Loading model: ")
    assert lines == LISTING.splitlines()


def relu_chain(path, *names, opset=13, graph_name="graph", domain=""):
    """Write a chain of Relus with these names."""
    nodes = [
        onnx.helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], name, domain=domain) for i, name in enumerate(names)
    ]
    ends = [onnx.helper.make_tensor_value_info(name, 1, [2, 2]) for name in ("v0", f"v{len(names)}")]
    graph = onnx.helper.make_graph(nodes, graph_name, ends[:1], ends[1:])
    opsets = [onnx.helper.make_opsetid(each, opset) for each in dict.fromkeys(("", domain))]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def entry(level, source, message, *nodes):
    return {"level": level, "source": source, "message": message} | ({"nodes": [*nodes]} if nodes else {})


@pytest.mark.parametrize(
    ("names", "more", "code", "passing", "failing", "entries"),
    [
        (["a", "b"], {}, 0, ["a", "b"], [], []),
        (["s", "s"], {}, 1, [], ["s"],
         [entry("exception", "onnx_graphsurgeon",
                "Duplicate node name: 's' for nodes with topological IDs: [0, 1] found.", "s")]),
        (["a"], {"graph_name": ""}, 1, ["a"], [],
         [entry("exception", "onnx_checker", "Field 'name' of 'graph' is required to be non-empty.")]),
        (["", "polygraphy_unnamed_node_0", ""], {}, 0,
         ["polygraphy_unnamed_node_0", "polygraphy_unnamed_node_0_0", "polygraphy_unnamed_node_2"], [], []),
        ([""], {"domain": "my.own"}, 0, ["polygraphy_unnamed_node_0"], [],
         [entry("warning", "onnxruntime", "Fatal error: my.own:Relu(-1) is not a registered function/op",
                "polygraphy_unnamed_node_0")]),
    ],
    ids=["sound", "name twice", "no name", "unnamed", "custom"],
)  # fmt: skip
def test_lint_reports_what_scripts_compare(names, more, code, passing, failing, entries, tmp_path):
    """The reports are those that Polygraphy 0.53.6 wrote for the same models."""
    relu_chain(tmp_path / "m.onnx", *names, **more)
    done = polygraphy("check", "lint", "m.onnx", "-o", "lint.json", cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    document = json.loads((tmp_path / "lint.json").read_text())
    assert document == {"summary": {"passing": passing, "failing": failing}, "lint_entries": entries}


@pytest.mark.parametrize(("more", "said"), [((), 1), (("--no-onnxruntime-shape-inference",), 0)])
def test_shapes_that_were_inferred_are_told_of_in_the_words_that_scripts_look_for(more, said, tmp_path):
    line = "Inferred shapes in the model with `onnxruntime.tools.symbolic_shape_infer`"
    words = ("surgeon", "sanitize", MODEL, "-o", "out.onnx", "--fold-constants", *more, "-v")
    done = polygraphy(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout.count(line)) == (0, said)


def test_lint_of_what_is_no_model(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"this is not a model")
    assert polygraphy("check", "lint", "m.onnx", "-o", "lint.json", cwd=tmp_path).returncode == 1
    (found,) = json.loads((tmp_path / "lint.json").read_text())["lint_entries"]
    assert (found["level"], found["source"]) == ("exception", "onnx_loader")
    assert found["message"].startswith("Error parsing message with type 'onnx.ModelProto'")
    empty = onnx.helper.make_model(onnx.helper.make_graph([], "empty", [], []), ir_version=8)
    onnx.save(empty, tmp_path / "empty.onnx")
    assert polygraphy("check", "lint", "empty.onnx", "-o", "lint.json", cwd=tmp_path).returncode == 0
    found = json.loads((tmp_path / "lint.json").read_text())["lint_entries"]
    assert found == [entry("warning", "onnx_loader", "ONNX model has no nodes")]


def sizes(values):
    return [[dim.dim_value or dim.dim_param for dim in value.type.tensor_type.shape.dim] for value in values]


def test_shapes_of_a_run_are_declared_at_both_ends(tmp_path):
    """Open dimensions are 1 there, in inputs as in outputs."""
    for words in (["surgeon", "extract", MODEL, "--outputs", "logits:auto"], ["surgeon", "sanitize", MODEL]):
        done = polygraphy(*words, "-o", "o.onnx", "--force-fallback-shape-inference", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        graph = onnx.load(tmp_path / "o.onnx").graph
        assert sizes(graph.input) == [[1, 1, 8, 8]]
        assert sizes(graph.output) == [[1, 10]]


def test_other_sizes_cannot_be_verified_and_are_written(tmp_path):
    relu_chain(tmp_path / "m.onnx", "a")
    words = ["surgeon", "sanitize", "m.onnx", "--override-input-shapes", "v0:[5,2]", "-o", "o.onnx"]
    done = polygraphy(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "its inputs now have other sizes" in done.stdout + done.stderr
    assert sizes(onnx.load(tmp_path / "o.onnx").graph.input) == [[5, 2]]


def test_a_custom_node_leaves_the_declared_outputs(tmp_path):
    relu_chain(tmp_path / "m.onnx", "a", "b")
    words = ["surgeon", "insert", "m.onnx", "--inputs", "v1", "--outputs", "v1", "--op", "FakeOp", "-o", "o.onnx"]
    assert polygraphy(*words, cwd=tmp_path).returncode == 0
    graph = onnx.load(tmp_path / "o.onnx").graph
    assert [node.op_type for node in graph.node] == ["Relu", "FakeOp", "Relu"]
    assert sizes(graph.output) == [[2, 2]]


def test_the_name_of_an_engine_asks_for_one(tmp_path):
    """With TensorRT it is built, without it that is said; an ONNX file of that name would be found out much later."""
    done = polygraphy("convert", MODEL, "-o", "m.engine", cwd=tmp_path)
    if done.returncode:
        assert "tensorrt" in done.stderr.lower()
        assert not (tmp_path / "m.engine").exists()
    else:
        assert (tmp_path / "m.engine").read_bytes()[:8] != MODEL.read_bytes()[:8]


def test_a_person_is_asked_as_there(tmp_path):
    """Whoever begins has seen the whole fail, and is asked about its pieces alone."""
    relu_chain(tmp_path / "m.onnx", "a", "b", "c", "d")
    (tmp_path / "replies.txt").write_text("d\nf\np\nf\np\n")
    with (tmp_path / "replies.txt").open() as replies:
        done = triage("polygraphy", "debug", "reduce", "m.onnx", "-o", "r.onnx", cwd=tmp_path, stdin=replies)
    assert done.returncode == 0, done.stderr
    assert ">>> Did 'polygraphy_debug.onnx' [p]ass or [f]ail? " in done.stdout
    assert [node.name for node in onnx.load(tmp_path / "r.onnx").graph.node] == ["b", "c"]
