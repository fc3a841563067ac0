"""The engine torch: its options, and sessions that look values of an ONNX model up in a network."""

from pathlib import Path

import numpy as np
import pytest

import models
from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import BuildFailed, RunFailed, TriageError, UsageError
from tensortriage.model.cutting.extract import extract
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.mark_outputs import mark_outputs
from tensortriage_torch.engine import TorchEngine, TorchSession

FOLDER = Path(__file__).resolve().parents[2] / "data" / "torch"
NETWORK = f"torch:{FOLDER / 'small_transformer.py'}:network"


def test_a_part_of_a_model_is_refused(tmp_path):
    model = Model.load(FOLDER / "small_transformer.onnx")
    part = extract(model, [node.name for node in model.graph.nodes[:9]], specs=value_specs(model))
    with pytest.raises(BuildFailed) as caught:
        TorchEngine().compile(part.save(tmp_path / "part.onnx"), EngineSpec.parse(NETWORK).options)
    assert caught.value.slug == "torch-model-changed"


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("torch:/nowhere/net.py:network", "script-missing"),
        (NETWORK.rpartition(":")[0], "torch-function"),
        (f"{NETWORK},compile=tvm", "engine-option-value"),
        (f"{NETWORK},dtype=int8", "engine-option-value"),
        (f"{NETWORK},device_type=cpu", "engine-option-unknown"),
    ],
)
def test_wrong_options(text, slug):
    spec = EngineSpec.parse(text)
    with pytest.raises(UsageError) as caught:
        TorchEngine().compile(FOLDER / "small_transformer.onnx", spec.options)
    assert caught.value.slug == slug


def test_specs_and_precisions():
    spec = EngineSpec.parse("torch:nets/net.py:make,dtype=fp64,compile=inductor")
    assert spec.options["attribute"] == "make"
    assert str(spec) == "torch:nets/net.py:make,dtype=fp64,compile=inductor"
    assert EngineSpec.parse("torch:net.pt2").options == {"file": "net.pt2"}
    engine = TorchEngine()
    options = EngineSpec.parse(f"{NETWORK},compile=inductor").options
    assert [words for words, _ in engine.ladder(options)] == [
        "compile=eager", "compile=aot_eager", "compile=inductor-unfused", "as given",
    ]  # fmt: skip
    assert engine.observing(options) is None
    assert engine.precision(EngineSpec.parse(f"{NETWORK},dtype=fp64").options) == "fp32"
    assert engine.precision(EngineSpec.parse(f"{NETWORK},dtype=bf16").options) == "bf16"


def test_a_missing_pytorch_is_told(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    available = TorchEngine().availability()
    assert not available.usable
    assert "pip install torch" in available.cure


def test_no_pytorch_in_the_worker_is_an_error(tmp_path):
    network = tmp_path / "net.py"
    network.write_text("def make():\n    return 3\n")
    with pytest.raises(TriageError) as caught:
        TorchEngine().compile(FOLDER / "small_transformer.onnx", {"file": str(network), "attribute": "make"})
    assert caught.value.slug in ("torch-network", "torch-missing")  # by whether PyTorch is installed


@pytest.mark.parametrize(
    ("device", "hardware"), [("", "cpu"), (",device=CUDA:1", "gpu"), (",device=cpu", "cpu"), (",device=xla", "any")]
)
def test_what_is_known_of_a_device(device, hardware):
    assert TorchEngine().hardware(EngineSpec.parse(NETWORK + device).options) == hardware


def test_what_runs_as_it_is_shows_its_values_and_has_one_rung():
    engine, options = TorchEngine(), EngineSpec.parse(f"{NETWORK},compile= Eager").options
    assert engine.observing(options) == options
    assert engine.ladder(options) == [("as given", options)]
    assert [words for words, _ in engine.ladder({"compile": "odd"})] == ["as given"]


class Isolated:
    """Stands for the worker: remembers what it is asked."""

    def __init__(self, session=None):
        self.session, self.asked = session, []

    def probe(self, settings, *, affinity):
        self.asked.append((settings, affinity))

    def compile(self, model, settings, *, affinity, files, terms):
        self.asked.append((settings, affinity))
        self.files, self.declared = files, terms.declared(model)
        return self.session

    def answer(self, question, file, words, *, affinity):
        self.asked.append((question, file, words))
        return {}, {"1": np.ones(1), "0": np.zeros(1)}


class Asked:
    """A network in a worker, of which operation ``exp`` makes ``a`` and module ``inner`` makes ``b``."""

    inputs, info = (), {"version": "2"}

    def __init__(self):
        self.log, self.values, self.reason, self.names = [], {}, "", ("y",)

    def run(self, feed):
        self.log.append("run")
        return dict.fromkeys(self.names, feed["x"] * 2)

    def answer(self, question, feed=None, **arguments):
        self.log.append(question)
        if question == "program":
            return {"operations": [], "reason": self.reason}, {}
        if question == "cut":
            return arguments, {}
        self.wanted = arguments["wanted"]
        return {"reason": "later"}, {name: np.ones(2) for name in self.wanted}

    def allow(self, seconds):
        self.log.append(seconds)

    def close(self):
        self.log.append("close")


FEED = {"x": np.float32([1, 2])}


def model_of_modules():
    """Return a model of which module ``inner`` makes ``b``; ``a`` is inside of it."""
    return models.parse("""g (float[2] x) => (float[2] y) {
        ["/inner/Exp"] a = Exp(x)  ["/inner/Neg"] b = Neg(a)  [last] y = Abs(b) }""")


@pytest.fixture
def asked():
    return Asked()


def opened(asked, *outputs, **given):
    model = model_of_modules()
    return TorchSession(asked, mark_outputs(model, outputs) if outputs else model, ["y"], **given)


def test_outputs_of_the_network_are_run_and_inner_values_looked_up(asked):
    session = opened(asked, "b")
    found = session.run(FEED)
    assert {name: array.tolist() for name, array in found.items()} == {"y": [2, 4], "b": [1, 1]}
    assert asked.wanted == {"b": {"fx_node": "", "module": "inner", "given": "", "place": 0}}
    assert asked.log == ["run", "program", "values"]
    assert session.reason == "later"


def test_what_the_network_does_not_know_is_refused_or_left_out(asked):
    asked.reason = "no program"
    session = opened(asked, "a")
    assert list(session.run_known(FEED)) == ["y"]
    with pytest.raises(RunFailed, match=r"'a' .*no program") as caught:
        session.run(FEED)
    assert caught.value.slug == "engine-value-unknown"
    assert "values" not in asked.log


def test_where_only_inner_values_are_wanted_the_network_is_not_run(asked):
    model = model_of_modules()
    session = TorchSession(asked, model, ["z"])
    assert session.run_known(FEED) == {}
    assert "run" not in asked.log


def test_questions_are_passed_on(asked):
    session = opened(asked)
    assert session.plan() is None
    assert session.query("cut", FEED, reason=3) == ({"reason": 3}, {})
    session.close()
    assert asked.log == ["cut", "close"]


def test_what_compiles_in_a_run_may_take_as_long_as_a_build(asked):
    plain = opened(asked)
    plain.allow(3.0)
    assert asked.log == [3.0]
    compiled = opened(asked, least_seconds=9.0)
    compiled.allow(3.0)
    compiled.allow(30.0)
    assert asked.log == [3.0, 9.0, 9.0, 30.0]


@pytest.fixture
def engine():
    made = TorchEngine(limits=Limits(build_seconds=9))
    made._isolated = Isolated(Asked())
    return made


OPTIONS = EngineSpec.parse(NETWORK).options


@pytest.mark.parametrize(("options", "log"), [({}, []), ({"compile": "inductor"}, [9])])
def test_a_session_is_built_for_the_outputs_of_the_network(engine, tmp_path, options, log):
    model = Model.load(FOLDER / "small_transformer.onnx")
    inner = model.graph.nodes[5].outputs[0]
    path = mark_outputs(model, [inner]).save(tmp_path / "marked.onnx")
    session = engine.compile(path, {**OPTIONS, **options})
    assert [spec.name for spec in session.outputs] == ["scores", inner]
    isolated = engine._isolated
    ((settings, affinity),) = isolated.asked
    assert settings["names"] == '{"inputs": ["ids"], "outputs": ["scores"]}'
    assert (settings["compile"], settings["attribute"]) == (options.get("compile", "eager"), "network")
    assert affinity == f"{settings['file']} network {settings['compile']}"
    assert [spec.name for spec in isolated.declared[1]] == ["scores"]
    assert isolated.session.log == log


def test_a_model_whose_values_were_replaced_is_refused(engine, tmp_path):
    text = 'g (float[2] x) => (float[2] y) { "before::y" = Exp(x)  y = Neg("before::y") }'
    with pytest.raises(BuildFailed) as caught:
        engine.compile(models.write(tmp_path / "m.onnx", text), OPTIONS)
    assert caught.value.slug == "torch-model-changed"


def test_checking_asks_the_worker(engine):
    engine.check({**OPTIONS, "dtype": "half"})
    ((settings, _),) = engine._isolated.asked
    assert (settings["dtype"], settings["compile"]) == ("fp16", "eager")


def test_an_export_gives_the_examples_in_order(engine, tmp_path):
    examples = engine.export_file(OPTIONS, tmp_path / "m.onnx", exporter="dynamo")
    assert [array.tolist() for array in examples] == [[0], [1]]
    ((question, file, words),) = engine._isolated.asked
    assert (question, str(file), words["to"], words["exporter"]) == (
        "export", OPTIONS["file"], str(tmp_path / "m.onnx"), "dynamo",
    )  # fmt: skip
    with pytest.raises(UsageError) as caught:
        engine.export_file({**OPTIONS, "worker": "ssh://host"}, tmp_path / "m.onnx", exporter="dynamo")
    assert caught.value.slug == "torch-export"


def test_a_saved_program_needs_no_function(engine, tmp_path):
    (tmp_path / "net.pt2").touch()
    assert engine.precision({"file": str(tmp_path / "net.pt2")}) == "fp32"
