"""Does `triage diagnose` name the planted culprit? One fault per operator type (or per kind), one at a time.

    python bench/planted.py --layers 12 --kind scale
    python bench/planted.py --layers 2 --all-kinds

Prints one line per fault (verdict, first culprit, confidence, seconds) and the share that is right.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from tensortriage.testing import encoder, feed_for, save_model
from tensortriage.workflows.diagnose import DiagnoseRequest, diagnose
from tensortriage.workflows.feeding import FeedRequest

ENGINE = "from tensortriage.testing import FaultyEngine\nclass Engine(FaultyEngine):\n    pass\n"
KINDS = (
    "scale",
    "offset",
    "noise",
    "sign",
    "saturate",
    "off-by-one",
    "zero-tail",
    "permute",
    "wrong-axis",
    "bf16-accumulate",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--kind", default="scale")
    parser.add_argument("--all-kinds", action="store_true")
    parser.add_argument("--precision", default="", help="base precision of the faulty engine, e.g. bf16")
    arguments = parser.parse_args()
    model = encoder(layers=arguments.layers, width=128, heads=4, tokens=64, batch=2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_model(model, folder / "encoder.onnx")
        np.savez(folder / "feed.npz", **feed_for(model))
        (folder / "faulty.py").write_text(ENGINE)
        right = total = 0
        kinds = KINDS if arguments.all_kinds else (arguments.kind,)
        for node, kind in [(node, kind) for node in chosen(model) for kind in kinds]:
            target = f"script:{folder / 'faulty.py'},kind={kind},node={node.name}"
            if arguments.precision:
                target += f",precision={arguments.precision}"
            started = time.perf_counter()
            verdict = diagnose(DiagnoseRequest(
                model=folder / "encoder.onnx", target=target, feeding=FeedRequest(paths=(str(folder / "feed.npz"),)),
                case=folder / "case",
            ))  # fmt: skip
            first = verdict.culprits[0].node if verdict.culprits else "-"
            good = verdict.verdict == "local-fault" and first == node.name
            right, total = right + good, total + 1
            print(f"{'ok  ' if good else 'MISS'} {node.op_type:12} {kind:15} {verdict.verdict:22} {first:40} "
                  f"{verdict.confidence:.2f} {time.perf_counter() - started:5.1f} s", flush=True)  # fmt: skip
            if not good:
                print("     ", verdict.summary)
        print(f"{right} of {total} right")


def chosen(model):
    """Return one node of every operator type, the one nearest the middle of the model."""
    nodes = [node for node in model.graph.node if node.op_type != "Constant"]
    middle = len(nodes) // 2
    by_type = {}
    for place, node in enumerate(nodes):
        old = by_type.get(node.op_type)
        if old is None or abs(place - middle) < old[0]:
            by_type[node.op_type] = (abs(place - middle), node)
    return [node for _, node in by_type.values()]


if __name__ == "__main__":
    main()
