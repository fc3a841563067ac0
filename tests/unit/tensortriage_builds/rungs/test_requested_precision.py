"""What a plan amounts to in words: formats and places that are not what was asked for."""

import pytest

from tensortriage.runs.analyses.plan_audit import AuditedRegion, PlanAudit, PrecisionMatch
from tensortriage_builds.rungs.requested_precision import summary


def region(name, op_type, built, match=PrecisionMatch.AS_ASKED, asked="float16", **facts):
    return AuditedRegion(name, "Kernel", "", (name,), (op_type,), asked, built, match, **facts)


FINE = region("a", "MatMul", "float16", device="NPU")
WIDE = region("b", "Erf", "float32", PrecisionMatch.WIDER, device="CPU", fell_back=True)
MOVES = region("c", "Transpose", "", PrecisionMatch.NOT_JUDGED, asked="", device="NPU")
UNTOLD = region("d", "Conv", "", PrecisionMatch.NOT_JUDGED, device="NPU")


@pytest.mark.parametrize(
    ("regions", "requested", "answer"),
    [
        ((FINE, MOVES), "fp16", "yes: 2 regions on NPU, computing in float16"),
        ((MOVES,), "fp16", "yes: 1 region on NPU, none of which computes in floating point"),
        ((UNTOLD, MOVES), "fp16", "yes: 2 regions on NPU, in a format that the plan does not report"),
        ((UNTOLD, FINE), "fp16", "yes: 2 regions on NPU, computing in float16"),
        (
            (FINE, WIDE),
            "fp16",
            "no: 1 Erf run on CPU, not on NPU; 1 Erf compute in float32, float16 requested",
        ),
        ((FINE, WIDE), "", "no: 1 Erf run on CPU, not on NPU; 1 Erf compute in float32, float16 in the model"),
    ],
)
def test_the_answer_names_what_is_not_as_asked(regions, requested, answer):
    found, facts = summary(PlanAudit("m.onnx", "engine", requested, regions, (), "NPU"))
    assert found == answer
    assert facts["fell_back"] == tuple(name for item in regions if item.fell_back for name in item.nodes)
