"""What a command of another package is written with, beside `tensortriage.api`: names that stay.

What declares a command is there at once, for its help is made of it; what it works with is loaded on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tensortriage.cli.declared import command as command
from tensortriage.cli.dialect import Dialect as Dialect
from tensortriage.cli.dialect import speak as speak
from tensortriage.cli.documents import answer as answer
from tensortriage.cli.lazy import LazyGroup as LazyGroup
from tensortriage.cli.logs import FINISHED as FINISHED
from tensortriage.cli.logs import given_to as given_to
from tensortriage.engines.spec import EngineSpec as EngineSpec
from tensortriage.errors import DataError as DataError
from tensortriage.errors import EngineMissing as EngineMissing
from tensortriage.errors import ModelError as ModelError
from tensortriage.errors import StoreError as StoreError
from tensortriage.errors import TriageError as TriageError
from tensortriage.errors import UsageError as UsageError
from tensortriage.errors import WorkerLost as WorkerLost
from tensortriage.errors import did_you_mean as did_you_mean
from tensortriage.runs.elsewhere import NamedCluster as NamedCluster
from tensortriage.runs.elsewhere import OpenedCluster as OpenedCluster
from tensortriage.runs.environment_folder import ENVIRONMENT_NOTE as ENVIRONMENT_NOTE
from tensortriage.runs.environment_folder import environments_folder as environments_folder
from tensortriage.runs.request_fields import MetricOptions as MetricOptions
from tensortriage.runs.request_fields import case_field as case_field
from tensortriage.runs.request_fields import cluster_field as cluster_field
from tensortriage.values.files import read_regular as read_regular
from tensortriage.values.files import write_text as write_text
from tensortriage.values.options import argument as argument
from tensortriage.values.options import flag as flag
from tensortriage.values.options import option as option
from tensortriage.values.options import part as part
from tensortriage.values.options import request as request
from tensortriage.values.output_files import Place as Place
from tensortriage.values.printable import printable as printable
from tensortriage.values.text import count as count
from tensortriage.values.text import duration as duration
from tensortriage.values.text import error_size as error_size
from tensortriage.values.text import magnitude as magnitude
from tensortriage.values.text import parse_bytes as parse_bytes
from tensortriage.values.text import percent as percent
from tensortriage.values.text import shorten as shorten
from tensortriage.values.text import times as times

if TYPE_CHECKING:
    from tensortriage.cli import cli as cli
    from tensortriage.cli import own_words as own_words
    from tensortriage.cli.convert.eight_bits import Conversion as Conversion
    from tensortriage.cli.documents import print_document as print_document
    from tensortriage.cli.progress import Teller as Teller
    from tensortriage.cli.prompt import Reply as Reply
    from tensortriage.cli.prompt import ask as ask
    from tensortriage.compare.comparison import Row as Row
    from tensortriage.compare.judgement.tolerance import PolygraphyTolerance as PolygraphyTolerance
    from tensortriage.engines.base import Availability as Availability
    from tensortriage.engines.process.gpus import Gpus as Gpus
    from tensortriage.engines.process.gpus import visible_gpus as visible_gpus
    from tensortriage.engines.registry import availabilities as availabilities
    from tensortriage.model.inspect.outline import ValueFacts as ValueFacts
    from tensortriage.model.inspect.outline import declared_value as declared_value
    from tensortriage.model.inspect.outline import stored_tensor as stored_tensor
    from tensortriage.model.io.load import read_model as read_model
    from tensortriage.model.io.parse import read_message as read_message
    from tensortriage.model.lint.finding import LintFinding as LintFinding
    from tensortriage.model.lint.finding import Severity as Severity
    from tensortriage.model.shape_inference.value_specs import value_specs as value_specs
    from tensortriage.model.transforms.bound_sizes import unbounded_sizes as unbounded_sizes
    from tensortriage.report.html_page import page as page
    from tensortriage.report.tables import Column as Column
    from tensortriage.report.tables import Looks as Looks
    from tensortriage.report.tables import Table as Table
    from tensortriage.report.tables import TableCell as TableCell
    from tensortriage.runs.case import Case as Case
    from tensortriage.runs.case import versions as versions
    from tensortriage.runs.check_cache import digest as digest
    from tensortriage.runs.commands.command_fingerprint import file_digests as file_digests
    from tensortriage.runs.commands.process import CommandLine as CommandLine
    from tensortriage.runs.commands.process import Finished as Finished
    from tensortriage.runs.commands.process import Processes as Processes
    from tensortriage.runs.commands.process import RunsCommands as RunsCommands
    from tensortriage.runs.commands.process import search_is_ending as search_is_ending
    from tensortriage.runs.engine_specs import resolved_engine as resolved_engine
    from tensortriage.search.execution.executors import Executor as Executor
    from tensortriage.search.execution.executors import OracleAnswer as OracleAnswer
    from tensortriage.search.execution.executors import OracleQuestion as OracleQuestion
    from tensortriage.search.problem import CandidateOutcome as CandidateOutcome
    from tensortriage.search.problem import Oracle as Oracle
    from tensortriage.search.problem import OracleVerdict as OracleVerdict
    from tensortriage.values.serial import dump as dump
    from tensortriage.values.serial import load as load
    from tensortriage.workflows.common.output_selection import OutputChoice as OutputChoice
    from tensortriage.workflows.comparison.participants import Saved as Saved
    from tensortriage.workflows.comparison.rejudge import Rejudged as Rejudged
    from tensortriage.workflows.comparison.rejudge import RejudgedRow as RejudgedRow
    from tensortriage.workflows.edits.edit_pipeline import model_to_edit as model_to_edit
    from tensortriage.workflows.edits.requests import Verify as Verify
    from tensortriage.workflows.engines.trial import try_out as try_out
    from tensortriage.workflows.lint import LintReport as LintReport

_HOMES = {
    "Availability": "engines.base",
    "CandidateOutcome": "search.problem",
    "Case": "runs.case",
    "Column": "report.tables",
    "CommandLine": "runs.commands.process",
    "Conversion": "cli.convert.eight_bits",
    "Executor": "search.execution.executors",
    "Finished": "runs.commands.process",
    "Gpus": "engines.process.gpus",
    "LintFinding": "model.lint.finding",
    "LintReport": "workflows.lint",
    "Looks": "report.tables",
    "Oracle": "search.problem",
    "OracleAnswer": "search.execution.executors",
    "OracleQuestion": "search.execution.executors",
    "OracleVerdict": "search.problem",
    "OutputChoice": "workflows.common.output_selection",
    "PolygraphyTolerance": "compare.judgement.tolerance",
    "Processes": "runs.commands.process",
    "Rejudged": "workflows.comparison.rejudge",
    "RejudgedRow": "workflows.comparison.rejudge",
    "Reply": "cli.prompt",
    "Row": "compare.comparison",
    "RunsCommands": "runs.commands.process",
    "Saved": "workflows.comparison.participants",
    "Severity": "model.lint.finding",
    "Table": "report.tables",
    "TableCell": "report.tables",
    "Teller": "cli.progress",
    "ValueFacts": "model.inspect.outline",
    "Verify": "workflows.edits.requests",
    "ask": "cli.prompt",
    "availabilities": "engines.registry",
    "cli": "cli",
    "declared_value": "model.inspect.outline",
    "digest": "runs.check_cache",
    "dump": "values.serial",
    "file_digests": "runs.commands.command_fingerprint",
    "load": "values.serial",
    "model_to_edit": "workflows.edits.edit_pipeline",
    "own_words": "cli",
    "page": "report.html_page",
    "print_document": "cli.documents",
    "read_message": "model.io.parse",
    "read_model": "model.io.load",
    "resolved_engine": "runs.engine_specs",
    "search_is_ending": "runs.commands.process",
    "stored_tensor": "model.inspect.outline",
    "try_out": "workflows.engines.trial",
    "unbounded_sizes": "model.transforms.bound_sizes",
    "value_specs": "model.shape_inference.value_specs",
    "versions": "runs.case",
    "visible_gpus": "engines.process.gpus",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"tensortriage.{_HOMES[name]}"), name)
