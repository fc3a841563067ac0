"""``--fresh``: a case that knows every answer asks all of them again, and knows the new ones afterwards."""

import json

import pytest

from running_cli import EXAMPLES, triage

FAULT = "from tensortriage_testing import FaultyEngine\nclass Engine(FaultyEngine): pass\n"
MODEL = (EXAMPLES / "digits_cnn.onnx", "--inputs", EXAMPLES / "digits.npz", "--samples", "1", "--target")
WRONG = "script:fault.py:Engine,node=/block2/conv1/Conv,kind=scale"


@pytest.mark.parametrize(
    ("words", "target"),
    [
        (("diagnose", "--no-repro"), "emulate:precision=bf16"),
        pytest.param(("debug", "reduce"), WRONG, marks=pytest.mark.lengthy),
        pytest.param(("debug", "precision"), "emulate:precision=fp16", marks=pytest.mark.lengthy),
    ],
    ids=lambda part: " ".join(part[:2]) if isinstance(part, tuple) else "",
)
def test_everything_is_asked_again_and_kept(words, target, tmp_path):
    (tmp_path / "fault.py").write_text(FAULT)
    out = ("-o", "found.onnx") if words[0] == "debug" else ()
    spent = []
    for more in ((), (), ("--fresh",), ()):
        done = triage(*words, *MODEL, target, *out, *more, "--case", "case", "--json", cwd=tmp_path)
        assert done.returncode in (0, 1), done.stderr
        spent.append(asked(json.loads(done.stdout)))
    assert [count > 0 for count in spent] == [True, False, True, False], spent


def asked(document):
    """Return how often an engine was asked: a document of a search counts what was known as well."""
    cost = document["verdict"]["cost"] if "verdict" in document else document
    return cost["checks"] - document.get("cache_hits", 0)
