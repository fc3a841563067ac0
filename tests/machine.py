"""What the machine that runs the tests can do."""

from tensortriage.engines.openvino import OpenVinoEngine


def bf16_target():
    """Return an engine that computes in bf16 here: OpenVINO where the CPU can, else the emulation of the format."""
    engine = OpenVinoEngine()
    can = engine.availability().usable and engine.precision({}) == "bf16"
    return "openvino:precision=bf16" if can else "emulate:precision=bf16"
