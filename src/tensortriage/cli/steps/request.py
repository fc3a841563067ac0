"""What ``steps`` makes of its options, and how it shows what was found."""

import contextlib
import sys
from pathlib import Path
from typing import NoReturn

import click

from tensortriage.cli.diagnose.request import no_target
from tensortriage.cli.documents import print_document
from tensortriage.cli.option_values import StepsValues
from tensortriage.cli.progress import StepTeller
from tensortriage.cli.requests import feed_request, limits_of
from tensortriage.cli.steps.shown import print_report
from tensortriage.errors import UsageError
from tensortriage.inputs.steps.carried import Carry
from tensortriage.values.printable import printable
from tensortriage.workflows.steps.step_feeds import StepFeeds
from tensortriage.workflows.steps.steps_request import StepsRequest
from tensortriage.workflows.steps.walk import walk

MOST_PAIRS = 2


def no_target_here(model: Path) -> UsageError:
    """Return the error for a missing --target."""
    return no_target(model, "steps")


def request_of(model: Path, target: str, given: StepsValues) -> StepsRequest:
    """Return the request that a command line stands for."""
    limits = limits_of(given["timeout"], given["memory_limit"])
    return StepsRequest(
        model=model,
        target=target,
        reference=given["reference"],
        feeding=feed_request(given, most=given["steps"], limits=limits),
        steps=given["steps"],
        carry=given["carry"],
        logits=given["logits"],
        between=given["between"],
        drift=not given["no_drift"],
        free_running=given["free_running"],
        self_check=given["self_check"],
        diagnosis=not given["no_diagnosis"],
        case=given["case"],
        limits=limits,
        external_data_dir=given["external_data_dir"],
    )


def show(request: StepsRequest, *, as_json: bool) -> NoReturn:
    """Run the steps, tell what is found, and exit with the code of the finding."""
    teller = StepTeller(err=as_json)
    against = f"target {request.target}, held against itself"
    if not request.self_check:
        against = f"reference {request.reference}, target {request.target}"
    click.echo(printable(f"{against}, model {request.model}"), err=as_json)
    with contextlib.closing(teller):
        report = walk(
            request,
            say=teller.progress,
            told=lambda feeds: teller.tell(_carried(feeds)),
            listener=teller,
        )
    if as_json:
        from tensortriage.values.serial import to_json

        print_document(to_json(report))
    else:
        click.echo()
        print_report(report, request.case)
    sys.exit(report.exit_code)


def _carried(feeds: StepFeeds) -> str:
    """Say what leads from one step to the next."""
    roles = feeds.roles
    pairs = ", ".join(_pair(pair) for pair in roles.carry[:MOST_PAIRS])
    more = f" and {len(roles.carry) - MOST_PAIRS} more" if len(roles.carry) > MOST_PAIRS else ""
    nothing = "carried: what the script makes" if feeds.keeps_states else "carried: nothing"
    text = f"carried: {pairs}{more}" if roles.carry else nothing
    if roles.generates:
        way = "every step gets the whole sequence" if roles.regrows else f"'{roles.tokens}' gets the next token"
        text += f"; {way}, the largest of '{roles.logits}'"
    if feeds.left:
        left = ", ".join(map(_pair, feeds.left[:MOST_PAIRS]))
        text += f"; not carried, for no name says so, but of one type and shape: {left} (--carry)"
    return f"{text}; {feeds.steps} steps"


def _pair(pair: Carry) -> str:
    return f"{pair.output} -> {pair.input}"
