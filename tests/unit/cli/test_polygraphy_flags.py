"""Every flag of Polygraphy 0.53.6's graph tools works here, or the page for its users says why it does not.

The lists are those of `polygraphy COMMAND --help`, without the logging flags that all of them share.
"""

import re
from pathlib import Path

import click
import pytest

from tensortriage.cli import cli

PAGE = Path(__file__).resolve().parents[3] / "docs/coming-from-polygraphy.md"
LOGGING = "-v --verbose -q --quiet --verbosity --silent --log-format --log-file"
LOADING = "--external-data-dir --load-external-data --ext --ignore-external-data --fp-to-fp16"
SAVING = "--save-external-data --external-data-path --external-data-size-threshold --no-save-all-tensors-to-one-file"
WRITING = f"{LOADING} {SAVING} -o --output"
DATA = (
    "--seed --val-range --iterations --iters --data-loader-backend-module --load-inputs --load-input-data "
    "--data-loader-script"
)
INFERENCE = "--shape-inference --do-shape-inference --no-onnxruntime-shape-inference"
FLAGS = {
    "surgeon sanitize": f"""{WRITING} {DATA} --override-input-shapes --override-inputs --no-shape-inference
        --force-fallback-shape-inference --no-onnxruntime-shape-inference --outputs --exclude-outputs --outputs-by-type
        --set-unbounded-dds-upper-bound --fold-constants --num-passes --num-const-fold-passes --partitioning
        --no-fold-shapes --no-per-pass-shape-inference --fold-size-threshold --cleanup --toposort""",
    "surgeon extract": f"""{WRITING} {DATA} {INFERENCE} --model-input-shapes --model-inputs
        --force-fallback-shape-inference --inputs --outputs""",
    "surgeon insert": f"{WRITING} {INFERENCE} --inputs --outputs --op --name --attrs",
    "surgeon prune": WRITING,
    "surgeon weight-strip": f"{WRITING} --exclude-list",
    "surgeon weight-reconstruct": WRITING,
    "inspect model": f"""{LOADING} {INFERENCE} --model-type --ckpt --freeze-graph --plugins --layer-precisions
        --decomposable-attentions --tensor-dtypes --tensor-datatypes --all-tensor-dtypes --all-tensor-datatypes
        --tensor-formats --all-tensor-formats --trt-network-postprocess-script --trt-npps --strongly-typed --mark-debug
        --mark-unfused-tensors-as-debug-tensors --save-timing-cache --load-runtime --dla-workspace-allocation-strategy
        --onnx-flags --plugin-instancenorm --enable-uint8-asymmetric-quantization-dla --visual --visual-port
        --save-visual --convert-to --display-as --show --list-unbounded-dds --combine-tensor-info""",
    "inspect capability": f"{WRITING} {INFERENCE} --with-partitioning",
    "inspect sparsity": LOADING,
    "inspect data": "-a --all -s --show-values --histogram -n --num-items --line-width",
    "check lint": f"""{LOADING} {DATA} --input-shapes --inputs --providers --execution-providers
        --graph-optimization-level -o --output""",
}


@pytest.mark.parametrize("command", FLAGS)
def test_every_flag_works_or_is_explained(command):
    explained = words(section("## triage surgeon, inspect, check lint"))
    missing = set(FLAGS[command].split()) - accepted(command) - explained
    assert not missing


def test_the_logging_flags_are_explained():
    assert set(LOGGING.split()) - {"--verbose", "--quiet"} <= words(section("Running:"))


@pytest.mark.parametrize("command", [name for name in FLAGS if name.startswith("surgeon")])
def test_surgery_lacks_nothing_but_the_conversion(command):
    assert set(FLAGS[command].split()) - accepted(command) <= {"--fp-to-fp16"}


def accepted(command):
    """Return the option words that a command of ours takes."""
    found = cli
    for word in command.split():
        found = found.get_command(click.Context(cli), word)
    return {word for parameter in found.params for word in (*parameter.opts, *parameter.secondary_opts)}


def section(heading):
    """Return the text of the page from a line to the next heading of the same kind."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(f"\n{heading}\n")
    assert rest, heading
    return rest.partition("\n## ")[0]


def words(text):
    """Return the option words in the code of a text."""
    return {word for code in re.findall(r"`([^`]+)`", text) for word in code.split() if word.startswith("-")}
