import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from tensortriage.engines import registry
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineMissing, UsageError


def install(folder: Path, entry: str, source: str) -> None:
    """Make a third-party distribution importable from `folder`."""
    (folder / "third_party_engine.py").write_text(source)
    info = folder / "third_party-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[tensortriage.engines]\n{entry}\n")


@pytest.fixture
def third_party(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "third_party_engine", raising=False)
    yield lambda entry, source: install(tmp_path, entry, source)
    sys.modules.pop("third_party_engine", None)


def metadata_entries(group):
    return {point.name for point in importlib.metadata.entry_points(group=group)}


SOURCE = """
from tensortriage.engines.base import Availability
class Mine:
    name = "mine"
    options = {}
    def __init__(self, *, limits): self.limits = limits
    def availability(self): return Availability(usable=True, version="1.0")
"""


def test_unknown_name_gets_the_nearest_known_one():
    with pytest.raises(UsageError) as caught:
        registry.create(EngineSpec("onxruntime"))
    assert caught.value.slug == "engine-unknown"
    assert "did you mean 'onnxruntime'" in caught.value.cure


def test_unknown_name_with_no_near_one_lists_all():
    with pytest.raises(UsageError) as caught:
        registry.create(EngineSpec("zzz"))
    assert "did you mean" not in caught.value.cure
    assert all(name in caught.value.cure for name in registry.known())


def test_third_party_engine_is_created_with_limits(third_party):
    third_party("mine = third_party_engine:Mine", SOURCE)
    limits = registry.Limits(build_seconds=3)
    engine = registry.create(EngineSpec("mine"), limits=limits)
    assert engine.limits is limits
    assert "mine" in registry.known()
    assert registry.availabilities()["mine"].version == "1.0"


def test_third_party_cannot_replace_a_built_in(third_party):
    third_party("emulate = third_party_engine:Mine", SOURCE)
    assert registry.known().count("emulate") == 1
    assert type(registry.create(EngineSpec("emulate"))).__module__ == "tensortriage.engines.emulate"


@pytest.mark.parametrize("source", ["import not_a_module", "1 / 0", "x = 1"])
def test_broken_third_party_engine_is_missing_not_a_traceback(third_party, source):
    third_party("mine = third_party_engine:Mine", source)
    with pytest.raises(EngineMissing) as caught:
        registry.create(EngineSpec("mine"))
    assert caught.value.slug == "engine-broken"
    assert "\n" not in caught.value.message
    availability = registry.availabilities()["mine"]
    assert not availability.usable
    assert availability.reason == caught.value.message


def test_availability_that_raises_counts_as_not_usable(third_party):
    third_party(
        "mine = third_party_engine:Mine",
        SOURCE.replace('return Availability(usable=True, version="1.0")', "raise KeyError"),
    )
    assert registry.availabilities()["mine"].reason == "KeyError"


def test_importing_the_registry_imports_no_engine():
    code = "import sys, tensortriage.engines.registry; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"onnx", "onnx_ir", "onnxruntime", "openvino"} & set(out)
    ours = {name for name in out if name.startswith("tensortriage.engines.")}
    assert ours == {
        f"tensortriage.engines.{name}" for name in ("base", "capabilities", "cpu_features", "spec", "registry")
    }


def test_engines_of_this_distribution_are_registered_as_those_of_others_are():
    assert set(registry.BUILT_IN).isdisjoint(metadata_entries(registry.GROUP))
    assert set(registry.known()) - set(registry.BUILT_IN) >= {"litert", "mnn", "ncnn", "rknn", "tvm", "iree"}


def test_only_those_of_other_distributions_are_foreign(third_party):
    third_party("mine = third_party_engine:Mine", SOURCE)
    foreign = {name for name in registry.known() if registry.is_foreign(name)}
    assert foreign == {"script", "mine"}


def test_what_builds_a_model_in_place_of_a_file_has_the_other_options(tmp_path):
    spec = EngineSpec.parse(f"openvino:precision=fp32,file={tmp_path / 'model.xml'}")
    assert str(registry.resolve(spec).builder) == "openvino:precision=fp32"
    plain = EngineSpec.parse("openvino:precision=fp32")
    assert registry.resolve(plain).builder == plain
