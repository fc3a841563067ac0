"""``triage plugin``: finds where patterns of TensorRT plugins match a model, and puts the plugins there."""

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tensortriage.cli.compatible import KEY as COMPATIBLE
from tensortriage.cli.declared import command
from tensortriage.cli.documents import print_document
from tensortriage.cli.options import accepted_option, model_type_option, own_inference
from tensortriage.runs.request_fields import external_data_field
from tensortriage.values.options import argument, flag, option, request
from tensortriage.values.output_files import Place
from tensortriage.values.printable import printable
from tensortriage.values.text import count

if TYPE_CHECKING:
    from tensortriage.model.plugin_patterns import PluginMatch

PLUGINS, FILES, DATA = "Plugins", "Files", "Data"
_logger = logging.getLogger(__name__)
ACCEPTED = [
    model_type_option(FILES),
    own_inference(FILES),
    *(accepted_option(*names, heading=DATA, text="nothing is run here.", multiple=True, metavar=metavar)
      for *names, metavar in (
          ("--input-shapes", "--inputs", "WORD..."), ("--load-inputs", "--load-input-data", "WORD..."),
          ("--val-range", "WORD..."), ("--seed", "WORD"), ("--iterations", "--iters", "WORD"),
          ("--data-loader-backend-module", "WORD"), ("--data-loader-script", "WORD"),
      )),
]  # fmt: skip


@request
class PluginOptions:
    """The model and the plugins."""

    # fmt: off
    model: Path = argument("MODEL")
    plugin_dir: Path = option(
        "--plugin-dir", "DIR", "Directory that holds a directory for each plugin, with its pattern.py.", group=PLUGINS)
    external_data_dir: Path | None = external_data_field(group=FILES)
    infer_shapes: bool = flag("--shape-inference --do-shape-inference", "Let patterns see inferred shapes.", rare=True)
    # fmt: on


@request
class PluginChoice(PluginOptions):
    """Which plugins are asked."""

    include: tuple[str, ...] = option("--include", "NAME...", "Use only these plugins.", default=(), group=PLUGINS)
    exclude: tuple[str, ...] = option("--exclude", "NAME...", "Plugins to leave out.", default=(), group=PLUGINS)


@command("list", accepted=ACCEPTED, epilog="""\b
Examples:
  triage plugin list model.onnx --plugin-dir plugins
""")  # fmt: skip
def list_plugins(choice: PluginChoice, as_json: bool) -> None:
    """Count the places in MODEL that each plugin can replace."""
    tell(found_in(choice), as_json=as_json)


@command("match", accepted=ACCEPTED, epilog="""\b
Examples:
  triage plugin match model.onnx --plugin-dir plugins -o matches.yaml
""")  # fmt: skip
def match(
    choice: PluginChoice,
    output: Path | None = option(
        "--output -o", "FILE", "File for the places  [default: config.yaml beside MODEL].", default=None,
        writes=Place.FILE, group=FILES),
    *,
    as_json: bool,
) -> None:  # fmt: skip
    """Write down the places in MODEL that each plugin can replace, to be reviewed or edited."""
    from tensortriage.workflows.edits.plugins import write_matches

    found = found_in(choice)
    path = output or choice.model.with_name("config.yaml")
    write_matches(path, [match for match in found.values() if match is not None])
    tell(found, as_json=as_json, path=path)


@command("replace", accepted=ACCEPTED, epilog="""\b
Examples:
  triage plugin replace model.onnx --plugin-dir plugins --config matches.yaml -o replaced.onnx
""")  # fmt: skip
def replace(
    plugins: PluginOptions,
    config: Path | None = option(
        "--config", "FILE", "File with the places, from 'plugin match'  [default: config.yaml beside MODEL].",
        default=None, group=FILES),
    output: Path | None = option(
        "--output -o", "OUT", "ONNX file to write  [default: replaced.onnx beside MODEL].", default=None,
        writes=Place.FILE, group=FILES),
    *,
    as_json: bool,
) -> None:  # fmt: skip
    """Write MODEL with nodes of plugins in the places that plugin match wrote down."""
    from tensortriage.cli.surgeon.show import show
    from tensortriage.workflows.edits.plugins import read_matches, replace_matches
    from tensortriage.workflows.edits.requests import Source, Target

    found = read_matches(config or plugins.model.with_name("config.yaml"))
    target = Target(output or plugins.model.with_name("replaced.onnx"))
    source = Source(plugins.model, plugins.external_data_dir)
    result = replace_matches(source, target, plugins.plugin_dir, found, infer_shapes=plugins.infer_shapes)
    show(result, as_json=as_json)


def found_in(choice: PluginChoice) -> "dict[str, PluginMatch | None]":
    """Return what each plugin matches.

    Raises:
        click.UsageError: When plugins are named both ways.
    """
    from tensortriage.workflows.edits.plugins import find_matches
    from tensortriage.workflows.edits.requests import Source

    if choice.include and choice.exclude:
        raise click.UsageError("--include and --exclude contradict each other")
    return find_matches(
        Source(choice.model, choice.external_data_dir),
        choice.plugin_dir,
        include=choice.include,
        exclude=choice.exclude,
        infer_shapes=choice.infer_shapes,
    )


def tell(found: "dict[str, PluginMatch | None]", *, as_json: bool, path: Path | None = None) -> None:
    """Say how often each plugin matched, and where that is written down."""
    counts = {name: len(match.instances) if match else 0 for name, match in found.items()}
    if as_json:
        document = {"format": "tensortriage.plugins/1", "matches": counts, "output": str(path) if path else None}
        print_document(json.dumps(document, indent=1))
    elif click.get_current_context().meta.get(COMPATIBLE):
        _logger.info("the following plugins matched:")
        _logger.info("%s", counts)
    else:
        for name, number in counts.items():
            click.echo(f"{printable(name)}: {count(number, 'place')}")
    if path is not None and not as_json:
        click.echo(f"written: {path}")
