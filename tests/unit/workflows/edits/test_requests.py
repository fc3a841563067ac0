"""What requests for edits make of their options, and what the commands that share them list and leave out."""

import dataclasses
from pathlib import Path

import pytest

import models
from tensortriage.cli.declared import parameters
from tensortriage.errors import ModelError, UsageError
from tensortriage.model.model import ExternalData, ExternalLayout
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.values.options import DECLARED
from tensortriage.workflows.edits.convert_request import ConvertRequest
from tensortriage.workflows.edits.requests import (
    LayoutOptions,
    ProofRequest,
    Source,
    Target,
    Verify,
)
from tensortriage_surgeon.requests import ExtractRequest, FoldArguments, SanitizeRequest

REQUESTS = [
    LayoutOptions, FoldArguments, Source, Target, ProofRequest, SanitizeRequest, ExtractRequest, ConvertRequest,
]  # fmt: skip


def slug_of(options):
    """Return the slug with which options are refused."""
    with pytest.raises(UsageError) as caught:
        options.value()
    return caught.value.slug


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({}, ExternalData.LEAVE),
        ({"usual": "AUTO"}, ExternalData.AUTO),
        ({"embed": True}, ExternalData.AUTO),
        ({"location": ""}, ExternalLayout("", 1024, True)),
        ({"location": "w.bin", "threshold": "2K", "apart": True}, ExternalLayout("w.bin", 2048, False)),
        ({"location": "w.bin", "threshold": "0"}, ExternalLayout("w.bin", 0, True)),
    ],
)
def test_where_weights_go(given, place):
    assert LayoutOptions(**given).value() == place


def test_options_that_refine_external_data_need_it_and_it_excludes_embedding():
    assert slug_of(LayoutOptions(threshold="1K")) == "option-needs-another"
    assert slug_of(LayoutOptions(apart=True)) == "option-needs-another"
    assert slug_of(LayoutOptions(location="w.bin", embed=True)) == "usage"
    assert slug_of(LayoutOptions(location="w.bin", threshold="some")) == "size-malformed"


def test_a_model_whose_weights_lie_elsewhere_has_no_file_that_engines_can_load(tmp_path):
    path = models.with_external_data(tmp_path)
    (tmp_path / "moved").mkdir()
    assert Source(path).load().path == path
    (tmp_path / "weights.bin").rename(tmp_path / "moved" / "weights.bin")
    found = Source(path, external_data_dir=tmp_path / "moved").load()
    assert found.path is None
    assert found.graph.weight("W").shape == (4, 8)
    with pytest.raises(ModelError) as caught:
        Source(path).load()
    assert caught.value.slug == "external-data-missing"
    assert Source(path, ignore_external_data=True).load().graph.nodes[0].name == "matmul"


def test_values_of_one_name_are_told_apart_only_where_that_is_asked_for(tmp_path):
    path = models.write(tmp_path / "m.onnx", "g (float[2] x) => (float[2] y) { a = Abs(x) a = Neg(x) y = Exp(a) }")
    with pytest.raises(ModelError) as caught:
        Source(path).load()
    assert caught.value.slug == "value-defined-twice"
    assert len(Source(path, mend_names=True).load().graph.nodes) == 3


@pytest.mark.parametrize(
    ("layout", "data"),
    [(ExternalData.LEAVE, "out.onnx.data"), (ExternalLayout(""), "out.onnx.data"), (ExternalLayout("w"), "w")],
)
def test_a_target_is_the_model_and_the_file_of_its_weights(layout, data):
    assert Target(Path("a/out.onnx"), layout).paths == (Path("a/out.onnx"), Path("a") / data)


def test_a_target_writes_weights_where_its_layout_says(tmp_path):
    Target(tmp_path / "out.onnx", ExternalLayout("w.bin", 0)).write(models.mlp())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.onnx", "w.bin"]


def test_verification_is_decided_by_one_word():
    assert (Verify.of(True), Verify.of(False)) == (Verify.ALWAYS, Verify.NEVER)
    assert ProofRequest().verify is Verify.AUTO


def flags_of(request):
    """Yield name, value and default of every flag that a request declares itself."""
    for field in dataclasses.fields(request):
        declared = field.metadata.get(DECLARED, ())
        for option in declared if isinstance(declared, tuple) else ():
            if isinstance(option.value, bool):
                yield option, field.default


@pytest.mark.parametrize("request_type", REQUESTS)
def test_a_flag_says_no_exactly_where_it_switches_off_what_is_usual(request_type):
    """Polygraphy's names of two flags say otherwise."""
    for option, default in flags_of(request_type):
        name = option.names[0]
        if name == "--no-save-all-tensors-to-one-file":
            name = "--one-file-each"
        elif name == "--convert-io-types":
            name = "--no-keep-io-types"
        switches_off = name.startswith("--no-")
        assert (default, option.value) == (switches_off, not switches_off), name


def rarely(request_type):
    """Return the options of a request that only --help-all lists."""
    return {one.opts[0] for one in parameters(request_type) if getattr(one, "rare", False)}


SHARED = rarely(Source) | rarely(LayoutOptions) | rarely(FeedRequest)


@pytest.mark.parametrize(
    ("request_type", "rare"),
    [
        (FoldArguments, "--num-passes --no-fold-shapes --no-per-pass-shape-inference"),
        (ExtractRequest, "--shape-inference --force-fallback-shape-inference --model-input-shapes"),
        (ConvertRequest, "--onnx-outputs --onnx-exclude-outputs --onnx-outputs-by-type --shape-inference"),
    ],
)
def test_only_what_is_rarely_asked_for_is_left_out_of_the_short_help(request_type, rare):
    assert rarely(Source) == {"--external-data-dir", "--ignore-external-data"}
    assert rarely(LayoutOptions) == {"--external-data-size-threshold", "--no-save-all-tensors-to-one-file"}
    assert rarely(request_type) - SHARED == set(rare.split())
