"""accuracy*.json of tests/golden/polygraphy come from the real Polygraphy 0.53.6 (make.py)."""

import dataclasses
import json
import math
from pathlib import Path

import pytest

from tensortriage.errors import DataError
from tensortriage.inputs.files.accuracy_results import (
    AccuracyEntry,
    AccuracyPair,
    AccuracyResult,
    read_accuracy,
    write_accuracy,
)

GOLDEN = Path(__file__).parents[3] / "golden/polygraphy"


def test_polygraphys_results():
    results = read_accuracy(GOLDEN / "accuracy.json")
    assert [result.kind for result in results] == [
        "OutputCompareResult",
        "L2Result",
        "CosineSimilarityResult",
        "PsnrResult",
        "SnrResult",
        "",
    ]
    (pair,) = results[0].pairs
    assert pair.runners == ("onnxrt-runner", "trt-runner")
    assert len(pair.iterations) == 2
    entry = pair.iterations[0]["y"]
    assert entry.limits == {"check_error_stat": "max", "atol": 0.1, "rtol": 0.1}
    assert entry.metrics["max_absdiff"] == 0.010000228881835938
    assert entry.metrics["quantile_absdiff"] is None
    assert entry.passed is None
    # Six elements are off by 0.01: the norm is 0.01 * sqrt(6).
    assert results[1].pairs[0].iterations[0]["y"].metrics["l2_norm"] == pytest.approx(0.01 * math.sqrt(6), rel=1e-4)


@pytest.mark.parametrize("name", ["accuracy.json", "accuracy_elemwise.json", "accuracy_shape.json"])
def test_what_is_written_is_what_polygraphy_wrote(tmp_path, name):
    write_accuracy(tmp_path / name, read_accuracy(GOLDEN / name))
    assert json.loads((tmp_path / name).read_text()) == json.loads((GOLDEN / name).read_text())


def test_numbers_that_json_lacks_survive(tmp_path):
    entry = AccuracyEntry("SnrResult", {"snr": math.inf}, {"threshold": 20.0}, None)
    results = (AccuracyResult((AccuracyPair(("r", "t"), ({"y": entry},)),), "average"),)
    write_accuracy(tmp_path / "a.json", results)
    assert read_accuracy(tmp_path / "a.json") == results
    lost = dataclasses.replace(entry, metrics={"snr": math.nan})
    write_accuracy(tmp_path / "a.json", [AccuracyResult((AccuracyPair(("r", "t"), ({"y": lost},)),))])
    (result,) = read_accuracy(tmp_path / "a.json")
    assert math.isnan(result.pairs[0].iterations[0]["y"].metrics["snr"])


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"polygraphy_class": "RunResults", "lst": []}',
        '{"polygraphy_class": "AccuracyResults"}',
        '{"polygraphy_class": "AccuracyResults", "lst": [{}]}',
        '{"polygraphy_class": "AccuracyResults", "lst": [{"polygraphy_class": "AccuracyResult", "lst": [["a", []]]}]}',
        '{"polygraphy_class": "AccuracyResults", "lst": [{"polygraphy_class": "AccuracyResult",'
        ' "lst": [[["a", "b"], [1.5]]]}]}',
    ],
)
def test_something_else_is_refused(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError) as caught:
        read_accuracy(tmp_path / "a.json")
    assert caught.value.slug == "accuracy-invalid"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"atol": 0.1', '"atol": "x"'),
        ('"L2Result"', '"NewResult"'),
        ('"snr":', '"s":'),
        ('"atol": 0.1', f'"atol": 1{"0" * 400}'),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path, old, new):
    (tmp_path / "a.json").write_text((GOLDEN / "accuracy.json").read_text().replace(old, new))
    with pytest.raises(DataError) as caught:
        read_accuracy(tmp_path / "a.json")
    assert caught.value.slug == "accuracy-invalid"
