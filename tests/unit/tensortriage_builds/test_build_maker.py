"""How one build is made, judged and kept: on an engine whose builds differ, registered as one from outside is."""

import contextlib
import json
import sys

import numpy as np
import pytest

from models import parse
from registered_engines import register
from tensortriage.compare.judgement.output_judge import OutputJudge
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.base import Choice
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import UsageError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.runs.case import Case
from tensortriage.runs.commands.check import Checker, CheckSpec
from tensortriage.runs.commands.command_fingerprint import CheckIdentity
from tensortriage.runs.questions.question import Question
from tensortriage_builds.build_maker import BuildFiles, CommandJudge, EngineBench, NumbersJudge, check_ability
from tensortriage_builds.trial import BuildJudgement, BuildTrial

TEXT = "g (float[3] x) => (float[3] y, float[3] z) { [first] y = Neg(x) [second] z = Abs(y) }"
FEEDS = [Feed(f"feed {n}", {"x": np.float32([n, -2, 3])}, Origin.REAL) for n in (1, 2)]
WRONG = "varying:kind=scale,node=second,amount=2"
GOOD, BAD, OTHER = BuildJudgement


@pytest.fixture
def studying(tmp_path, monkeypatch):
    """Return what opens a case and makes a bench on an engine in it."""
    register(monkeypatch, tmp_path, varying="tensortriage_testing:VaryingEngine")
    with contextlib.ExitStack() as stack:

        def bench(target, *, judge=None, feeds=FEEDS, limit=0.0, **given):
            case = stack.enter_context(Case(tmp_path / "case"))
            spec, reference = EngineSpec.parse(target), EngineSpec.parse("float64")
            question = Question(model=parse(TEXT), feeds=feeds, reference=reference, target=spec)
            inv = Investigation.begin(question, case)
            stack.callback(inv.lab.close)
            decides = OutputJudge(None, lambda: {"y": limit, "z": limit}, narrow=True)
            judge = judge(case) if judge else NumbersJudge(inv.golden, decides, feeds, "numbers")
            return EngineBench(inv.golden, spec, judge, **given), case, stack.close

        yield bench


def pinned(tactic, *nodes):
    return tuple(Choice(node, hex(tactic)) for node in nodes)


def test_a_build_is_judged_by_its_outputs_and_kept_with_them(studying):
    bench, case, _ = studying(WRONG)
    good, bad = bench.build("0", pinned(1, "second")), bench.build("1", pinned(0, "second"))
    assert (good.judgement, good.signature, good.error) == (GOOD, "", 0.0)
    assert (bad.judgement, bad.signature, bad.error) == (BAD, "wrong", 1.0)  # z is twice what it should be
    assert "'z'" in bad.reason
    assert good.choices[1].tactic == "0x1"
    assert good.features == tuple((choice.layer, choice.label) for choice in good.choices)
    assert json.loads((case.folder / bad.files["tactics"]).read_text())["choices"][1]["tactic"] == "0x0"
    assert bad.files.keys() == {"tactics", "engine"}
    assert all(name.startswith("bad/1") and (case.folder / name).is_file() for name in bad.files.values())
    assert good.outputs != bad.outputs
    assert good.seconds > 0

    found = bench.difference(good, bad)  # largest where x is 3 or -2: twice 3 is 3 more
    assert (found.output, found.relative, found.max_abs, found.builds) == ("z", 1.0, 3.0, ("0", "1"))
    assert bench.difference(good, BuildTrial(name="2", judgement=OTHER)) is None
    assert bench.difference(BuildTrial(name="2", judgement=OTHER), good) is None


def test_a_limit_decides_what_is_good(studying):
    bench, _, _ = studying(WRONG, limit=1.5)
    assert bench.build("0", pinned(0, "second")).good


def test_nan_has_a_signature_of_its_own(studying):
    bench, _, _ = studying("varying:kind=nan,node=second,tactics=1")
    assert bench.build("0").signature == "not finite"


def test_a_build_with_other_outputs_is_bad(studying):
    bench, _, _ = studying("varying:kind=shape,node=second,tactics=1")
    trial = bench.build("0")
    assert (trial.judgement, trial.signature, trial.error) == (BAD, "other outputs", None)


def test_a_build_that_fails_tells_nothing(studying):
    bench, case, _ = studying("varying:kind=build-failure,node=second,tactics=1")
    trial = bench.build("0")
    assert (trial.judgement, trial.signature, trial.files) == (OTHER, "build-failed", {})
    assert (trial.outputs, trial.values) == ("", "")
    assert not (case.folder / "other").exists()


def test_a_build_is_made_once_in_a_case(studying, tmp_path):
    target = f"{WRONG},draws={tmp_path / 'draws'}"
    bench, _, close = studying(target)
    first = bench.build("0")
    assert bench.build("0") == first
    close()
    again, _, _ = studying(target)
    assert again.build("0") == first
    assert (tmp_path / "draws").read_text() == "1"
    assert again.build("0", pinned(2, "first")).choices[0].tactic == "0x2"  # other tactics are another build


def test_every_build_is_given_the_base_unless_it_says_otherwise(studying):
    bench, _, close = studying("varying:tactics=9", base=pinned(7, "first", "second"))
    drawn = bench.build("0", pinned(8, "second")).choices
    assert [choice.tactic for choice in drawn] == ["0x7", "0x8"]
    assert bench.pins
    close()
    assert not studying("varying", record=False)[0].pins


def test_files_lie_where_the_judge_looks_for_them(studying, tmp_path):
    engine, tactics = tmp_path / "my.engine", tmp_path / "my.json"
    bench, case, _ = studying("varying", files=BuildFiles(engine, tactics))
    trial = bench.build("0")
    told = json.loads(engine.read_text())["tactics"]
    assert {c["layer"]: int(c["tactic"], 16) for c in json.loads(tactics.read_text())["choices"]} == told
    assert (case.folder / trial.files["engine"]).read_bytes() == engine.read_bytes()


@pytest.mark.parametrize("fault", ["", ",kind=scale,node=second"])
def test_entries_of_a_timing_cache_are_there_before_they_are_given(studying, fault):
    """They are those of a good build, or of a bad one while there is no good one."""
    bench, case, _ = studying(f"varying:keyed=true,tactics={1 if fault else 9}{fault}")
    first, second = bench.build("0"), bench.build("1")
    assert [first.good, second.good] == [not fault] * 2
    assert "timing.cache" not in first.files  # only then is it known that tactics have keys
    assert (case.folder / second.files["timing.cache"]).is_file()
    assert bench.build("2", pinned(0, "first")).choices[0].tactic == "0x0"


@pytest.mark.parametrize("target", ["varying", "onnxruntime", "varying:keyed=true,timing_cache=mine"])
def test_no_timing_cache_is_made_where_none_is_used(studying, target, tmp_path):
    bench, _, _ = studying(target.replace("mine", str(tmp_path / "mine")))
    assert not any("timing.cache" in bench.build(name).files for name in "01")


def test_an_engine_that_tells_no_tactics_is_built_all_the_same(studying):
    bench, case, _ = studying("onnxruntime")
    trial = bench.build("0")
    assert trial.good
    assert (trial.choices, trial.files) == ((), {})
    assert trial.features  # of its plan
    assert not bench.pins
    assert not (case.folder / "good").exists()


@pytest.mark.parametrize("target", ["varying", "onnxruntime"])
def test_nothing_is_deployed_apart_where_recording_changes_nothing(studying, target):
    assert studying(target)[0].deployed() is None


@pytest.mark.parametrize(
    ("code", "judgement", "signature"), [(0, GOOD, ""), (1, BAD, "exit code 1"), (None, OTHER, "")]
)
def test_a_command_judges_the_files(studying, tmp_path, code, judgement, signature):
    engine = tmp_path / "my.engine"
    body = f"open({str(engine)!r}); raise SystemExit({code})" if code is not None else "import time; time.sleep(60)"
    words = (sys.executable, "-S", "-E", "-c", body)
    spec = CheckSpec(words=words, timeout_seconds=0.1 if code is None else None)
    with contextlib.closing(Checker(spec, tell=lambda _: None)) as checker:

        def judge(case):
            return CommandJudge(checker, CheckIdentity(spec.identity(), words, case.checks, written=[engine]))

        bench, _, _ = studying("varying", judge=judge, feeds=(), files=BuildFiles(engine))
        trial = bench.build("0")
        assert (trial.judgement, trial.signature) == (judgement, signature)
        assert (trial.outputs, trial.error) == ("", None)  # the command runs the engine
        assert bench.build("0") == trial  # by the key that the first judgement settled


def test_what_would_be_passed_over_is_refused(studying):
    check_ability(EngineSpec("varying"), takes_tactics=True, saves=True)
    check_ability(EngineSpec("onnxruntime"), takes_tactics=False, saves=False)
    for asked, slug in (({"takes_tactics": True}, "tactics-not-taken"), ({"saves": True}, "engine-not-saved")):
        with pytest.raises(UsageError) as caught:
            check_ability(EngineSpec("onnxruntime"), **{"takes_tactics": False, "saves": False} | asked)
        assert caught.value.slug == slug
