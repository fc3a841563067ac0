"""The two ways of telling and taking tactics, against stand-ins with the members that the real bindings have.

Members of IAlgorithmContext, IAlgorithm, IAlgorithmVariant and IAlgorithmIOInfo are those of the bindings of TensorRT
8.5.3; of ITimingCache, TimingCacheKey and TimingCacheValue, of 10.12 (dumped from the packages on PyPI).
"""

import json
import types

import pytest

from tensortriage_engines.tensorrt.worker.tactics import Tactics, hash_word, rows_of_log
from tensortriage_worker.adapter import AdapterError

NOTHING = types.SimpleNamespace()


class Selector:
    pass


class Key(str):
    @staticmethod
    def parse(text):
        return Key(text)


class Value:
    def __init__(self, tactic_hash, milliseconds):
        self.tacticHash, self.timingMSec = tactic_hash, milliseconds


class Cache:
    def __init__(self, entries):
        self.entries = entries

    def queryKeys(self):  # noqa: N802 - TensorRT's name
        return list(self.entries)

    def query(self, key):
        return self.entries[key]

    def update(self, key, value):
        if key not in self.entries:
            return False
        self.entries[key] = value
        return True


TRT = types.SimpleNamespace(
    IAlgorithmSelector=Selector, TimingCacheKey=Key, TimingCacheValue=Value, __version__="10.12.0"
)


def algorithm(tactic, implementation, form="LINEAR"):
    info = types.SimpleNamespace(
        dtype=types.SimpleNamespace(name="HALF"), strides=(64, 1), tensor_format=types.SimpleNamespace(name=form)
    )
    return types.SimpleNamespace(
        algorithm_variant=types.SimpleNamespace(tactic=tactic, implementation=implementation),
        timing_msec=0.25,
        get_algorithm_io_info=lambda index: info,
    )


CONTEXT = types.SimpleNamespace(name="conv1", num_inputs=1, num_outputs=1)
OFFERED = [algorithm(-5, 7), algorithm(12, 7), algorithm(12, 7, "CHW32")]


def chosen_by_selector(tmp_path, choices=None):
    options = {"record_tactics": "true"}
    if choices is not None:
        (tmp_path / "t.json").write_text(json.dumps({"format": "tensortriage.tactics/1", "choices": choices}))
        options["load_tactics"] = str(tmp_path / "t.json")
    config = types.SimpleNamespace(algorithm_selector=None)
    tactics = Tactics(TRT, options)
    tactics.attach(config)
    allowed = config.algorithm_selector.select_algorithms(CONTEXT, OFFERED)
    config.algorithm_selector.report_algorithms([CONTEXT], [OFFERED[allowed[-1]]])
    return allowed, tactics


def test_selector_records_and_takes_back_the_same_algorithm(tmp_path):
    allowed, tactics = chosen_by_selector(tmp_path)
    assert allowed == [0, 1, 2]
    (row,) = tactics.told()
    assert (row["layer"], row["tactic"], row["implementation"]) == ("conv1", "0xc", "0x7")
    assert row["inputs"] == row["outputs"] == ["half:64x1:CHW32"]
    allowed, tactics = chosen_by_selector(tmp_path, [row])
    assert allowed == [2]  # same variant as the second, another memory format
    assert tactics.told() == [row]


def test_an_algorithm_that_is_not_offered_is_an_error_that_names_the_layer(tmp_path):
    _, tactics = chosen_by_selector(tmp_path, [{"layer": "conv1", "tactic": "0x99", "implementation": "0x7"}])
    with pytest.raises(AdapterError, match="'conv1'") as caught:
        tactics.told()
    assert caught.value.slug == "tactics-not-pinned"


def test_layers_that_the_file_leaves_out_stay_free(tmp_path):
    allowed, tactics = chosen_by_selector(tmp_path, [{"layer": "other", "tactic": "0x1", "implementation": "0x7"}])
    assert allowed == [0, 1, 2]
    assert len(tactics.told()) == 1


def cached(tmp_path, tactic, key="0x1814870c44ff0f8574df6e3dda04cbd7"):
    choice = {"layer": "matMul1", "tactic": tactic, "implementation": "k", "key": key}
    (tmp_path / "t.json").write_text(json.dumps({"format": "tensortriage.tactics/1", "choices": [choice]}))
    cache = Cache({Key("0x1814870c44ff0f8574df6e3dda04cbd7"): Value(0x665DED9ABBF88, 0.01)})
    tactics = Tactics(TRT, {"load_tactics": str(tmp_path / "t.json")})
    tactics.attach(types.SimpleNamespace(get_timing_cache=lambda: cache))
    return cache, tactics


def test_an_editable_cache_is_edited_and_read_back(tmp_path):
    cache, tactics = cached(tmp_path, "0xa5ed9abbf8811")
    assert cache.query("0x1814870c44ff0f8574df6e3dda04cbd7").tacticHash == 0xA5ED9ABBF8811
    assert tactics.wants_log
    (row,) = tactics.told()  # nothing was timed: the entry itself is what is told
    assert (row["layer"], row["tactic"]) == ("matMul1", "0xa5ed9abbf8811")


def test_a_build_that_timed_the_layer_anew_did_not_take_it(tmp_path):
    _, tactics = cached(tmp_path, "0xa5ed9abbf8811")
    tactics.log("Autotuning op matMul1(key: 0x1814870c44ff0f8574df6e3dda04cbd7):")
    tactics.log("   3, 0.0112640, 1.00000, 0.50673, sm80_xmma_gemm, 0x665ded9abbf88,")
    tactics.log("The selected tactic is (tactic hash, cost(in ms)):0x665ded9abbf88,  0.011264")
    with pytest.raises(AdapterError, match="did not accept the tactic"):
        tactics.told()


def test_a_key_that_the_cache_lacks_is_refused(tmp_path):
    with pytest.raises(AdapterError, match="no entry 0x22") as caught:
        cached(tmp_path, "0x1", key="0x22")
    assert caught.value.slug == "tactics-not-pinned"


def test_a_release_that_can_do_neither_says_so():
    tactics = Tactics(TRT, {"record_tactics": "true"})
    with pytest.raises(AdapterError) as caught:
        tactics.attach(types.SimpleNamespace(get_timing_cache=lambda: NOTHING))
    assert caught.value.slug == "tensorrt-feature-missing"


def test_without_the_options_nothing_is_attached():
    tactics = Tactics(TRT, {})
    tactics.attach(NOTHING)
    assert not tactics.wants_log
    assert tactics.told() == []


@pytest.mark.parametrize("text", ["", "{", '{"format": "x/1", "choices": []}', '{"format": "tensortriage.tactics/1"}'])
def test_a_file_of_another_kind_is_refused(tmp_path, text):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(AdapterError) as caught:
        Tactics(TRT, {"load_tactics": str(tmp_path / "t.json")})
    assert caught.value.slug == "tactics-unreadable"


def test_alternatives_of_a_log():
    rows = rows_of_log(
        "Autotuning op a + b(key: 0xAB):\n 1, 0.5, 1.0, 0.4, kern_one, 0x1,\n 2, 0.6, 1.2, 0.4, kern_two, 0x2,\n"
        "The selected tactic is (tactic hash, cost(in ms)):0x2,  0.6\n"
    )
    assert [(row["layer"], row["key"], row["implementation"]) for row in rows] == [("a + b", "0xab", "kern_two")]
    assert [item["tactic"] for item in rows[0]["alternatives"]] == ["0x1", "0x2"]


def test_hashes_are_unsigned():
    assert hash_word(-1) == "0x" + "f" * 16
    assert hash_word(255) == "0xff"
