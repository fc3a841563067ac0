"""``triage demo``: the main job on a bundled model and real data."""

from pathlib import Path

import click

from tensortriage.cli.declared import command
from tensortriage.cli.diagnose.command import import_diagnosis
from tensortriage.runs.options.request_fields import case_field


@command(before=import_diagnosis)
def demo(case: Path = case_field("--case -o", "triage-case-demo", "Directory of the case."), *, as_json: bool) -> None:
    """Diagnose a bundled transformer that reads digits well in fp32 and fails in fp16, on real digits.

    The network was trained on scikit-learn's digits; fp16 is emulated, so no GPU is needed.
    """
    import os
    import sys

    from tensortriage.cli.diagnose.answer import diagnose_and_show
    from tensortriage.demo import demo_inputs, demo_model
    from tensortriage.runs.feeds.feed_request import FeedRequest
    from tensortriage.workflows.requests import DiagnoseRequest

    model, inputs = (Path(os.path.relpath(path)) for path in (demo_model(), demo_inputs()))
    request = DiagnoseRequest(
        model=model, target="emulate:precision=fp16", feeding=FeedRequest(paths=(str(inputs),)), case=case
    )
    click.echo(f"$ triage diagnose {model} --target {request.target} --inputs {inputs} --case {case}\n", err=as_json)
    try:
        diagnose_and_show(request, as_json=as_json)
    except SystemExit as end:
        # The demo is a success when it finds the fault it was made to show.
        sys.exit(0 if end.code == 1 else end.code)
