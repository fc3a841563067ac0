"""Progress and results of ``triage steps``."""

import contextlib
import sys
from typing import NoReturn

import click

from tensortriage.sdk import StepTeller, print_document, printable
from tensortriage_steps.feeds.carried import Carry
from tensortriage_steps.feeds.step_feeds import StepFeeds
from tensortriage_steps.request import StepsRequest
from tensortriage_steps.shown import print_report
from tensortriage_steps.walk import walk

MOST_PAIRS = 2


def show(request: StepsRequest, *, as_json: bool) -> NoReturn:
    """Run the steps, show the findings, and exit with their code."""
    teller = StepTeller(err=as_json)
    title = f"reference {request.reference}, target {request.target}, model {request.model}"
    click.echo(printable(title), err=as_json)
    with contextlib.closing(teller):
        report = walk(
            request,
            say=teller.progress,
            told=lambda feeds: teller.tell(_carried(feeds)),
            listener=teller,
        )
    if as_json:
        from tensortriage.sdk import to_json

        print_document(to_json(report))
    else:
        click.echo()
        print_report(report, request.case)
    sys.exit(report.exit_code)


def _carried(feeds: StepFeeds) -> str:
    """Return a line about the states and inputs that lead from one step to the next."""
    roles = feeds.roles
    pairs = ", ".join(_pair(pair) for pair in roles.carry[:MOST_PAIRS])
    more = f" and {len(roles.carry) - MOST_PAIRS} more" if len(roles.carry) > MOST_PAIRS else ""
    nothing = "carried: the outputs of the script" if feeds.keeps_states else "carried: nothing"
    text = f"carried: {pairs}{more}" if roles.carry else nothing
    if roles.generates:
        way = "every step gets the whole sequence" if roles.regrows else f"'{roles.tokens}' gets the next token"
        text += f"; {way}, the largest of '{roles.logits}'"
    if feeds.left:
        left = ", ".join(map(_pair, feeds.left[:MOST_PAIRS]))
        text += f"; not carried, since no names match, but of the same type and shape: {left} (--carry)"
    return f"{text}; {feeds.steps} steps"


def _pair(pair: Carry) -> str:
    return f"{pair.output} -> {pair.input}"
