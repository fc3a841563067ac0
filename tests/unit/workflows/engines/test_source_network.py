"""Which network is asked about where an engine that the user named is one."""

import pytest

from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec, network_text
from tensortriage.errors import UsageError
from tensortriage.workflows.engines.source_network import export_network, network_behind


def test_a_network_as_the_reference_is_the_network_behind_the_file():
    spec = EngineSpec.parse("torch:net.py:make,device=cpu,dtype=fp16,compile=inductor")
    assert network_behind(spec) == EngineSpec.parse("torch:net.py:make,device=cpu")


def test_no_other_reference_is():
    assert network_behind(EngineSpec.parse("onnxruntime")) is None
    assert network_behind(None) is None


def test_a_network_may_be_written_as_the_engine_that_it_is():
    assert network_text("torch:net.py:make") == network_text("net.py:make") == "torch:net.py:make"


def test_only_networks_are_exported(tmp_path):
    with pytest.raises(UsageError) as caught:
        export_network(EngineSpec("float64"), tmp_path / "case", exporter="dynamo", limits=Limits())
    assert caught.value.slug == "network-engine"
    assert not (tmp_path / "case").exists()
