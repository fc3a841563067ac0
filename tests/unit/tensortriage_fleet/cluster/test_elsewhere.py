import pytest

from tensortriage_fleet.cluster.elsewhere import without_cluster


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("diagnose m.onnx --cluster auto --target x", "diagnose m.onnx --target x"),
        ("diagnose m.onnx --cluster=local:2,gpus=1 --json", "diagnose m.onnx --json"),
        (
            "debug build m.onnx --cluster auto --check ./c --cluster here",
            "debug build m.onnx --check ./c --cluster here",
        ),
        ("debug build m.onnx --check ./c --cluster=a -- --cluster b", "debug build m.onnx --check ./c --cluster=a --"),
        ("diagnose --cluster a m.onnx --cluster b", "diagnose m.onnx"),
    ],
)
def test_the_command_that_runs_there_names_no_cluster(words, left):
    assert without_cluster(words.split()) == left.split()
