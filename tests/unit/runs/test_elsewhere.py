"""What ``--cluster`` names is read by whoever registers for it."""

import sys

import pytest

from tensortriage.errors import UsageError
from tensortriage.runs.elsewhere import GROUP, NamedCluster, named_cluster


def test_the_package_beside_the_core_reads_it():
    found = named_cluster("local:2,gpus=1")
    assert isinstance(found, NamedCluster)
    assert type(found).__module__ == "tensortriage_fleet.cluster.place"
    with pytest.raises(UsageError) as caught:
        named_cluster("local:none")
    assert caught.value.slug == "cluster-malformed"


def test_without_anybody_who_knows_clusters_it_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(UsageError) as caught:
        named_cluster("local:2")
    assert caught.value.slug == "cluster-unknown"


def test_the_first_by_name_reads_it(tmp_path, monkeypatch):
    info = tmp_path / "mine-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nfirst = builtins:str.upper\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert named_cluster("local:2") == "LOCAL:2"
