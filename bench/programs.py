"""Programs around a network, asked about in three ways: is their mistake named, and nobody else accused?

    python bench/programs.py [--draw first|second] [--only WORD ...] [--ways feeds diagnose saved]

`feeds`: `triage check feed MINE THEIRS` on what the program feeds. `diagnose`: a `script:` target that shows outputs
alone, or runs the file that it is given where what it does to outputs is asked about. `saved`: `triage check feed MINE
OUTPUTS --model`. Cases and what has to be said of each are in `programs_cases` and `programs_second`, written before
anything was asked. Of the second draw a half is held out: what is said of it is counted, and shown to nobody.
"""

import argparse
import importlib
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from programs_cases import Program

from tensortriage.api import EngineSpec, Feed, Model
from tensortriage.envelope.sdk import Lab, Origin
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.requests import DiagnoseRequest
from tensortriage_feeds.check.check import compare_feed_files
from tensortriage_feeds.check.request import FeedFilesRequest

ACCUSES = ("does the target run on the input it is given?", "does another input explain the outputs?",
           "does the target return what the model computes?")  # fmt: skip
UNSEEN = ("pads-of-1",)
"""Mistakes that no output shows."""
APP = """import sys, onnxruntime, numpy as np
sys.path.insert(0, {folder!r})
from {draw} import MISTAKES
program = next((each for each in MISTAKES if each.name == {name!r}), None)

class Session:
    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(path)
        self.names = [output.name for output in self.session.get_outputs()]

    def run(self, feed):
        known = {{each.name for each in self.session.get_inputs()}}
        if program and program.before and known == set({names!r}):
            feed = program.before(dict(feed))
        made = dict(zip(self.names, self.session.run(self.names, {{n: a for n, a in feed.items() if n in known}})))
        if program and program.after and set(self.names) == set({outputs!r}):
            made = {{n: np.asarray(a).astype(made[n].dtype) for n, a in program.after(dict(made)).items()}}
        return made

class App:
    def compile(self, model_path, options):
        return Session({path})
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--draw", choices=["first", "second"], default="first")
    arguments.add_argument("--only", nargs="*", default=[], metavar="WORD", help="cases whose names have one of these")
    arguments.add_argument("--ways", nargs="*", default=["feeds", "saved", "diagnose"])
    arguments.add_argument("--half", choices=["read", "held"], help="of the second draw")
    arguments.add_argument("--missed", type=float, default=0.05, help="largest share of mistakes that may be missed")
    given = arguments.parse_args()
    draw = importlib.import_module({"first": "programs_cases", "second": "programs_second"}[given.draw])
    bad = False
    for way in given.ways:
        counts = {False: [0] * 5, True: [0] * 5}
        with tempfile.TemporaryDirectory() as name:
            for case, program, said in asked(draw, way, Path(name), given.only):
                held = hasattr(draw, "held") and draw.held(case)
                if given.half and held != (given.half == "held"):
                    continue
                began = time.perf_counter()
                kinds, sentence = said()
                seconds = time.perf_counter() - began
                count = counts[held]
                if not program.kind:
                    right = all(program.parameters and re.search(program.parameters, kind) for kind in kinds)
                    count[3] += 1
                    count[4] += not right
                else:
                    right_kind = bool(kinds and re.search(program.kind, sentence))
                    right = right_kind and bool(re.search(program.parameters, sentence))
                    count[0], count[1], count[2] = count[0] + 1, count[1] + right_kind, count[2] + right
                if not held:
                    print(f"{'right' if right else 'MISS ':5} {way:8} {case:34} {seconds:5.1f} s", flush=True)
                if not held and not right:
                    print(f"      {sentence[:600]}", flush=True)
        for held, count in counts.items():
            bad = bad or count[4] > 0 or count[2] < (1 - given.missed) * count[0]
            if count[0] or count[3]:
                print(f"{way}{', held out' if held else ''}: kind {count[1]}, kind and parameters {count[2]} of "
                      f"{count[0]}; {count[4]} of {count[3]} accused", flush=True)  # fmt: skip
    sys.exit(bad)


def asked(
    draw: ModuleType, way: str, folder: Path, only: Sequence[str]
) -> Iterator[tuple[str, Program, Callable[[], tuple[Sequence[str], str]]]]:
    """Yield name, program, and a function that asks, of each case of a way."""
    mistakes = draw.INPUTS if way == "feeds" else [each for each in draw.MISTAKES if each.name not in UNSEEN]
    files = [*mistakes, *(draw.FILES if way == "feeds" or (way == "saved" and hasattr(draw, "held")) else ())]
    for place, program in enumerate(files):
        if not only or any(word in program.name for word in only):
            yield program.name, program, lambda at=place, program=program: ask(draw, way, folder / str(at), program)
    for pair in () if way == "feeds" else draw.ENGINES:
        name = " ".join(pair)
        if not only or any(word in name for word in only):
            yield name, Program(name, pair[0]), lambda pair=pair: ask_engine(draw, way, folder, *pair)


def ask(draw: ModuleType, way: str, folder: Path, program: Program) -> tuple[Sequence[str], str]:
    """Return the kinds of what is told of a program, and how."""
    folder.mkdir()
    model, feed = draw.made(folder, program.network)
    mine, theirs = folder / "mine.npz", folder / "theirs.npz"
    np.savez(mine, **feed)
    if way == "feeds":
        np.savez(theirs, **program.before(dict(feed)))
        return compared(mine, theirs, None)
    if way == "saved":
        shown = run(model, program.before(dict(feed)) if program.before else feed)
        types = {name: array.dtype for name, array in shown.items()}
        shown = program.after(dict(shown)) if program.after else shown
        np.savez(theirs, **{name: np.asarray(array).astype(types[name]) for name, array in shown.items()})
        return compared(mine, theirs, model)
    return diagnosed(model, mine, script(draw, folder, model, feed, program.name, shows=program in draw.OUTPUTS))


def ask_engine(draw: ModuleType, way: str, folder: Path, network: str, engine: str) -> tuple[Sequence[str], str]:
    """Return what a program is accused of where none has a mistake, and how."""
    folder = folder / f"{network}-{engine.replace(':', '-')}"
    folder.mkdir()
    model, feed = draw.made(folder, network)
    mine, theirs = folder / "mine.npz", folder / "theirs.npz"
    np.savez(mine, **feed)
    if engine == "weight":
        other = onnx.load(model)
        weight = next(w for w in other.graph.initializer if len(w.dims) > 1 and w.data_type == 1 and w.name[0] == "w")
        array = numpy_helper.to_array(weight).copy()
        array.reshape(-1)[::7] *= 1.4
        weight.CopyFrom(numpy_helper.from_array(array, weight.name))
        onnx.save(other, folder / "other.onnx")
        if way == "saved":
            np.savez(theirs, **run(folder / "other.onnx", feed))
            return compared(mine, theirs, model)
        return diagnosed(model, mine, script(draw, folder, folder / "other.onnx", feed, "", shows=False))
    if engine == "op":
        node = next(n for n in onnx.load(model).graph.node if n.op_type in ("Conv", "Gemm", "MatMul"))
        (folder / "faulty.py").write_text(
            "from tensortriage_testing import FaultyEngine\nclass Engine(FaultyEngine):\n    pass\n"
        )
        engine = f"script:{folder / 'faulty.py'}:Engine,kind=scale,node={node.name},amount=1.3"
    if engine == "program":
        engine = script(draw, folder, model, feed, "", shows=False)
    if way == "saved":
        np.savez(theirs, **engine_outputs(model, feed, engine))
        return compared(mine, theirs, model)
    return diagnosed(model, mine, engine)


def engine_outputs(model: Path, feed: Mapping[str, np.ndarray], engine: str) -> dict[str, np.ndarray]:
    """Return what an engine answers, as a program would save it."""
    with Lab() as lab:
        shown = lab.outputs(EngineSpec.parse(engine), Model.load(model), Feed("inputs", feed, Origin.REAL))
    return {name: np.asarray(array) for name, array in shown.items()}


def script(
    draw: ModuleType, folder: Path, model: Path, feed: Mapping[str, np.ndarray], name: str, *, shows: bool
) -> str:
    """Write a program; one that shows runs the file that it is given."""
    outputs = [output.name for output in onnx.load(model).graph.output]
    path = folder / "app.py"
    path.write_text(APP.format(draw=draw.__name__, folder=str(Path(__file__).parent.resolve()), name=name,
                               names=sorted(feed),
                               outputs=outputs, path="str(model_path)" if shows else repr(str(model))))  # fmt: skip
    return f"script:{path}:App"


def run(model: Path, feed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(model)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feed)), strict=True))


def compared(mine: Path, theirs: Path, model: Path | None) -> tuple[Sequence[str], str]:
    found = compare_feed_files(FeedFilesRequest(mine=mine, theirs=theirs, model=model), say=lambda _: None)
    said = f"{found.summary} | {found.cure} | {json.dumps(list(found.transforms))}"
    meant = "but " in found.summary and not found.transforms and not found.cure
    told = found.known and not found.same and not meant
    return [each["kind"] for each in found.transforms] or ["unnamed"] if told else [], said


def diagnosed(model: Path, mine: Path, target: str) -> tuple[Sequence[str], str]:
    with tempfile.TemporaryDirectory() as folder:
        verdict = diagnose(DiagnoseRequest(model=model, target=target, feeding=FeedRequest(paths=[str(mine)]),
                                           case=Path(folder) / "case", random_too=False, repro=False))  # fmt: skip
    told = [each.evidence.get("transforms", []) for each in verdict.steps if each.question in ACCUSES]
    kinds = [each["kind"] for transforms in told for each in transforms]
    if any(each.question == ACCUSES[-1] and each.answer.startswith("no") for each in verdict.steps):
        kinds.append("outputs")
    return kinds, f"{verdict.verdict}: {verdict.summary} | {json.dumps(told)}"


if __name__ == "__main__":
    main()
