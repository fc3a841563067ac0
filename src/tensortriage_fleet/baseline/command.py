"""``triage baseline``: results of models are stored in files, and checked against them later."""

import contextlib
import sys

import click

from tensortriage.sdk import CommandGroup, answer, command, flag, parse_bytes
from tensortriage_fleet.baseline.request import BaselineRequest, MeasureRequest

EXIT_CODES = """
\b
Exit codes: 0 unchanged; 1 something changed; 2 bad input; 3 an engine or a cluster cannot be used here; 4 an output
changed, and whether that is healthy is unknown.
"""


@click.group(cls=CommandGroup)
def baseline() -> None:
    """Save the results of a folder of models, and check them later, as in CI."""


@command(short_help="Save outputs, verdicts and limits.", epilog=f"""\b
Examples:
  triage baseline save models --targets onnxruntime openvino
  triage baseline save model.onnx --targets openvino:precision=fp16 --inputs real.npz
{EXIT_CODES}""")  # fmt: skip
def save(request: BaselineRequest, as_json: bool) -> None:
    """Measure and diagnose models on engines, and save the results in files to commit.

    A file for each model has figures of its outputs, their limits on a healthy engine, verdict, culprits, versions, and
    digests of model, data and engine. An existing baseline is checked, and left as it is.
    """
    _run("save", request, as_json=as_json)


@command(short_help="Has anything changed?", epilog=f"""\b
Examples:
  triage baseline check
  triage baseline check models --targets onnxruntime --fail output verdict model data version
{EXIT_CODES}""")  # fmt: skip
def check(request: BaselineRequest, as_json: bool) -> None:
    """Check models on engines against their baselines.

    An output may be as far from the model's own as healthy engines are, whatever runs, threads, machines and releases
    make of it. One that is further off is diagnosed. The report names the change: the model, its data, the engine, a
    version, an output with its op, or the verdict.
    """
    _run("check", request, as_json=as_json)


@command(short_help="Accept the changes.", epilog=f"""\b
Examples:
  triage baseline update
  triage baseline update models/cnn.onnx --yes
{EXIT_CODES}""")  # fmt: skip
def update(
    request: BaselineRequest,
    yes: bool = flag("--yes --accept", "Write the baseline; without it, show the changes that would be accepted."),
    *,
    as_json: bool,
) -> None:
    """Show the changes that a check finds, and with --yes accept them."""
    _run("update", request, as_json=as_json, accept=yes)


@command(hidden=True)
def measure(request: MeasureRequest, as_json: bool) -> None:
    """Measure a model on a target; ``save`` and ``check`` run this in separate processes."""
    from tensortriage_fleet.baseline.measure import measure as measured
    from tensortriage_fleet.baseline.measure import measure_envelope

    found = measure_envelope(request) if request.envelope else measured(request)
    answer(found, [found.problem or "measured"], as_json=as_json)
    sys.exit(found.exit_code)


def _run(word: str, request: BaselineRequest, *, as_json: bool, accept: bool = False) -> None:
    from tensortriage.sdk import Teller
    from tensortriage_fleet.baseline.study import run_baselines
    from tensortriage_fleet.baseline.text import closing_lines, entry_lines

    parse_bytes(request.memory_limit)
    with contextlib.closing(Teller(err=as_json)) as teller:
        result = run_baselines(word, request, accept=accept, tell=teller.progress)
        teller.clear()
        for entry in result.entries:
            for line in entry_lines(entry, str(request.case)):
                teller.tell(line)
        for line in closing_lines(result):
            teller.tell(line)
    if as_json:
        answer(result, (), as_json=True)
    sys.exit(result.exit_code)


for each in (save, check, update, measure):
    baseline.add_command(each)
