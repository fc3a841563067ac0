"""Realistic reports for tests: a healthy match, an overflow with NaN, a local fault, many tensors, hostile names."""

import math
import random
from pathlib import Path

from tensortriage.diagnose.state.layer_rows import LayerRow, Layers, OutputRow, Outputs
from tensortriage.diagnose.state.verdict import Cost, Culprit, Step, Verdict
from tensortriage.report.document import Report
from tensortriage.runs.case import CaseFacts, FeedFacts, ModelFacts
from tensortriage.values.serial import dump

HOSTILE_NAMES = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "../../x",
    "line\nbreak\r\ttab",
    "n" * 5000,
    "名前/слой/🧮/é",
    "\x1b[2J\x1b[31mred\x07",
    "right\u202eto\u202cleft",
    "[bold red]markup[/bold red] :boom:",
    "`code` | pipe | **bold** @someone #1 https://example.invalid",
    "{{ 7*7 }}{% raw %}",
    "<!--<script>",
    "'; alert(1); //",
    "=cmd|' /C calc'!A0",
    "\x00nul",
)
"""Names that would execute, hide, reorder or break something in a report that trusted them."""

_BLOCK = (
    "MatMul",
    "Add",
    "ReduceMean",
    "Sub",
    "Pow",
    "ReduceMean",
    "Add",
    "Sqrt",
    "Div",
    "Mul",
    "Add",
    "MatMul",
    "Erf",
)


def case(path: str = "models/minilm.onnx", *, nodes: int = 217, target: str = "openvino:precision=bf16") -> CaseFacts:
    """What was asked."""
    return CaseFacts(
        command=f"triage diagnose {path} --target {target} --inputs real.npz",
        model=ModelFacts(
            path, "3f7a9c0e51b24d88a6d1c2e3f405162738495a6b7c8d9eaf0112233445566778", nodes, 22_713_216, 17
        ),
        reference="onnxruntime:optimization=none",
        target=target,
        feeds=(FeedFacts("real.npz", "real", "aa" * 32), FeedFacts("edge-case.npz", "real", "bb" * 32)),
        versions={"python": "3.11.9", "tensortriage": "0.1.0", "onnxruntime": "1.31.0", "openvino": "2026.4.1"},
        created="2026-11-20T16:31:00+00:00",
    )


def layers(
    number: int, *, faults: dict[int, float] | None = None, nan_from: int | None = None, seed: int = 7
) -> Layers:
    """A transformer-like error profile: rounding noise that accumulates, faults that jump, NaN that spreads."""
    faults = faults or {}
    draw = random.Random(seed)
    carried, floor_carried, rows = 0.0, 0.0, []
    for order in range(number):
        op = _BLOCK[order % len(_BLOCK)]
        name = f"/encoder/layer.{order // len(_BLOCK)}/{'attention' if order % 2 else 'mlp'}/{op}_{order}"
        local_floor = 1.1e-3 * draw.uniform(0.6, 1.6)
        local = faults.get(order, local_floor * draw.uniform(0.35, 0.9))
        carried = math.hypot(carried * draw.uniform(0.93, 1.01), local)
        floor_carried = math.hypot(floor_carried * 0.98, local_floor)
        bad = nan_from is not None and order >= nan_from
        rows.append(
            LayerRow(
                value=f"{name}_output_0",
                node=name,
                op_type=op,
                scope=f"encoder.layer.{order // len(_BLOCK)}",
                dtype="float32",
                shape=(1, 128, 384),
                order=order,
                in_context_error=math.nan if bad else carried,
                floor=floor_carried,
                local_error=None if bad and order != nan_from else (math.inf if bad else local),
                local_floor=local_floor,
                floor_ratio=None if bad else local / local_floor,
                influence=None if bad else local * draw.uniform(0.3, 0.9),
                max_abs_reference=10 ** draw.uniform(-1, 2) if order != nan_from else 81_234.5,
                max_abs_target=10 ** draw.uniform(-1, 2),
                nonfinite_target=384 * (order - nan_from + 1) if bad and nan_from is not None else 0,
                note="exceeds fp16 (65504)" if order == nan_from else "",
            )
        )
    return Layers(tuple(rows))


def healthy_match() -> Report:
    """Everything within the floor, and no layer-wise data, because none were needed."""
    return Report(
        Verdict(
            verdict="match",
            confidence=0.99,
            summary="Both outputs agree with the reference within the noise floor on 2 real feeds.",
            steps=(
                Step("Is the comparison sound?", "Yes: names, types and shapes agree, the reference is finite.",
                     {"outputs": 2, "constant_outputs": []}, 0.4, 1),
                Step("Does it fail above the noise floor?", "No: the worst output is 0.4x its floor.",
                     {"worst": "last_hidden_state", "floor_ratio": 0.41}, 1.3, 2),
            ),
            cost=Cost(1.9, 2, 3),
        ),
        case(target="onnxruntime"),
        outputs=Outputs((
            OutputRow("last_hidden_state", "float32", (1, 128, 384), 128.4, 3.1e-6, 3.8e-7, 9.2e-7, True,
                      feed="real.npz"),
            OutputRow("pooler_output", "float32", (1, 384), math.inf, 0.0, 0.0, 9.2e-7, True, feed="real.npz"),
        )),
    )  # fmt: skip


def range_overflow(number: int = 217, *, origin: int = 82) -> Report:
    """A value that exceeds fp16, NaN downstream of it."""
    rows = layers(number, nan_from=origin)
    culprit = rows.rows[origin]
    return Report(
        Verdict(
            verdict="range-overflow",
            confidence=0.97,
            summary=f"{culprit.op_type} '{culprit.node}' reaches 81234.5 on real inputs; fp16 ends at 65504, so it "
            "becomes Inf and everything after it NaN.",
            culprits=(
                Culprit(culprit.node, culprit.op_type, culprit.value, math.inf, math.inf, None,
                        "max |reference| is 81234.5, the largest fp16 value is 65504"),
            ),
            steps=(
                Step("Is the comparison sound?", "Yes.", {"outputs": 1}, 0.5, 1),
                Step("Does it fail above the noise floor?", "Yes: 1 of 1 output holds NaN.", {"nan": 49152}, 1.2, 1),
                Step("Is there NaN or Inf that the reference lacks?", f"Yes, first at '{culprit.node}'.",
                     {"origin": culprit.value, "operands": {"max_abs": "Infinity", "rule": "overflow"}}, 0.3, 1),
                Step("Does the reference exceed the range of fp16?", "Yes, in 1 tensor.",
                     {"tensors": [{"value": culprit.value, "max_abs": 81234.5, "limit": 65504.0}]}, 0.8, 0),
            ),
            next=(
                "triage debug precision models/minilm.onnx --target onnxruntime:precision=fp16 --inputs real.npz",
                "triage debug reduce models/minilm.onnx --case triage-case",
            ),
            cost=Cost(3.4, 3, 3),
        ),
        case(nodes=number, target="onnxruntime:precision=fp16"),
        rows,
        Outputs((
            OutputRow("last_hidden_state", "float32", (1, 128, 384), math.nan, 0.0, math.nan, 2e-3, False, 49152,
                      "real.npz"),
        )),
    )  # fmt: skip


def early_overflow() -> Report:
    """An overflow found by prediction: no tensor of the target was compared, some floors are infinite."""
    full = range_overflow(26, origin=6)
    rows = tuple(
        LayerRow(
            r.value, r.node, r.op_type, r.scope, r.dtype, r.shape, r.order, floor=r.floor if r.order < 6 else math.inf
        )
        for r in full.layers.rows
    )
    return Report(full.verdict, full.case, Layers(rows), full.outputs)


def local_fault(number: int = 300, *, culprits: tuple[int, ...] = (121, 250)) -> Report:
    """Some ops return wrong numbers even when fed correctly."""
    faults = {order: 0.08 / (rank + 1) for rank, order in enumerate(culprits)}
    rows = layers(number, faults=faults)
    blamed = tuple(
        Culprit(r.node, r.op_type, r.value, r.local_error, 0.031 / (rank + 1), r.floor_ratio,
                f"fed with golden inputs it is {r.floor_ratio:.0f}x worse than bf16 rounding allows")
        for rank, r in enumerate(rows.rows[order] for order in culprits)
    )  # fmt: skip
    return Report(
        Verdict(
            verdict="local-fault",
            confidence=0.92,
            summary=f"{len(blamed)} ops of {number} compute wrong numbers on the target; the first, "
            f"{blamed[0].op_type} '{blamed[0].node}', explains most of the output error.",
            culprits=blamed,
            inputs="random",
            steps=(
                Step("Is the comparison sound?", "Yes.", {"outputs": 2}, 0.4, 1),
                Step("Does it fail above the noise floor?", "Yes: SQNR 29.6 dB where 51.2 dB is expected.",
                     {"output": "logits", "floor_ratio": 12.3}, 2.0, 1),
                Step("Is a second run equal?", "Yes, bit for bit.", {}, 0.3, 1),
                Step("Is a second build equal?", "Yes, bit for bit.", {}, 2.2, 1),
                Step("Which ops are wrong with correct inputs?", f"{len(blamed)} of {number}.",
                     {"ops": [c.node for c in blamed[:12]], "floor_ratios": [c.floor_ratio for c in blamed[:12]]},
                     6.1, 2),
            ),
            next=("triage debug reduce model.onnx --target openvino:precision=bf16 --case triage-case",),
            cost=Cost(75.2, 5, 6, {"openvino": 2, "onnxruntime": 3}),
        ),
        case("exports/vit_b16.onnx", nodes=number),
        rows,
        Outputs((
            OutputRow("logits", "float32", (1, 1000), 29.6, 0.41, 0.033, 0.0027, False, feed="random-0"),
            OutputRow("features", "float32", (1, 197, 768), 55.0, 0.02, 0.0018, 0.0027, True, feed="random-0"),
        )),
    )  # fmt: skip


def hostile() -> Report:
    """Every text of a report is one of `HOSTILE_NAMES`."""
    names = [HOSTILE_NAMES[i % len(HOSTILE_NAMES)] for i in range(3 * len(HOSTILE_NAMES))]
    rows = tuple(
        LayerRow(
            value=name, node=f"{name}{i}", op_type=name, scope=name, dtype=name, shape=(i,), order=i,
            in_context_error=0.001 * (i + 1), floor=0.0007, local_error=0.0004, local_floor=0.0007, floor_ratio=0.6,
            influence=0.0001 * i, max_abs_reference=math.inf, max_abs_target=-math.inf, note=name,
        )
        for i, name in enumerate(names)
    )  # fmt: skip
    first = HOSTILE_NAMES[0]
    return Report(
        Verdict(
            verdict="local-fault",
            confidence=math.nan,
            summary=" ".join(HOSTILE_NAMES),
            culprits=tuple(Culprit(f"{name}{i}", name, name, 0.1, 0.1, 2.0, name) for i, name in enumerate(names)),
            inputs=first,
            steps=tuple(Step(name, name, {name: name, "nested": {name: [name]}}) for name in HOSTILE_NAMES),
            next=HOSTILE_NAMES,
        ),
        CaseFacts(
            command=first,
            model=ModelFacts(first, first, 1, 1, 1),
            reference=HOSTILE_NAMES[1],
            target=first,
            feeds=tuple(FeedFacts(name, name, name) for name in HOSTILE_NAMES),
            target_model=ModelFacts(HOSTILE_NAMES[1], HOSTILE_NAMES[1], 1, 1, 1),
            versions={name: name for name in HOSTILE_NAMES},
            created=first,
        ),
        Layers(rows),
        Outputs(tuple(OutputRow(name, name, (1,), 1.0, 1.0, 1.0, None, False, 0, name) for name in names)),
    )  # fmt: skip


def write_case(report: Report, folder: Path) -> None:
    """Write the files of a case directory from which `Report.load` makes this report."""
    folder.mkdir(parents=True, exist_ok=True)
    dump(report.verdict, folder / "verdict.json")
    dump(report.layers, folder / "layers.json")
    dump(report.outputs, folder / "outputs.json")
    if report.case is not None:
        dump(report.case, folder / "case.json")
