"""``triage check consistency``: does an engine contradict itself? No reference is asked."""

import contextlib
import sys
from pathlib import Path
from typing import Unpack

import click

from tensortriage.cli.documents import print_document
from tensortriage.cli.option_values import ConsistencyValues
from tensortriage.cli.options import (
    DATA_LISTS,
    READ,
    GuideCommand,
    common,
    data_options,
    external_data_option,
    limit_options,
    option,
    together,
)

EPILOG = """\b
Examples:
  triage check consistency model.onnx --target openvino --inputs real.npz
  triage check consistency model.onnx --target tensorrt:precision=fp16 --rows 16
  triage check consistency model.onnx --target script:my_engine.py --json

\b
Exit codes: 0 the engine is consistent; 1 it is not; 4 nothing about rows could be tested: the model takes one row,
or mixes rows itself.
"""
ENGINE, ROWS = "Engine", "Rows"


options = together(
    option("--target", "-t", metavar="ENGINE", heading=ENGINE,
           help="Engine under suspicion, NAME[:key=value,...]."),
    option("--no-streams", is_flag=True, heading=ENGINE, rare=True, help="Do not run two sessions at the same time."),
    external_data_option(ENGINE),
    option("--rows", type=click.IntRange(2), metavar="N", heading=ROWS,
           help="Number of rows in a batch  [default: 8, or that of the first feed if larger]."),
    option("--batch-dimension", default="", metavar="NAME", heading=ROWS,
           help="Dynamic dimension that is the batch  [default: the first axis]."),
)  # fmt: skip
"""The options of ``check consistency``."""


@click.command(cls=GuideCommand, value_lists=DATA_LISTS, epilog=EPILOG)
@click.argument("model", type=READ)
@options
@data_options
@limit_options
@common
def check_consistency(model: Path, target: str | None, as_json: bool, **given: Unpack[ConsistencyValues]) -> None:
    """Find out whether an engine contradicts itself on MODEL: equal rows must give equal results.

    Tried are the same row several times in a batch, rows in other places, batches of other sizes, rows of padding,
    positions that a mask hides, and the same feed again and in two streams. The engine need not keep what MODEL itself
    does not keep.
    """
    from tensortriage.cli.progress import Teller
    from tensortriage.cli.requests import feed_request, limits_of
    from tensortriage.report.terminal.consistency_text import answer_lines, closing_line
    from tensortriage.workflows import consistency

    if not target:
        from tensortriage.cli.diagnose.request import no_target

        raise no_target(model, "check consistency")
    limits = limits_of(given["timeout"], given["memory_limit"])
    request = consistency.ConsistencyRequest(
        model=model,
        target=target,
        feeding=feed_request(given, most=None, limits=limits),
        rows=given["rows"],
        batch_dimension=given["batch_dimension"],
        streams=not given["no_streams"],
        limits=limits,
        external_data_dir=given["external_data_dir"],
    )
    with contextlib.closing(Teller(err=as_json)) as teller:
        report = consistency.check_consistency(request, say=teller.progress)
    if as_json:
        from tensortriage.values.serial import to_json

        print_document(to_json(report))
    else:
        for line, bad in answer_lines(report.answers):
            click.echo(click.style(line, fg="red") if bad else line)
        click.echo(closing_line(report.answers, report.unasked, rows=report.rows, made_up=report.made_up_rows))
    sys.exit(report.exit_code)
