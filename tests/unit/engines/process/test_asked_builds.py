"""Who listens hears of builds while it listens, with what was told of them."""

from pathlib import Path

from tensortriage.engines.process.asked_builds import AskedBuild, heard_builds, told

BUILD = AskedBuild("script", Path("m.onnx"), {"file": "e.py"}, ("file",))


def test_builds_are_heard_while_somebody_listens():
    first, second = [], []
    told(BUILD)
    with heard_builds(first.append), heard_builds(second.append):
        assert told(BUILD) is BUILD
    told(BUILD)
    assert first == second == [BUILD]
