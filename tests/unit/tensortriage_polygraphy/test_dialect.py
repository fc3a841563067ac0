"""What commands do otherwise where they answer as Polygraphy: order, names, limits, lines and exit codes."""

import dataclasses
import logging

import click
import pytest

from tensortriage.cli.dialect import OURS, Dialect, dialect, forget, last_spoken, speak
from tensortriage.cli.prompt import Reply
from tensortriage.cli.run.answer import request_of
from tensortriage.cli.run.options import RunOptions
from tensortriage.compare.judgement.tolerance import PolygraphyTolerance
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import DataError, UsageError
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage.workflows.comparison.participants import Saved
from tensortriage_polygraphy.command import COMMANDS, polygraphy
from tensortriage_polygraphy.dialect import PolygraphyDialect

ORT = "onnxruntime"


@pytest.fixture
def theirs():
    return PolygraphyDialect()


def test_every_word_of_the_dialect_is_one_that_the_core_asks_for():
    own = {name for name in vars(PolygraphyDialect) if not name.startswith("_")}
    assert own == {name for name in vars(Dialect) if not name.startswith("_")}


def test_a_dialect_is_spoken_below_its_group_alone():
    context = click.Context(polygraphy)
    speak(context, spoken := PolygraphyDialect())
    with click.Context(click.Command("run"), parent=context):
        assert dialect() is spoken
    with click.Context(click.Command("run")):
        assert dialect() is OURS
    assert (last_spoken(), dialect()) == (spoken, OURS)
    forget()
    assert last_spoken() is OURS


def test_its_commands_are_those_of_the_core_and_no_others():
    context = click.Context(polygraphy)
    assert {name: polygraphy.get_command(context, name).name for name in COMMANDS} == {name: name for name in COMMANDS}
    assert polygraphy.get_command(context, "diagnose") is None


def test_a_request_has_its_order_and_its_tolerance(tmp_path, theirs):
    given = RunOptions(request=CompareRequest(model=tmp_path / "m.onnx"), runners=(ORT, "float64"))
    found = request_of(given, theirs)
    assert (str(found.reference), [*map(str, found.targets)]) == ("float64", [ORT])
    assert (found.tolerances, found.strict, found.outputs.strict) == ([PolygraphyTolerance()], False, False)
    named = request_of(dataclasses.replace(given, targets=("float64",)), theirs)
    assert (str(named.reference), [*map(str, named.targets)]) == (ORT, ["float64", "float64"])


def test_what_was_loaded_comes_last_and_the_last_is_the_reference(theirs):
    one, two = EngineSpec(ORT), EngineSpec("float64")
    first, last = Saved("first", []), Saved("last", [])
    assert theirs.ordered([one, two], [first, last]) == (None, [one, two], [last, first])
    assert theirs.ordered([one], []) == (None, [one], [])
    assert theirs.ordered([one, two], []) == (two, [one], [])


def test_names_of_runners_count_those_of_one_kind(theirs):
    names = theirs.runner_names(["onnxruntime", "onnxruntime:threads=1", "tensorrt", "old in golden.json"])
    heads = [name.rpartition("-")[0].rpartition("-")[0] for name in names.values()]
    assert heads[:3] == ["onnxrt-runner-N0", "onnxrt-runner-N1", "trt-runner-N0"]
    assert names["old in golden.json"] == "old"


@pytest.mark.parametrize(
    ("words", "code", "error", "wanted"),
    [
        (["polygraphy", "run"], 0, None, 0),
        (["polygraphy", "run"], 1, None, 1),
        (["polygraphy", "debug", "reduce"], 4, None, 0),
        (["polygraphy", "debug", "reduce"], 130, None, 130),
        (["polygraphy", "inspect", "data"], 1, None, 0),
        (["polygraphy", "run"], 2, DataError("no", slug="x", cure="y"), 1),
        (["polygraphy", "run"], 2, click.NoSuchOption("--x"), 1),
        (["polygraphy", "run"], 2, click.UsageError("x"), 2),
        (["polygraphy", "run"], 130, KeyboardInterrupt(), 130),
    ],
)
def test_exit_codes(theirs, words, code, error, wanted):
    assert theirs.exit_code(words, code, error) == wanted
    assert OURS.exit_code(words, code, error) == code


def test_commands_that_do_something_begin_and_end_with_a_line(theirs):
    assert theirs.opening("triage polygraphy run", "triage polygraphy run m") == "RUNNING | Command: polygraphy run m"
    assert theirs.closing(0, 1.5) == (28, "PASSED | Runtime: 1.500s | Command: polygraphy run m")
    assert theirs.closing(1, 0.0)[0] == logging.ERROR
    quiet = PolygraphyDialect()
    assert quiet.opening("triage polygraphy inspect model", "triage polygraphy inspect model m") == ""
    assert quiet.closing(0, 1.0)[1] == ""


def test_words_that_need_another_one_are_refused(theirs):
    for words in (["--use-subprocess"], ["--warm-up=3"]):
        with pytest.raises(UsageError, match="requires --sequential-runners"):
            theirs.asks_for_run(words, named=True)
        assert theirs.asks_for_run([*words, "--sequential-runners"], named=True)
    assert not theirs.asks_for_run([], named=False)


def test_a_name_that_shows_no_kind_of_file_is_refused(theirs, tmp_path):
    theirs.check_output(tmp_path / "o.onnx")
    with pytest.raises(UsageError) as raised:
        theirs.check_output(tmp_path / "o.out")
    assert raised.value.slug == "convert-target-unknown"
    OURS.check_output(tmp_path / "o.out")


def test_a_person_is_asked_for_yes_or_no_on_stdout(theirs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", iter_lines("s", "p"))
    assert theirs.ask_about(tmp_path / "m.onnx", 3) is Reply.PASS
    assert "[p]ass or [f]ail?" in capsys.readouterr().out


def iter_lines(*lines):
    """Return a stream that gives lines."""
    import io

    return io.StringIO("".join(f"{line}\n" for line in lines))
