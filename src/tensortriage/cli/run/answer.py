"""Turns a command line of ``triage run`` into a comparison, and its result into output, files and exit code."""

import contextlib
import dataclasses
import itertools
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import click

from tensortriage.cli.dialect import Dialect, dialect
from tensortriage.cli.documents import print_document
from tensortriage.cli.progress import Teller
from tensortriage.cli.run.model_file import model_to_run
from tensortriage.cli.run.options import RunOptions
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import UsageError
from tensortriage.inputs.files.data_file import Kind
from tensortriage.report.run_result import CompareResult
from tensortriage.report.terminal import run_text
from tensortriage.report.terminal.lines import show, width
from tensortriage.runs.engine_specs import DEFAULT_REFERENCE, usable
from tensortriage.values.printable import printable
from tensortriage.values.registered import registered
from tensortriage.values.serial import to_json
from tensortriage.values.text import count
from tensortriage.workflows.common.output_selection import joined
from tensortriage.workflows.comparison.compare import compare
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage.workflows.comparison.compared_engines import build_engines
from tensortriage.workflows.comparison.participants import Saved, numbered
from tensortriage.workflows.engines.calibration_feeds import with_calibration
from tensortriage.workflows.engines.source_network import network_behind
from tensortriage.workflows.engines.tactic_files import with_tactics


def run_and_show(given: RunOptions, *, as_json: bool) -> NoReturn:
    """Run a comparison and exit with its code."""
    context = click.get_current_context()
    spoken = dialect()
    named = bool(given.runners or given.targets or given.reference or given.load_outputs)
    if not spoken.asks_for_run(context.meta["words"], named=named):
        sys.exit(0)
    model = given.request.model
    if model is None:
        check_saved_alone(given, context)
    request = request_of(given, spoken)
    if given.judgement.check_average:
        from tensortriage.cli.run import averages  # with the modules of saved accuracies, only when asked for

        averages.check(request.tolerances)
    check_places(request, given)
    names = spoken.runner_names(participants(request))
    if not names:
        click.echo(printable(headline(request)), err=as_json)
    with tempfile.TemporaryDirectory(prefix="triage-") as folder:
        if model is not None:
            request = prepared(request, model, given, Path(folder))
            if request.feeding.iterations == 0:
                only_build(request, as_json=as_json)
        result = recorded(request, given, names)
        saved_worst = 0
        if given.save_worst:
            from tensortriage.workflows.comparison.worst_feeds import save_worst

            saved_worst = save_worst(request, result, given.save_worst)
    if given.judgement.check_average:
        averages.show_and_exit(result, request.tolerances, names, as_json=as_json)
    if as_json:
        print_document(run_text.to_document(result))
    elif not spoken.tell_comparison(result, names, validated=request.validate):
        show(run_text.comparison_lines(result, width(), given.shown))
    for line in tell_written(result, given):
        click.echo(printable(line), err=as_json)
    if model is not None and given.save_worst:
        for line in tell_worst(request, model, given.save_worst, saved_worst):
            click.echo(printable(line), err=as_json)
    if model is not None and not names and not result.passed:
        ran = all(outcome.ok for outcome in result.outcomes.values())  # what crashed is not run again
        checks = (point.load() for point in registered("tensortriage.after_run").values()) if ran else ()
        more = (ask(request, model, given.load_outputs) for ask in checks)
        for line in itertools.chain(tell_network(request, model), *more):
            click.echo(printable(line), err=as_json)
    sys.exit(result.exit_code)


def request_of(given: RunOptions, spoken: Dialect) -> CompareRequest:
    """Return the comparison that the options ask for, with engines that can be used here."""
    limits = given.request.limits
    saved = saved_outputs(given.load_outputs)
    reference, targets = engines_of(given, saved)
    shorthands = [runner(name, given) for name in given.runners]
    if not (given.reference or given.targets) and (ordered := spoken.ordered(shorthands, saved)) is not None:
        reference, targets, saved = ordered
    chosen = given.request.outputs
    return dataclasses.replace(
        given.request,
        reference=usable(str(reference), limits=limits) if reference else None,
        targets=[usable(str(spec), limits=limits) for spec in targets],
        saved=saved,
        outputs=dataclasses.replace(
            chosen,
            mark=joined(chosen.mark, given.marked.outputs, given.marked.debug),
            exclude=joined(chosen.exclude, given.marked.excluded),
            strict=spoken.strict,
        ),
        tolerances=given.judgement.tolerances(limits) or spoken.tolerances(),
        strict=spoken.strict,
    )


def saved_outputs(paths: Sequence[Path]) -> list[Saved]:
    """Return saved outputs."""
    if not paths:
        return []
    from tensortriage.workflows.comparison.saved_results import load_every  # with the readers of files

    return load_every(paths)


def check_saved_alone(given: RunOptions, context: click.Context) -> None:
    """Refuse options that need a model, when none is named.

    Raises:
        click.UsageError: When something is to be run, or no saved outputs are named.
        UsageError: For an option that needs the model (``option-needs-model``).
    """
    if not given.load_outputs or given.runners or given.targets or given.reference:
        raise click.UsageError("Missing argument 'MODEL'", context)
    needing = {
        "--save-inputs": given.save_inputs, "--save-input-blob": given.save_input_blob, "--save-onnx": given.save_onnx,
        "--fp-to-fp16": given.to_fp16, "--target-model": given.request.target_model,
        "--metric": given.request.metric,
    }  # fmt: skip
    for name, value in needing.items():
        if value:
            raise UsageError(
                f"{name} needs the model, but only saved outputs are given",
                slug="option-needs-model", cure="name the MODEL, or leave the option out",
            )  # fmt: skip


def prepared(request: CompareRequest, model: Path, given: RunOptions, folder: Path) -> CompareRequest:
    """Return the request with the model to run, written where requested, and with targets that can be built."""
    chosen = model_to_run(model, given, request.outputs, folder)
    source = given.request.target_model or chosen
    feeding = request.feeding
    if feeding.iterations == 0:
        return dataclasses.replace(request, model=chosen)
    targets = [with_tactics(with_calibration(spec, source, feeding, folder), folder) for spec in request.targets]
    return dataclasses.replace(request, model=chosen, targets=targets)


def only_build(request: CompareRequest, *, as_json: bool) -> NoReturn:
    """Build the engines, report it and exit: with no iteration there is nothing to run, to save or to compare."""
    tally = build_engines(request)
    if as_json:
        print_document(to_json(tally))
    built = count(tally.builds, "engine")
    click.echo(f"built {built} in {tally.build_seconds:.1f} s; nothing was run: no iteration", err=as_json)
    sys.exit(0)


def check_places(request: CompareRequest, given: RunOptions) -> None:
    """Refuse output files that cannot hold the data to save.

    Raises:
        UsageError: For a file that cannot hold the data, or a file of worst samples without a metric.
    """
    if not (given.save_inputs or given.save_worst or given.save_outputs):
        return
    from tensortriage.inputs.files.save_data import check_place

    if given.save_inputs:
        check_place(given.save_inputs, [""], kind=Kind.INPUTS)
    if given.save_worst:
        if request.metric is None:
            raise UsageError(
                "--save-worst without --metric",
                slug="option-needs-another",
                cure="name the metric: --metric",
            )
        check_place(given.save_worst, [""], kind=Kind.INPUTS)
    if given.save_outputs:
        live = [spec for spec in (request.reference, *request.targets) if spec is not None]
        names = [*(name for name, _ in numbered(live)), *(saved.name for saved in request.saved)]
        check_place(given.save_outputs, names, kind=Kind.OUTPUTS)


def participants(request: CompareRequest) -> list[str]:
    """Return the names of runners: the engines as on the command line, then loaded outputs."""
    engines = [*([request.reference] if request.reference else []), *request.targets]
    live = [name for name, _ in numbered(engines)]
    live = [*live[1:], live[0]] if request.reference else live
    return [*live, *(saved.name for saved in request.saved)]


def recorded(request: CompareRequest, given: RunOptions, names: Mapping[str, str]) -> CompareResult:
    """Compare, and write the requested files.

    Args:
        request: The comparison.
        given: The options, for the files.
        names: How participants are called in files, in their order there, when not as here.
    """
    if given.save_inputs or given.save_input_blob or given.save_outputs:
        result = saved_too(request, given, names)
    else:
        with contextlib.closing(Teller(err=True)) as teller:
            result = compare(request, say=teller.progress)
    if given.save_accuracy_results:
        from tensortriage.inputs.files.accuracy_results import write_accuracy
        from tensortriage.workflows.comparison.saved_accuracy import accuracy_of, as_judged, averaged

        found = as_judged(result, request.tolerances, names) if names else accuracy_of(result)
        write_accuracy(given.save_accuracy_results, averaged(found) if given.judgement.check_average else found)
    return result


def saved_too(request: CompareRequest, given: RunOptions, names: Mapping[str, str]) -> CompareResult:
    """Compare, and write the requested files of inputs and outputs; arguments as of `recorded`."""
    from tensortriage.workflows.comparison.saved_results import Recorder

    with tempfile.TemporaryDirectory(prefix="triage-") as folder:
        recorder = Recorder(Path(folder))
        with contextlib.closing(Teller(err=True)) as teller:
            result = compare(
                request,
                record=recorder.outputs if given.save_outputs else None,
                on_feed=recorder.feed if given.save_inputs or given.save_input_blob else None,
                say=teller.progress,
            )
        if given.save_inputs:
            recorder.save_inputs(given.save_inputs)
        if given.save_input_blob:
            recorder.save_blobs(given.save_input_blob)
        if given.save_outputs:
            # There, what was loaded is not saved again.
            loaded = {saved.name for saved in request.saved} if names else set()
            if request.model is not None or not loaded:
                recorder.save_outputs(given.save_outputs, names, without=loaded)
    return result


def tell_written(result: CompareResult, given: RunOptions) -> Iterator[str]:
    """Yield the files that were written, with their content."""
    feeds = count(len(result.feeds), "feed")
    for path, what in (
        (given.save_inputs, f"inputs of {feeds}"),
        (given.save_input_blob, f"inputs of {feeds}, as bytes"),
        (given.save_outputs, f"outputs on {feeds}"),
        (given.save_accuracy_results, "figures of the comparison"),
    ):
        if path and path.exists():
            yield f"wrote {path}: {what}"


def tell_worst(request: CompareRequest, model: Path, path: Path, saved: int) -> Iterator[str]:
    """Yield the saved worst feeds, and the commands that look into them."""
    if not saved:
        yield f"no sample is known to be worse by the metric: {path} was not written"
        return
    yield f"worst by the metric: {count(saved, 'sample')}, saved to {path}"
    for target in request.targets:
        words = ["triage", "diagnose", str(model), "--target", str(target), "--inputs", str(path)]
        if request.reference is not None and str(request.reference) != DEFAULT_REFERENCE:
            words += ["--reference", str(request.reference)]
        yield f"  next: {shlex.join(words)}"


def tell_network(request: CompareRequest, model: Path) -> Iterator[str]:
    """Yield the command that separates a fault of the export from the engine's, where the reference is a network."""
    network = network_behind(request.reference)
    if network is None:
        return
    yield "the reference is the network itself: the exporter may be wrong, or the engine, or how the two are compared"
    for target in request.targets:
        words = ["triage", "diagnose", str(model), "--torch", str(network).removeprefix("torch:")]
        inputs = ["--inputs", *map(str, request.feeding.paths)] if request.feeding.paths else []
        yield f"  next: {shlex.join([*words, '--target', str(target), *inputs])}"


def engines_of(given: RunOptions, saved: Sequence[Saved]) -> tuple[EngineSpec | None, list[EngineSpec]]:
    """Return the reference engine (None when saved results are the reference, or nothing is compared) and the targets.

    Of Polygraphy-style runners alone ``--onnxrt`` is the reference, else the last one named.

    Raises:
        UsageError: For a flag of a runner that is not named (``flag-without-runner``), or a malformed spec.
    """
    flag = given.tensorrt.any_given()
    if flag and "tensorrt" not in given.runners:
        raise UsageError(
            f"{flag} is for the runner --trt, which is not among the engines", slug="flag-without-runner",
            cure="add --trt, or put it in the engine's spec: --target tensorrt:precision=fp16,opt_level=3",
        )  # fmt: skip
    runners = [runner(name, given) for name in given.runners]
    named = [EngineSpec.parse(text) for text in given.targets]
    if given.reference:
        return EngineSpec.parse(given.reference), [*runners, *named]
    if saved:
        return None, [*runners, *named]
    if named:
        first = next((spec for spec in runners if spec.name == "onnxruntime"), None)
        if first is None:
            return EngineSpec.parse(DEFAULT_REFERENCE), [*runners, *named]
        return first, [*(spec for spec in runners if spec is not first), *named]
    if len(runners) < 2:
        return None, runners
    onnxrt = [number for number, spec in enumerate(runners) if spec.name == "onnxruntime"]
    number = onnxrt[-1] if onnxrt else len(runners) - 1
    return runners[number], [spec for place, spec in enumerate(runners) if place != number]


def runner(name: str, given: RunOptions) -> EngineSpec:
    """Return the engine of a Polygraphy-style runner flag with the options that apply to it."""
    if name == "onnxruntime":
        return given.onnxruntime.engine()
    return EngineSpec(name, given.tensorrt.words() if name == "tensorrt" else {})


def headline(request: CompareRequest) -> str:
    """Return the first line: the reference and its targets."""
    targets = ", ".join([*(str(spec) for spec in request.targets), *(saved.name for saved in request.saved[1:])])
    if request.reference is not None:
        reference = str(request.reference)
        targets = ", ".join([*(str(spec) for spec in request.targets), *(saved.name for saved in request.saved)])
    elif request.saved:
        reference = request.saved[0].name
    else:
        return f"running {targets or 'no engine'} on {request.model}; nothing to compare with"
    model = f"model {request.model}" if request.model else "no model: judged by tolerances alone"
    return f"reference {reference}, target {targets or 'none'}, {model}"
