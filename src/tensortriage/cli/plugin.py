"""``triage plugin``: finds where patterns of TensorRT plugins match a model, and puts the plugins there."""

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from tensortriage.cli.compatible import KEY as COMPATIBLE
from tensortriage.cli.documents import print_document
from tensortriage.cli.options import (
    READ,
    WRITTEN_FILE,
    GuideCommand,
    accepted,
    common,
    external_data_option,
    model_type_option,
    option,
    own_inference,
    together,
)
from tensortriage.cli.surgeon.edit_values import PluginChoiceValues, PluginMatchValues, PluginReplaceValues
from tensortriage.values.printable import printable
from tensortriage.values.text import count

if TYPE_CHECKING:
    from tensortriage.model.plugin_patterns import PluginMatch

PLUGINS, FILES, DATA = "Plugins", "Files", "Data"
_DATA_LISTS = ("--input-shapes", "--inputs", "--load-inputs", "--load-input-data", "--val-range")
LISTS = ("--include", "--exclude", *_DATA_LISTS)
_logger = logging.getLogger(__name__)


model_options = together(
    option("--plugin-dir", type=READ, required=True, metavar="DIR", heading=PLUGINS,
           help="Directory that holds a directory for each plugin, with its pattern.py."),
    external_data_option(FILES),
    model_type_option(FILES),
    option("--shape-inference", "--do-shape-inference", "infer_shapes", is_flag=True, heading=FILES, rare=True,
           help="Let patterns see inferred shapes."),
    own_inference(FILES),
    *(accepted(*names, heading=DATA, text="nothing is run here.", multiple=True, metavar="WORD") for names in (
        ("--input-shapes", "--inputs"), ("--load-inputs", "--load-input-data"), ("--val-range",), ("--seed",),
        ("--iterations", "--iters"), ("--data-loader-backend-module",), ("--data-loader-script",),
    )),
)  # fmt: skip
"""What is said of the model and of the plugins."""
choice_options = together(
    option("--include", multiple=True, metavar="NAME...", heading=PLUGINS, help="Use only these plugins."),
    option("--exclude", multiple=True, metavar="NAME...", heading=PLUGINS, help="Plugins to leave out."),
)
"""Which plugins are asked."""


@click.command("list", cls=GuideCommand, value_lists=LISTS, epilog="""\b
Examples:
  triage plugin list model.onnx --plugin-dir plugins
""")  # fmt: skip
@click.argument("model", type=READ)
@model_options
@choice_options
@common
def list_plugins(model: Path, as_json: bool, **given: Unpack[PluginChoiceValues]) -> None:
    """Count the places in MODEL that each plugin can replace."""
    tell(found_in(model, given), as_json=as_json)


@click.command("match", cls=GuideCommand, value_lists=LISTS, epilog="""\b
Examples:
  triage plugin match model.onnx --plugin-dir plugins -o matches.yaml
""")  # fmt: skip
@click.argument("model", type=READ)
@model_options
@choice_options
@option("--output", "-o", type=WRITTEN_FILE, metavar="FILE", heading=FILES,
        help="File for the places  [default: config.yaml beside MODEL].")  # fmt: skip
@common
def match(model: Path, as_json: bool, **given: Unpack[PluginMatchValues]) -> None:
    """Write down the places in MODEL that each plugin can replace, to be reviewed or edited."""
    from tensortriage.workflows.edits.plugins import write_matches

    found = found_in(model, given)
    path = given["output"] or model.with_name("config.yaml")
    write_matches(path, [match for match in found.values() if match is not None])
    tell(found, as_json=as_json, path=path)


@click.command("replace", cls=GuideCommand, value_lists=LISTS, epilog="""\b
Examples:
  triage plugin replace model.onnx --plugin-dir plugins --config matches.yaml -o replaced.onnx
""")  # fmt: skip
@click.argument("model", type=READ)
@model_options
@option("--config", type=READ, metavar="FILE", heading=FILES,
        help="File with the places, from 'plugin match'  [default: config.yaml beside MODEL].")  # fmt: skip
@option("--output", "-o", type=WRITTEN_FILE, metavar="OUT", heading=FILES,
        help="ONNX file to write  [default: replaced.onnx beside MODEL].")  # fmt: skip
@common
def replace(model: Path, as_json: bool, **given: Unpack[PluginReplaceValues]) -> None:
    """Write MODEL with nodes of plugins in the places that plugin match wrote down."""
    from tensortriage.cli.surgeon.show import show
    from tensortriage.workflows.edits.edit_pipeline import Source, Target
    from tensortriage.workflows.edits.plugins import read_matches, replace_matches

    found = read_matches(given["config"] or model.with_name("config.yaml"))
    target = Target(given["output"] or model.with_name("replaced.onnx"))
    source = Source(model, given["external_data_dir"])
    result = replace_matches(source, target, given["plugin_dir"], found, infer_shapes=given["infer_shapes"])
    show(result, as_json=as_json)


def found_in(model: Path, given: PluginChoiceValues) -> "dict[str, PluginMatch | None]":
    """Return what each plugin matches.

    Raises:
        click.UsageError: When plugins are named both ways.
    """
    from tensortriage.workflows.edits.edit_pipeline import Source
    from tensortriage.workflows.edits.plugins import find_matches

    if given["include"] and given["exclude"]:
        raise click.UsageError("--include and --exclude contradict each other")
    return find_matches(
        Source(model, given["external_data_dir"]),
        given["plugin_dir"],
        include=given["include"],
        exclude=given["exclude"],
        infer_shapes=given["infer_shapes"],
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
