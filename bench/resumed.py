"""What does a finished diagnosis cost when it is run again? One case of every kind of verdict, each diagnosed twice.

    python bench/resumed.py [--only WORD]

The second run is in the same case: everything it could ask an engine is known, so that it must make no build and no
run, and come to the same verdict and culprits. One line a case: the verdict, what the first run cost and the second.
"""

import argparse
import dataclasses
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from beyond_memory import decoder

from tensortriage.api import DiagnoseRequest, FeedRequest, Limits, Verdict, diagnose

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
ENGINE = """
import onnxruntime
from tensortriage_testing import FaultyEngine


class Engine(FaultyEngine):
    pass


class App:
    network = onnxruntime.InferenceSession("MODEL")

    def compile(self, model_path, options):
        return self

    def run(self, feed):
        return dict(zip(["logits"], self.network.run(None, {"image": 255 * feed["image"]})))
""".replace("MODEL", str(EXAMPLES / "digits_cnn.onnx"))
CNN = ("digits_cnn.onnx", "digits.npz")
CONV = "/block2/conv1/Conv"
TORCH = EXAMPLES.parent / "tests" / "data" / "torch"
SMALL_TRANSFORMER = (str(TORCH / "small_transformer.onnx"), "")
BEYOND_MEMORY = ("decoder.onnx", "")
"""A decoder that is written where it is requested, with 113 MB of weights, on made-up data."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A diagnosis whose verdict is known.

    Attributes:
        verdict: The verdict.
        target: The engine; what follows ``fault:`` is planted.
        model: File of examples/, and its inputs, which are made up where none are named.
        given: Further fields of the request.
    """

    verdict: str
    target: str
    model: tuple[str, str] = CNN
    given: Mapping[str, object] = dataclasses.field(default_factory=dict)


CASES = (
    Case("match", "onnxruntime"),
    Case("rounding", "emulate:precision=bf16"),
    Case("local-fault", f"fault:node={CONV},kind=scale,amount=1.05"),
    Case("layout", f"fault:node={CONV},kind=channels-last"),
    Case("non-finite", f"fault:node={CONV},kind=nan"),
    Case("fusion-fault", f"fault:node={CONV},kind=scale,amount=1.05,fused_with=/block2/Relu_1"),
    Case("range-overflow", "emulate:precision=fp16", ("digits_vit_overflow.onnx", "digits_vit_overflow.npz")),
    Case("model-changed", "onnxruntime", given={"target_model": EXAMPLES / "digits_cnn_broken.onnx"}),
    Case("intermittent", f"fault:node={CONV},kind=scale,amount=1.05,build_chance=0.5"),
    Case("nondeterministic-run", f"fault:node={CONV},kind=nondeterministic,amount=0.05"),
    Case("build-failed", f"fault:node={CONV},kind=build-failure"),
    Case("engine-crash", f"fault:node={CONV},kind=crash"),
    Case("engine-hang", f"fault:node={CONV},kind=hang", given={"limits": Limits(run_seconds=5.0)}),
    Case("comparison-unsound", "program"),
    Case(
        "local-fault, network",
        "fault:node=node_layer_norm,kind=scale,amount=1.05",
        SMALL_TRANSFORMER,
        {"network": f"torch:{TORCH / 'small_transformer.py'}:network"},
    ),
    Case(
        "local-fault in blocks",
        "fault:node=block3/weights_node,kind=scale,amount=1.05",
        BEYOND_MEMORY,
        {"limits": Limits(memory_bytes=300 << 20)},
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="verdicts that contain this word")
    arguments = parser.parse_args()
    wrong = 0
    for case in CASES:
        if arguments.only in case.verdict:
            wrong += not told(case)
    sys.exit(bool(wrong))


def told(case: Case) -> bool:
    """Diagnose a case twice, print what that cost, and say whether the second run cost nothing."""
    with tempfile.TemporaryDirectory() as folder:
        first, again = asked(case, Path(folder)), asked(case, Path(folder))
    same = (first.verdict, first.culprits) == (again.verdict, again.culprits)
    free = (again.cost.builds, again.cost.checks) == (0, 0)
    steps = ", ".join(step.question for step in again.steps if step.checks)
    print(
        f"{'  ' if same and free else '! '}{case.verdict:22} {first.verdict:22} first {first.cost.builds:3} builds "
        f"{first.cost.checks:4} runs, again {again.cost.builds:3} {again.cost.checks:4}"
        f"{'' if same else f', and {again.verdict}'}{f' in: {steps}' if steps else ''}",
        flush=True,
    )
    return same and free


def asked(case: Case, folder: Path) -> Verdict:
    """Diagnose a case in a folder."""
    (folder / "engine.py").write_text(ENGINE)
    target = case.target
    if target.startswith("fault:"):
        target = f"script:{folder / 'engine.py'}:Engine,{target.removeprefix('fault:')}"
    if target == "program":
        target = f"script:{folder / 'engine.py'}:App"
    if case.model == BEYOND_MEMORY:
        model, feeding = decoder(folder, blocks=4, width=768), FeedRequest()
    else:
        model, inputs = EXAMPLES / case.model[0], case.model[1]
        feeding = FeedRequest(paths=(str(EXAMPLES / inputs),) if inputs else ())
    return diagnose(DiagnoseRequest(model=model, target=target, feeding=feeding, case=folder / "case", **case.given))


if __name__ == "__main__":
    main()
