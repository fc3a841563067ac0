"""The whole reduction in this process: engines with planted faults, commands, a person, and checks that misbehave."""

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import models
from reducing import NEEDS, Deaf, dag, looking_for, nodes_of, seen
from tensortriage.engines.base import Limits
from tensortriage.errors import TriageError
from tensortriage.reduce.commands.by_command import UndoError
from tensortriage.reduce.request import Ends, ReduceMode, ReduceRequest
from tensortriage.runs.commands.check import CheckSpec, shell_words
from tensortriage.runs.elsewhere import named_cluster
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.search.search_result import SearchBudget
from tensortriage.workflows.reduce import reduce
from tensortriage_testing import encoder, feed_for, save_model

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def request(**given):
    return ReduceRequest(model=Path("m.onnx"), output=Path("r.onnx"), **given)


def by_engine(target, **given):
    feeding = FeedRequest(paths=("m.npz",))
    return reduce(request(target=target, feeding=feeding, shrink_seconds=0.0, **given), listener=Deaf())


def by_check(*words, given=None, **rest):
    spec = CheckSpec(words=shell_words(words), **(given or {}))
    return reduce(request(check=spec, **rest), listener=Deaf())


def names_in(result):
    return [node.name for node in result.kept]


def test_a_cluster_runs_the_checks_of_a_command_alone(folder):
    with pytest.raises(TriageError) as caught:
        reduce(request(target="onnxruntime", cluster=named_cluster("local:2")), listener=Deaf())
    assert caught.value.slug == "cluster-without-check"


# --- engines ----------------------------------------------------------------------------------------------------------


@pytest.mark.lengthy
def test_a_planted_fault_takes_one_check(folder):
    names = dag(folder)
    result = by_engine(f"script:faulty.py,kind=scale,node={names[9]}")
    assert names_in(result) == nodes_of(folder / "r.onnx") == [names[9]]
    assert (result.minimality, result.verified, result.failure.kind.value) == ("one-minimal", True, "wrong")
    assert result.checks == 4  # three of the premise, one of the node with the largest local error
    assert result.local.error == pytest.approx(0.05, rel=0.01)  # the default amount of the planted fault


@pytest.mark.lengthy
def test_a_fusion_fault_takes_both_nodes(folder):
    names = dag(folder)
    graph = onnx.load(folder / "m.onnx").graph
    first = next(node for node in graph.node[5:] if any(node.output[0] in other.input for other in graph.node))
    second = next(node for node in graph.node if first.output[0] in node.input)
    result = by_engine(f"script:faulty.py,kind=scale,node={first.name},fused_with={second.name},amount=2")
    assert sorted(names_in(result)) == sorted([first.name, second.name])
    assert names


@pytest.mark.lengthy
def test_nodes_far_apart(folder):
    names = dag(folder)
    needed = [names[4], names[5], names[17]]
    (folder / "needs.py").write_text(NEEDS.format(needed=needed))
    result = by_engine("script:needs.py")
    assert names_in(result) == needed
    assert {node.without for node in result.kept} == {"pass"}
    again = by_engine("script:needs.py")
    assert names_in(again) == needed
    assert again.cache_hits == again.checks + again.repeats == result.checks + result.repeats


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("kind", "expected"),
    [("crash", "engine-crash"), ("build-failure", "build-failed"), ("hang", "engine-hang")],
)
def test_other_ways_of_failing(folder, kind, expected):
    names = dag(folder, 4)
    limits = Limits(build_seconds=20.0, run_seconds=0.5)
    result = by_engine(f"script:faulty.py,kind={kind},node={names[2]}", limits=limits)
    assert result.failure.kind.value == expected
    assert names_in(result) == [names[2]]
    assert result.verified


@pytest.mark.lengthy
def test_engines_may_be_asked_several_things_at_once(folder):
    names = dag(folder)
    (folder / "needs.py").write_text(NEEDS.format(needed=[names[4], names[17]]))
    one, three = (by_engine("script:needs.py", jobs=jobs, case=Path(str(jobs))) for jobs in (1, 3))
    assert names_in(one) == [names[4], names[17]]
    assert dataclasses.replace(three, seconds=one.seconds) == one


@pytest.mark.lengthy
def test_what_leaves_a_piece_from_inside_counts(folder):
    """Of the error of ``a`` a tenth of a tenth goes on through ``b``, the end of the piece; the rest goes around it."""
    text = "g (float[2] x) => (float[2] y) <float w = {0.01}> { [a] p = Sin(x) [b] q = Mul(p, w) [c] y = Add(p, q) }"
    models.parse(text).save("m.onnx")
    np.savez("m.npz", x=np.array([0.5, 0.25], np.float32))
    (folder / "needs.py").write_text(NEEDS.format(needed=["a", "b"]))
    assert names_in(by_engine("script:needs.py")) == ["a", "b"]


@pytest.mark.lengthy
def test_errors_that_leave_a_piece_twice_do_not_cancel(folder):
    """The error of ``a`` leaves as ``p`` and, halved and turned, as ``q``, which holds it already: half of it is left.

    Were it carried from ``p`` through ``b`` and then added once more at ``q``, nothing would be left.
    """
    text = """g (float[2] x) => (float[2] y) <float w = {-0.5}, float v = {0.001}> {
        [a] p = Sin(x) [b] q = Mul(p, w) [c] r = Mul(q, v) [d] s = Add(p, q) [e] y = Add(s, r)
    }"""
    models.parse(text).save("m.onnx")
    np.savez("m.npz", x=np.array([0.5, 0.25], np.float32))
    (folder / "needs.py").write_text(NEEDS.format(needed=["a", "b", "c"]))
    assert names_in(by_engine("script:needs.py")) == ["a", "b", "c"]


@pytest.mark.lengthy
def test_every_sample_is_used(folder):
    """The fault shows the result of the run before, so the first sample alone never fails."""
    names = dag(folder)
    feeds = [feed_for(onnx.load("m.onnx"), seed=seed) for seed in (0, 1)]
    np.savez("m.npz", **{name: np.stack([feed[name] for feed in feeds]) for name in feeds[0]})
    result = by_engine(f"script:faulty.py,kind=stale,node={names[9]}")
    assert result.failure.sample == "m.npz[1]"
    assert names_in(result) == [names[9]]


@pytest.mark.lengthy
def test_a_fault_in_half_of_the_builds(folder):
    names = dag(folder, 12)
    result = by_engine(f"script:faulty.py,kind=scale,node={names[5]},build_chance=0.5,amount=2", premise=20)
    assert names_in(result) == [names[5]]
    assert 0 < result.failed_runs < result.runs  # but for one case in half a million
    assert result.verified


def test_a_healthy_engine_is_not_reduced(folder):
    dag(folder)
    with pytest.raises(TriageError) as caught:
        by_engine("onnxruntime")
    assert caught.value.slug == "premise-not-failing"
    assert "largest error" in caught.value.message
    assert not (folder / "r.onnx").exists()


@pytest.mark.lengthy
def test_overflow_of_a_real_format(folder):
    model = encoder(layers=1, width=16, tokens=8, vocabulary=50)
    scale = next(tensor for tensor in model.graph.initializer if "query" in tensor.name and len(tensor.dims) == 2)
    scale.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(scale) * np.float32(1e6), scale.name))
    save_model(model, folder / "m.onnx")
    np.savez("m.npz", **feed_for(model))
    result = by_engine("emulate:precision=fp16")
    assert [node.op_type for node in result.kept] == ["MatMul"]
    assert result.failure.kind.value == "non-finite"


@pytest.mark.lengthy
def test_an_overflow_that_leaves_finite_numbers(folder):
    """x / sqrt(x * x) is a sign; in fp16 300 * 300 is Inf and the output 0: lost, though rounding explains it."""
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float[4] y)
        {a = Neg(x) s = Mul(a, a) r = Sqrt(s) i = Reciprocal(r) y = Mul(a, i)}"""
    models.write(folder / "m.onnx", text)
    np.savez("m.npz", x=np.array([300.0, -400.0, 500.0, 600.0], np.float32))
    result = by_engine("emulate:precision=fp16")
    assert [node.outputs for node in result.kept] == [("s",)]
    assert result.failure.output == "y"


# --- a command --------------------------------------------------------------------------------------------------------


def test_nodes_far_apart_are_found_by_a_command(folder):
    names = dag(folder)
    needed = [names[3], names[18]]
    result = by_check(*looking_for(*needed), min_good=Path("good.onnx"))
    assert names_in(result) == nodes_of(folder / "r.onnx") == needed
    assert (result.minimality, result.verified, result.signature) == ("one-minimal", True, "exit code 1")
    assert not set(needed) <= set(nodes_of(folder / "good.onnx"))
    assert not (folder / "polygraphy_debug.onnx").exists()
    onnx.checker.check_model("r.onnx", full_check=True)
    assert len(seen(folder)) == result.checks + result.repeats + 1  # the result is asked about once more


@pytest.mark.lengthy
def test_a_second_run_asks_nothing_again(folder):
    names = dag(folder)
    first = by_check(*looking_for(names[3], names[18]))
    before = len(seen(folder))
    second = by_check(*looking_for(names[3], names[18]))
    assert second.cache_hits == second.checks + second.repeats == first.checks + first.repeats
    assert len(seen(folder)) == before + 1  # the result is seen to fail once more, always
    script = folder / "looking.py"
    script.write_text(script.read_text() + "\n")
    third = by_check(*looking_for(names[3], names[18]))
    assert third.cache_hits == 0  # it is another check now


def test_a_log_that_the_check_writes_does_not_make_it_another(folder):
    names = dag(folder)
    words = " ".join(looking_for(names[3])) + " || { echo no >> own.log; exit 1; }"
    (folder / "own.log").write_text("")
    first, second = by_check(words), by_check(words)
    assert (first.cache_hits, second.cache_hits) == (0, first.checks)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("words", "given", "slug"),
    [
        (["true"], {}, "premise-not-failing"),
        (["no-such-program"], {}, "check-program-missing"),
        (["no-such-program -x; exit $?"], {}, "check-program-missing"),
        ([sys.executable, "-c", "import nosuchmodule"], {}, "check-always-fails"),
        (["sleep", "60"], {"timeout_seconds": 0.1}, "premise-unresolved"),
    ],
)
def test_checks_that_cannot_be_used(folder, words, given, slug):
    dag(folder, 8)
    with pytest.raises(TriageError) as caught:
        by_check(*words, given=given)
    assert caught.value.slug == slug


def test_the_reason_of_a_broken_check_is_told(folder):
    dag(folder, 8)
    with pytest.raises(TriageError, match="No module named 'nosuchmodule'"):
        by_check(sys.executable, "-c", "import nosuchmodule")


def test_a_fault_of_one_operator_everywhere_is_no_broken_check(folder):
    """Every piece that the search looks at holds a MatMul, so it never sees the check pass."""
    dag(folder)
    result = by_check("grep -aq MatMul polygraphy_debug.onnx && exit 3; exit 0")
    assert len(result.kept) == 1


@pytest.mark.parametrize(
    ("given", "slug"),
    [
        ({}, "reduce-no-judge"),
        ({"check": CheckSpec(words=("false",)), "input_shapes": {"nosuch": (1,)}}, "input-unknown"),
        ({"check": CheckSpec(words=("false",)), "artifact": Path("m.npz")}, "iter-artifact-exists"),
        ({"check": CheckSpec(words=("false",)), "artifact": Path("/x.onnx"), "jobs": 2}, "iter-artifact-shared"),
        ({"check": CheckSpec(words=("false",)), "load_replay": Path("m.npz")}, "replay-unreadable"),
        ({"check": CheckSpec(words=("false",)), "budget": SearchBudget(checks=0)}, "search-budget-too-small"),
        ({"target": "nosuch"}, "engine-unknown"),
    ],
)
def test_requests_that_cannot_be_met(folder, given, slug):
    dag(folder, 8)
    with pytest.raises(TriageError) as caught:
        reduce(request(**given), listener=Deaf())
    assert caught.value.slug == slug
    assert (folder / "m.npz").exists()


@pytest.mark.lengthy
def test_a_failure_of_another_kind_is_kept_apart(folder):
    names = dag(folder)
    check = " ".join(looking_for(names[3], names[15])) + f" || exit 1; {' '.join(looking_for(names[3]))} || exit 7"
    result = by_check(check)
    assert names_in(result) == [names[3], names[15]]
    (other,) = result.others
    assert other.signature == "exit code 7"
    assert names[3] in nodes_of(folder / "triage-case" / other.path)


@pytest.mark.lengthy
def test_hostile_checks_do_not_end_the_search(folder):
    """Depending on what it is shown, the check prints 20 MB, hangs, crashes; it always deletes the model."""
    names = dag(folder, 12)
    (folder / "hostile.py").write_text(
        "import os, sys, time, subprocess\n"
        f"fails = subprocess.run({looking_for(names[2], names[8])!r}).returncode\n"
        "data = open('polygraphy_debug.onnx', 'rb').read()\n"
        "os.remove('polygraphy_debug.onnx')\n"
        "if len(data) % 2: print('x' * 20_000_000)\n"
        "if not fails and len(data) % 3 == 0: time.sleep(60)\n"
        "if not fails and len(data) % 3 == 1: os.kill(os.getpid(), 11)\n"
        "sys.exit(fails)\n"
    )
    result = by_check(sys.executable, "-S", "hostile.py", given={"timeout_seconds": 1.0})
    assert names_in(result) == [names[2], names[8]]


@pytest.mark.lengthy
def test_sizes_and_weights_shrink_by_a_command_too(folder):
    names = dag(folder)
    result = by_check(*looking_for(names[3]), shrink_seconds=60.0)
    assert names_in(result) == nodes_of(folder / "r.onnx") == [names[3]]
    assert {shrunk.what for shrunk in result.shrunk if shrunk.done} >= {"sizes"}
    (graph_input,) = onnx.load("r.onnx").graph.input
    assert all(dim.dim_value == 1 for dim in graph_input.type.tensor_type.shape.dim)
    assert not by_check(*looking_for(names[3]), case=Path("other")).shrunk


@pytest.mark.lengthy
def test_checks_side_by_side_give_the_same_result(folder):
    names = dag(folder)
    one = by_check(*looking_for(names[3], names[18]), case=Path("one"))
    two = by_check(*looking_for(names[3], names[18]), case=Path("two"), jobs=3)
    assert (one.kept, one.checks, one.candidates) == (two.kept, two.checks, two.candidates)
    assert not (folder / "polygraphy_debug.onnx").exists()


@pytest.mark.lengthy
def test_a_replay_steers_only_the_search_it_was_made_by(folder):
    names = dag(folder)
    check = looking_for(names[3], names[18])
    by_check(*check, case=Path("a"), save_replay=Path("replay.json"))
    before = len(seen(folder))
    by_check(*check, case=Path("b"), load_replay=Path("replay.json"))
    assert len(seen(folder)) == before + 1
    with pytest.raises(TriageError) as caught:
        by_check(*looking_for(names[4]), case=Path("c"), load_replay=Path("replay.json"))
    assert caught.value.slug == "replay-foreign"


@pytest.mark.lengthy
@pytest.mark.parametrize("mode", [ReduceMode.BISECT, ReduceMode.LINEAR, ReduceMode.BLOCKS])
def test_other_modes(folder, mode):
    names = dag(folder, 12)
    assert names_in(by_check(*looking_for(names[11]), mode=mode)) == [names[11]]


@pytest.mark.parametrize("ends", [Ends.KEEP_INPUTS, Ends.KEEP_OUTPUTS])
def test_ends_that_are_kept(folder, ends):
    names = dag(folder, 16)
    by_check(*looking_for(names[7]), ends=ends)
    whole, part = onnx.load("m.onnx").graph, onnx.load("r.onnx").graph
    assert names[7] in nodes_of(folder / "r.onnx")
    pick = (lambda graph: graph.input) if ends is Ends.KEEP_INPUTS else (lambda graph: graph.output)
    assert {value.name for value in pick(part)} <= {value.name for value in pick(whole)}


def test_a_budget_ends_with_the_smallest_so_far(folder):
    names = dag(folder)
    result = by_check(*looking_for(names[3], names[18]), budget=SearchBudget(checks=7))
    assert (result.stop, result.minimality) == ("check-budget", "budget")
    assert {names[3], names[18]} <= set(names_in(result))


@pytest.mark.lengthy
def test_weights_beside_the_model_stay_there(folder, monkeypatch):
    names = dag(folder)
    save_model(onnx.load("m.onnx"), folder / "m.onnx", external_data=True)
    check = " ".join(looking_for(names[3], names[18])) + " ; s=$?; ls -1 | grep -v r.onnx | wc -l >> files; exit $s"
    result = by_check(check)
    assert names_in(result) == [names[3], names[18]]
    assert len(set((folder / "files").read_text().split()[1:])) == 1  # nothing is written beside the piece
    onnx.checker.check_model("r.onnx", full_check=True)
    (folder / "m.onnx.data").unlink()
    onnx.load("r.onnx")  # the result needs no other file


# --- a person ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Scripted:
    """Answers what was written down; then the end."""

    answers: list
    asked: int = 0

    def judge(self, model, nodes):
        assert nodes == len(nodes_of(model))
        self.asked += 1
        if not self.answers:
            raise KeyboardInterrupt
        answer = self.answers.pop(0)
        if answer is UndoError:
            raise UndoError
        return answer


def test_a_person_may_take_answers_back(folder):
    dag(folder, 2)
    person = Scripted([True, False, UndoError, True])
    result = reduce(request(person=person), listener=Deaf())
    assert (person.asked, len(result.kept), result.asked, result.verified) == (4, 1, "person", None)


def test_a_person_may_stop(folder):
    dag(folder, 8)
    result = reduce(request(person=Scripted([True, True])), listener=Deaf())
    assert result.stop == "interrupted"
    assert 0 < len(nodes_of(folder / "r.onnx")) < 8


class Impatient(Deaf):
    """Presses Ctrl-C when so many checks were made."""

    def __init__(self, patience):
        self.patience = patience

    def checked(self, progress):
        if progress.checks >= self.patience:
            raise KeyboardInterrupt


def test_ctrl_c_before_it_is_known_how_the_whole_fails_begins_no_search(folder):
    names = dag(folder, 8)
    spec = CheckSpec(words=shell_words(looking_for(names[3])))
    with pytest.raises(KeyboardInterrupt):
        reduce(request(check=spec), listener=Impatient(2))
    assert not (folder / "r.onnx").exists()
    assert reduce(request(check=spec), listener=Deaf()).cache_hits == 2


# --- Polygraphy's modes -----------------------------------------------------------------------------------------------


BRANCHES = {"n1": ("X", "x"), "n3": ("Y", "y"), "n5": ("x y", "z"), "n7": ("z", "u"), "n9": ("z", "v")}
"""Two branches that join and part again, as (inputs, output) by node."""


def branches(folder):
    """Write them, and a check that fails where there is a node of the name that it is given."""
    nodes = [
        onnx.helper.make_node("Add" if " " in inputs else "Identity", inputs.split(), [output], name)
        for name, (inputs, output) in BRANCHES.items()
    ]
    one = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "g", [one(name, 1, [1]) for name in "XY"], [one(name, 1, [1]) for name in "uv"]
    )
    opsets = [onnx.helper.make_opsetid("", 13)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "m.onnx")
    (folder / "check.py").write_text(
        "import sys; sys.exit(sys.argv[1].encode() in open('polygraphy_debug.onnx', 'rb').read())"
    )


def test_a_branch_that_is_cut_off_becomes_a_constant(folder):
    """What enters the piece that starts at n3 from the other branch is X itself: the Identity of the sample."""
    branches(folder)
    np.savez(folder / "m.npz", X=np.float32([3.5]), Y=np.float32([1.25]))
    given = {"mode": ReduceMode.LINEAR, "ends": Ends.KEEP_OUTPUTS, "feeding": FeedRequest(paths=("m.npz",))}
    by_check(sys.executable, "check.py", "n3", **given)
    graph = onnx.load("r.onnx").graph
    assert [node.name for node in graph.node] == ["n3", "n5", "n7", "n9"]
    assert [value.name for value in graph.input] == ["Y"]
    assert [onnx.numpy_helper.to_array(tensor).tolist() for tensor in graph.initializer] == [[3.5]]


def test_with_several_samples_it_stays_an_input(folder, caplog):
    branches(folder)
    given = {"mode": ReduceMode.LINEAR, "ends": Ends.KEEP_OUTPUTS, "feeding": FeedRequest(iterations=2)}
    by_check(sys.executable, "check.py", "n3", **given)
    assert sorted(value.name for value in onnx.load("r.onnx").graph.input) == ["Y", "x"]
    assert "several samples" in caplog.text


def test_the_good_piece_is_of_the_last_phase_that_knows_one(folder):
    """Polygraphy 0.53.6 kept these nodes for the same model: 3 of the first phase, which is below the 4 that failed."""
    branches(folder)
    by_check(sys.executable, "check.py", "n7", mode=ReduceMode.LINEAR, min_good=Path("good.onnx"))
    assert nodes_of(folder / "r.onnx") == ["n7"]
    assert nodes_of(folder / "good.onnx") == ["n1", "n3", "n5"]


THEIRS = {
    "_N0_outputs": (3, True), "_N1_outputs": (4, True),
    "_N0_inputs": (3, False), "_N1_inputs": (2, False), "_N2_inputs": (2, False),
}  # fmt: skip
"""What Polygraphy 0.53.6 wrote when it bisected them for n7: number of nodes, and whether it passed."""


@pytest.mark.parametrize("more", [0, 1])
def test_a_replay_of_polygraphy_is_taken_when_it_fits(more, folder):
    branches(folder)
    (folder / "check.py").write_text(
        "import sys\ntext = open('polygraphy_debug.onnx', 'rb').read()\n"
        "names = [name for name in ('n1', 'n3', 'n5', 'n7', 'n9') if name.encode() in text]\n"
        "open('asked.txt', 'a').write(' '.join(names) + '\\n')\nsys.exit('n7' in names)"
    )
    entries = {
        key: {
            "state": {"num_nodes": nodes + more}, "iteration_info": {"iteration": int(key[2])}, "success": passed,
            "polygraphy_class": "IterationContext",
        }
        for key, (nodes, passed) in THEIRS.items()
    }  # fmt: skip
    (folder / "theirs.json").write_text(json.dumps(entries))
    given = {"mode": ReduceMode.BISECT, "load_replay": Path("theirs.json")}
    if more:
        with pytest.raises(TriageError, match="was about 4 nodes, not 3"):
            by_check(sys.executable, "check.py", **given)
        return
    result = by_check(sys.executable, "check.py", **given)
    assert names_in(result) == ["n7", "n9"]
    asked = set((folder / "asked.txt").read_text().splitlines())
    assert asked == {"n1 n3 n5 n7 n9", "n7 n9"}  # the whole and the result
