"""An engine is all the code that it runs: what a script imports and maps belongs to it, once it has shown that."""

import os
import shutil
import subprocess
import textwrap

import numpy as np
import pytest

import models
from tensortriage.engines.process.workers import close_idle
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.runs.case import Case
from tensortriage.runs.identity.engine_code import CODE
from tensortriage.runs.lab import Lab

FEED = Feed("ones", {"x": np.ones((1, 4), np.float32)}, Origin.REAL)
SCRIPT = """
import helper

class Engine:
    def compile(self, model, options):
        return self
    def run(self, feed):
        return {"y": np.full((1, 2), helper.number(), np.float32)}
"""


def written(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.py").write_text(f"import numpy as np\n{textwrap.dedent(text)}")
    return EngineSpec("script", {"file": str(folder / "engine.py")})


def asked(spec, case, *, fresh=False):
    """Return the answer and the number of runs that it took."""
    with Case(case, fresh=fresh) as opened, Lab(opened) as lab:
        y = lab.outputs(spec, models.mlp(), FEED)["y"]
        return float(y[0, 0]), lab.tally.checks


@pytest.fixture
def spec(tmp_path):
    return written(
        tmp_path,
        engine=SCRIPT,
        helper="import inner\ndef number():\n    return inner.NUMBER",
        inner="NUMBER = 1.0",
    )


@pytest.mark.parametrize(
    "changed",
    [{"helper": "def number():\n    return 2.0"}, {"inner": "NUMBER = 2.0"}],
    ids=["imported", "imported by what is imported"],
)
def test_a_script_whose_helper_changes_is_another_engine(changed, spec, tmp_path):
    case = tmp_path / "case"
    before = {name: (tmp_path / f"{name}.py").read_text() for name in changed}
    assert [asked(spec, case) for _ in range(3)] == [(1.0, 1), (1.0, 0), (1.0, 0)]
    written(tmp_path, **changed)
    assert [asked(spec, case) for _ in range(2)] == [
        (2.0, 1),
        (2.0, 0),
    ]  # an idle worker that knows the old one is not used
    for name, text in before.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert asked(spec, case) == (1.0, 0)  # as it was once


def test_what_is_imported_only_while_it_runs_counts_from_then_on(tmp_path):
    late = SCRIPT.replace("import helper", "").replace("return {", "import helper\n        return {")
    spec, case = written(tmp_path, engine=late, helper="def number():\n    return 1.0"), tmp_path / "case"
    assert [asked(spec, case) for _ in range(2)] == [(1.0, 1), (1.0, 0)]
    written(tmp_path, helper="def number():\n    return 2.0")
    assert asked(spec, case) == (2.0, 1)


def test_a_crash_belongs_to_what_was_loaded_by_then(spec, tmp_path):
    case = tmp_path / "case"
    written(tmp_path, helper="import os\nos.abort()")
    for _ in range(2):
        with pytest.raises(EngineError, match="SIGABRT"):
            asked(spec, case)
    written(tmp_path, helper="def number():\n    return 2.0")
    assert asked(spec, case) == (2.0, 1)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="a compiler makes the library")
def test_a_library_that_was_built_anew_is_another_engine(spec, tmp_path):
    case = tmp_path / "case"

    def built(name, text, *more):
        (tmp_path / "code.c").write_text(text)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", f"{name}.new", "code.c", *more], cwd=tmp_path, check=True)
        os.replace(tmp_path / f"{name}.new", tmp_path / name)

    built("libinner.so", "int inner(void) { return 1; }")
    link = ("-L.", "-Wl,-rpath,$ORIGIN", "-l:libinner.so")
    built("libvendor.so", "int inner(void); int number(void) { return inner(); }", *link)
    written(tmp_path, helper=f"import ctypes\nnumber = ctypes.CDLL('{tmp_path}/libvendor.so').number")
    assert [asked(spec, case) for _ in range(2)] == [(1.0, 1), (1.0, 0)]
    built("libinner.so", "int inner(void) { return 2; }")  # which no Python names
    assert [asked(spec, case) for _ in range(2)] == [(2.0, 1), (2.0, 0)]


def test_a_file_that_changed_while_it_was_in_use_is_no_engine_for_later(spec, tmp_path):
    case = tmp_path / "case"
    with Case(case) as opened, Lab(opened) as lab:
        lab.outputs(spec, models.mlp(), FEED)
        close_idle()
        written(tmp_path, inner="NUMBER = 2.0")
        assert lab.outputs(spec, models.mlp(), FEED, repetition=1)["y"][0, 0] in (1.0, 2.0)
        assert lab.outputs(spec, models.mlp(), FEED, build=1)["y"][0, 0] == 2.0
    assert asked(spec, case) == (2.0, 1)
    assert asked(spec, case) == (2.0, 0)


def test_a_list_that_is_lost_makes_every_answer_anothers(spec, tmp_path):
    case = tmp_path / "case"
    assert [asked(spec, case)[1] for _ in range(2)] == [1, 0]
    (case / CODE).write_text("{")
    assert [asked(spec, case)[1] for _ in range(2)] == [1, 0]


def test_with_fresh_everything_is_asked_and_kept_anew(spec, tmp_path):
    case, plain = tmp_path / "case", EngineSpec("onnxruntime")
    for each in (spec, plain):
        assert [asked(each, case, fresh=fresh)[1] for fresh in (False, False, True, False)] == [1, 0, 1, 0]
