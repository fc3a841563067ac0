"""A plan as text."""

import dataclasses

from tensortriage.report.terminal.lines import plain
from tensortriage.runs.analyses.plan_audit import AuditedRegion, PlanAudit, PrecisionMatch
from tensortriage_inspect.plan_text import closing_lines, region_lines

REGIONS = (
    AuditedRegion("r0", "Reorder", "reorder_f32", (), (), "", "float32", PrecisionMatch.NOT_JUDGED),
    AuditedRegion("r1", "MVN", "jit_f32", ("a", "b"), ("Sub", "Div"), "float16", "float32", PrecisionMatch.WIDER),
    AuditedRegion("r2", "FullyConnected", "", ("mm",), ("MatMul",), "float16", "float16", PrecisionMatch.AS_ASKED),
    AuditedRegion("r3", "Exp", "", ("e\x1b[2J",), ("Exp",), "float16", "", PrecisionMatch.NOT_JUDGED),
)
AUDIT = PlanAudit("m.onnx", "engine:precision=fp16", "fp16", REGIONS, ("lost",))


def texts(lines):
    return list(map(plain, lines))


def test_regions():
    assert texts(region_lines(AUDIT, AUDIT.regions)) == [
        "   #  kind            implementation  precision             nodes",
        "   1  Reorder         reorder_f32     float32               (its own: r0)",
        "!  2  MVN             jit_f32         float32, not float16  Sub, Div to b (2)",
        "   3  FullyConnected  -               float16               mm",
        "   4  Exp             -               -                     e\\x1b[2J",
    ]


def test_regions_with_modules():
    modules = ("a.norm (LayerNorm, net.py:3)", "a.mlp\x1b (Linear, net.py:4)")
    region = dataclasses.replace(REGIONS[2], modules=modules)
    first, second = texts(region_lines(dataclasses.replace(AUDIT, regions=(region,)), (region,)))
    assert first.split()[-1] == "modules"
    assert second.endswith("a.mlp\\x1b (Linear, net.py:4) and 1 other")


def test_regions_keep_their_numbers():
    assert texts(region_lines(AUDIT, AUDIT.findings))[1].startswith("!  2  MVN")
    assert texts(region_lines(AUDIT, ())) == []


def test_closing():
    assert texts(closing_lines(AUDIT)) == [
        "engine:precision=fp16: 4 regions execute 4 nodes; fp16 requested; 2 regions compute in floating point, "
        "the format of 1 more is unknown",
        "in no region: lost",
        "! 1 x MVN of Sub, Div: float16 requested, computes in float32 (wider than requested)",
        "as requested: 1 of 2 are not",
    ]


def test_closing_when_all_is_well():
    fine = PlanAudit("m.onnx", "engine", "", (REGIONS[2],), ())
    assert texts(closing_lines(fine))[-1] == "as requested: all are"
