"""The command line for a vendor: flags as trtexec's own source has them (samples/common/sampleOptions.cpp)."""

import enum
import types

import pytest

from tensortriage_engines.tensorrt.worker.config import tactic_sources
from tensortriage_engines.tensorrt.worker.trtexec import trtexec

SOURCES = enum.IntEnum("TacticSource", ["CUBLAS", "CUBLAS_LT", "CUDNN"], start=0)
OLD = types.SimpleNamespace(TacticSource=SOURCES, BuilderFlag=types.SimpleNamespace(TF32=0))
NEW = types.SimpleNamespace(TacticSource=SOURCES, BuilderFlag=types.SimpleNamespace(DISTRIBUTIVE_INDEPENDENCE=0))
ONCE = types.SimpleNamespace(avg_timing_iterations=1)


def command(options, used=None, *, trt=OLD, config=ONCE, strong=False):
    return trtexec(trt, config, "m.onnx", options, used or {}, strong=strong)


def test_formats_shapes_and_files():
    options = {"precision": "int8", "fallback": "fp16", "tactic_sources": "-CUDNN", "timing_cache": "",
               "opt_level": "3", "plugins": "a b.so"}  # fmt: skip
    assert command(options, {"x": ((1,), (2,), (3,))}) == (
        "trtexec --onnx=m.onnx --int8 --fp16 --minShapes=x:1 --optShapes=x:2 --maxShapes=x:3 "
        "--builderOptimizationLevel=3 --tacticSources=-CUDNN '--dynamicPlugins=a b.so' --avgTiming=1 "
        "--profilingVerbosity=detailed"
    )


def test_kept_nodes_are_constrained_in_precision_and_output_as_the_build_does_it():
    options = {"precision": "fp16", "kept": '{"nodes": ["a", "/b/Conv"], "values": {}}', "constraints": "prefer"}
    kept = "a:fp32,/b/Conv:fp32"
    expected = f"--precisionConstraints=prefer --layerPrecisions={kept} --layerOutputTypes={kept} "
    assert expected in command(options)
    assert "layerPrecisions" not in command(options, strong=True)


def test_timings_are_those_of_the_build():
    """trtexec's default is 8 (defaultAvgTiming), the library's is 1."""
    assert "--avgTiming=1 " in command({})
    steady = types.SimpleNamespace(avg_timing_iterations=8, max_aux_streams=0)
    words = command({"deterministic": "true"}, trt=NEW, config=steady)
    assert "--avgTiming=8 --maxAuxStreams=0 --distributiveIndependence " in words
    old = command({"deterministic": "true"}, config=types.SimpleNamespace(avg_timing_iterations=8))
    assert "--avgTiming=8 --profiling" in old  # 8.5 has neither


@pytest.mark.parametrize(
    "words", ["none", "CUBLAS", "cublas+cublas_lt", "-CUDNN", "-CUDNN+-CUBLAS", "-CUDNN+CUBLAS", "CUBLAS+-CUBLAS"]
)
def test_tactic_sources_come_to_the_same_mask(words):
    """trtexec adds those with a plus to the default, takes those with a minus away, and refuses both of one."""
    (told,) = [text for text in command({"tactic_sources": words}).split() if text.startswith("--tacticSources=")]
    signed = told.partition("=")[2].split(",")
    plus = {text[1:] for text in signed if text[0] == "+"}
    minus = {text[1:] for text in signed if text[0] == "-"}
    assert not plus & minus
    mask = sum(1 << source for source in SOURCES if source.name not in minus)
    assert mask == tactic_sources(OLD, 0b111, words)


def test_flags_that_trtexec_has():
    words = command({"version_compatible": "true", "no_new_timings": "true", "builder_flags": "strip_plan+DIRECT_IO"})
    assert {"--versionCompatible", "--errorOnTimingCacheMiss", "--stripWeights", "--directIO"} <= set(words.split())
    assert "#" not in words


def test_what_trtexec_cannot_say_is_told():
    words = command({"strict_nans": "true", "builder_flags": "MONITOR_MEMORY", "load_tactics": "t.json"})
    assert words.endswith(" # trtexec has no words for: strict_nans=true, load_tactics=t.json, MONITOR_MEMORY")
    assert "types as constraints" in command({"precision": "mixed", "typing": "strong"})
    assert "#" not in command({"precision": "mixed", "typing": "strong"}, strong=True)
