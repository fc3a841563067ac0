"""``triage data``: put files of inputs and outputs together, or into another format."""

import copy
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tensortriage.sdk import CommandGroup, Place, argument, command, flag, option, printable, request

if TYPE_CHECKING:
    from tensortriage.sdk import Iteration
    from tensortriage_polygraphy.combine import Combined

FORMATS = ("json", "npz", "npy", "test-data-set", "safetensors", "store")
RESULT = "Result"


def output_field() -> Any:
    """Declare the file to write."""
    return option("--output -o", "OUT", "File (replaced) or directory (new or empty) to write.",
                  writes=Place.EITHER, group=RESULT)  # fmt: skip


def format_field() -> str | None:
    """Declare the format."""
    return option("--to", "", "Format  [default: by the ending of -o: .json, .npz, .safetensors, .store, or no suffix "
                  "for a directory of JSON].", default=None, choices=FORMATS)  # fmt: skip


def runner_field() -> str | None:
    """Declare the runner whose outputs are used."""
    return option("--runner", "NAME", "Which runner's outputs to take from files that hold several.",
                  default=None, group="Input")  # fmt: skip


@click.group(cls=CommandGroup)
def data() -> None:
    """Merge, concatenate and convert feeds and saved outputs."""


@command(short_help="Side by side: all tensors, as inputs.", epilog="""\b
Examples:
  triage data merge inputs.json layers.json -o layer_inputs.json
  triage data merge golden.json --runner onnxruntime -o golden.npz
""")  # fmt: skip
def merge(
    paths: tuple[Path, ...] = argument("PATHS..."),
    output: Path = output_field(),
    format_name: str | None = format_field(),
    runner: str | None = runner_field(),
    *,
    as_json: bool,
) -> None:  # fmt: skip
    """Merge PATHS side by side: each iteration gets all their tensors, as inputs for --inputs."""
    from tensortriage.sdk import open_data
    from tensortriage_polygraphy.combine import merge as merged

    _write(merged([open_data(path) for path in paths], runner=runner), output, format_name, as_json=as_json)


@command(short_help="One after the other: all iterations.", epilog="""\b
Examples:
  triage data concat monday.json tuesday.json -o both.json
  triage data concat run_0 run_1 -o all_outputs
""")  # fmt: skip
def concat(
    paths: tuple[Path, ...] = argument("PATHS..."),
    output: Path = output_field(),
    format_name: str | None = format_field(),
    *,
    as_json: bool,
) -> None:  # fmt: skip
    """Append the iterations of PATHS, all inputs or all outputs (runner by runner)."""
    from tensortriage.sdk import open_data
    from tensortriage_polygraphy.combine import concat as concatenated

    _write(concatenated([open_data(path) for path in paths]), output, format_name, as_json=as_json)


@request
class DataConversion:
    """The data to write in another format."""

    # fmt: off
    path: Path = argument("PATH")
    output: Path = output_field()
    format_name: str | None = format_field()
    kind_name: str | None = option(
        "--as", "", "Kind of the result  [default: that of PATH].", default=None, choices=("inputs", "outputs"))
    runner: str | None = runner_field()
    model: Path | None = option(
        "--model", "MODEL", "ONNX file whose inputs PATH must fit; it shows whether the first axis is one of "
        "samples.", default=None)
    cast: bool = flag("--cast", "Round values to MODEL's element types where they differ.")
    # fmt: on


@command(short_help="Into another format.", epilog="""\b
Examples:
  triage data convert inputs.json -o inputs.npz
  triage data convert digits.npz -o test_data_set_0 --model model.onnx
  triage data convert doubles.npz -o floats.npz --model model.onnx --cast
  triage data convert golden.json --runner onnxruntime --as inputs -o golden.safetensors
""")  # fmt: skip
def convert(wanted: DataConversion, *, as_json: bool) -> None:
    """Write PATH in another format: npz, npy, test_data_set, Polygraphy JSON, safetensors or our tensor store."""
    from tensortriage.sdk import Kind, open_data
    from tensortriage_polygraphy.combine import Combined, selected

    path, model, runner = wanted.path, wanted.model, wanted.runner
    if wanted.cast and model is None:
        raise click.UsageError("--cast needs --model: arrays are cast to the element types of its inputs")
    file = open_data(path)
    kind = Kind(wanted.kind_name) if wanted.kind_name else file.kind
    if model is not None:
        series: tuple[tuple[str, Iterable[Iteration]], ...] = (("", _fitted(path, model, cast=wanted.cast)),)
    else:
        series = tuple((item.runner, item) for item in selected(file, runner))
    if kind is Kind.OUTPUTS:
        series = tuple((name or runner or path.stem, iterations) for name, iterations in series)
    elif len(series) == 1:
        series = (("", series[0][1]),)
    _write(Combined(kind, series, ()), wanted.output, wanted.format_name, as_json=as_json)


for _command in (merge, concat, convert):
    data.add_command(_command)
_old_name = copy.copy(merge)
_old_name.hidden = True
data.add_command(_old_name, "to-input")  # as Polygraphy called it before 0.50


def _fitted(path: Path, model: Path, *, cast: bool) -> "Iterator[Iteration]":
    """Yield the feeds of a file as the model takes them."""
    from tensortriage.api import Model
    from tensortriage.sdk import Casting, Iteration, load_feeds

    specs = Model.load(model).inputs
    for feed in load_feeds([path], specs, casting=Casting.ROUND if cast else Casting.EXACT):
        yield Iteration(feed.tensors)


def _write(combined: "Combined", output: Path, format_name: str | None, *, as_json: bool) -> None:
    from tensortriage.sdk import DataFormat, format_for, print_document, save, to_json

    wanted = DataFormat(format_name) if format_name else None
    for notice in combined.notices:
        click.echo(f"triage: note: {printable(notice)}", err=True)
    count = save(output, combined.series, kind=combined.kind, wanted=wanted)
    found = format_for(output, wanted)
    if as_json:
        print_document(to_json({
            "format": "tensortriage.data-written/1", "output": output, "data_format": found, "kind": combined.kind,
            "iterations": count, "runners": [name for name, _ in combined.series if name], "notices": combined.notices,
        }))  # fmt: skip
    else:
        noun = "iteration" if count == 1 else "iterations"
        click.echo(f"wrote {printable(str(output))}: {count} {noun} of {combined.kind.value} as {found.value}")
