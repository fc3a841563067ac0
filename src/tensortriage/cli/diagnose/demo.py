"""``triage demo``: the main job on a bundled model and real data."""

from pathlib import Path

import click

from tensortriage.cli.options import WRITTEN_CASE, GuideCommand, common, option


@click.command(cls=GuideCommand)
@option(
    "--case",
    "-o",
    "case",
    type=WRITTEN_CASE,
    default="triage-case-demo",
    show_default=True,
    metavar="DIR",
    heading="Result",
    help="Directory of the case.",
)
@common
def demo(case: Path, as_json: bool) -> None:
    """Diagnose a bundled transformer that reads digits well in fp32 and fails in fp16, on real digits.

    The network was trained on scikit-learn's digits; fp16 is emulated, so no GPU is needed.
    """
    import os
    import sys

    from tensortriage.cli.diagnose.blas_threads import few_blas_threads
    from tensortriage.cli.diagnose.cycle_collector import rare_collections

    with few_blas_threads(), rare_collections():
        from tensortriage.cli.diagnose.request import diagnose_and_show
    from tensortriage.demo import demo_inputs, demo_model
    from tensortriage.runs.feeds.feed_request import FeedRequest
    from tensortriage.workflows.diagnosis.diagnose import DiagnoseRequest

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
