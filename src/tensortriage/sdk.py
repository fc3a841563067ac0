"""What commands, feeds and repros of another package are written with, beside `tensortriage.api`: names that stay.

What declares a command is there at once, for its help is made of it; what it works with is loaded on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tensortriage.cli.declared import command as command
from tensortriage.cli.dialect import Dialect as Dialect
from tensortriage.cli.dialect import dialect as dialect
from tensortriage.cli.dialect import speak as speak
from tensortriage.cli.documents import answer as answer
from tensortriage.cli.lazy import CommandGroup as CommandGroup
from tensortriage.cli.lazy import LazyGroup as LazyGroup
from tensortriage.cli.logs import FINISHED as FINISHED
from tensortriage.cli.logs import given_to as given_to
from tensortriage.cli.onnxruntime_options import OnnxRuntimeOptions as OnnxRuntimeOptions
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
from tensortriage.runs.feeds.feed_request import FeedRequest as FeedRequest
from tensortriage.runs.options.check_options import CheckOptions as CheckOptions
from tensortriage.runs.options.check_options import load_replay_field as load_replay_field
from tensortriage.runs.options.check_options import save_replay_field as save_replay_field
from tensortriage.runs.options.request_fields import LimitOptions as LimitOptions
from tensortriage.runs.options.request_fields import MetricOptions as MetricOptions
from tensortriage.runs.options.request_fields import case_field as case_field
from tensortriage.runs.options.request_fields import cluster_field as cluster_field
from tensortriage.runs.options.request_fields import external_data_field as external_data_field
from tensortriage.runs.options.request_fields import fresh_field as fresh_field
from tensortriage.runs.options.request_fields import model_field as model_field
from tensortriage.runs.options.request_fields import reference_field as reference_field
from tensortriage.runs.options.request_fields import target_field as target_field
from tensortriage.search.statistics.repeats import CONFIDENCE as CONFIDENCE
from tensortriage.search.statistics.repeats import RepeatStop as RepeatStop
from tensortriage.search.statistics.repeats import Until as Until
from tensortriage.search.statistics.repeats import parse_until as parse_until
from tensortriage.search.statistics.repeats import wilson as wilson
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
    from tensortriage.builds.study import suspects as suspects
    from tensortriage.builds.study_result import SuspectChoice as SuspectChoice
    from tensortriage.builds.trial import BuildJudgement as BuildJudgement
    from tensortriage.builds.trial import BuildTrial as BuildTrial
    from tensortriage.cli import cli as cli
    from tensortriage.cli import own_words as own_words
    from tensortriage.cli.convert.eight_bits import Conversion as Conversion
    from tensortriage.cli.documents import print_document as print_document
    from tensortriage.cli.inspect.accuracy_table import accuracy_document as accuracy_document
    from tensortriage.cli.inspect.accuracy_table import accuracy_lines as accuracy_lines
    from tensortriage.cli.progress import StepTeller as StepTeller
    from tensortriage.cli.progress import Teller as Teller
    from tensortriage.cli.prompt import Reply as Reply
    from tensortriage.cli.prompt import ask as ask
    from tensortriage.compare.comparison import Row as Row
    from tensortriage.compare.judgement.tolerance import PolygraphyTolerance as PolygraphyTolerance
    from tensortriage.diagnose.consistency.relations import ROWS as ROWS
    from tensortriage.diagnose.consistency.relations import ClaimKind as ClaimKind
    from tensortriage.diagnose.consistency.relations import EqualityClaim as EqualityClaim
    from tensortriage.diagnose.consistency.relations import row_relations as row_relations
    from tensortriage.diagnose.consistency.self_check import ClaimOutcome as ClaimOutcome
    from tensortriage.diagnose.consistency.self_check import SelfAnswer as SelfAnswer
    from tensortriage.diagnose.consistency.self_check import SelfCheck as SelfCheck
    from tensortriage.diagnose.state.record import Listener as Listener
    from tensortriage.engines.base import Availability as Availability
    from tensortriage.engines.base import Choice as Choice
    from tensortriage.engines.process.gpus import Gpus as Gpus
    from tensortriage.engines.process.gpus import visible_gpus as visible_gpus
    from tensortriage.engines.process.loaded_code import LOADED_CODE as LOADED_CODE
    from tensortriage.engines.process.loaded_code import code_is_current as code_is_current
    from tensortriage.engines.registry import availabilities as availabilities
    from tensortriage.inputs.conform import check_feed as check_feed
    from tensortriage.inputs.feed import Feed as Feed
    from tensortriage.inputs.feed import Origin as Origin
    from tensortriage.inputs.feeds import Casting as Casting
    from tensortriage.inputs.feeds import load_feeds as load_feeds
    from tensortriage.inputs.files.accuracy_results import AccuracyResult as AccuracyResult
    from tensortriage.inputs.files.accuracy_results import read_accuracy as read_accuracy
    from tensortriage.inputs.files.data_file import DataFile as DataFile
    from tensortriage.inputs.files.data_file import DataFormat as DataFormat
    from tensortriage.inputs.files.data_file import Iteration as Iteration
    from tensortriage.inputs.files.data_file import Kind as Kind
    from tensortriage.inputs.files.data_file import Series as Series
    from tensortriage.inputs.files.open_data import is_json as is_json
    from tensortriage.inputs.files.open_data import open_data as open_data
    from tensortriage.inputs.files.polygraphy import document_class as document_class
    from tensortriage.inputs.files.save_data import format_for as format_for
    from tensortriage.inputs.files.save_data import save as save
    from tensortriage.inputs.files.stored_arrays import LazyTensors as LazyTensors
    from tensortriage.model.inspect.outline import ValueFacts as ValueFacts
    from tensortriage.model.inspect.outline import declared_value as declared_value
    from tensortriage.model.inspect.outline import stored_tensor as stored_tensor
    from tensortriage.model.io.load import read_model as read_model
    from tensortriage.model.io.parse import read_message as read_message
    from tensortriage.model.lint.finding import LintFinding as LintFinding
    from tensortriage.model.lint.finding import Severity as Severity
    from tensortriage.model.shape_inference.value_specs import value_specs as value_specs
    from tensortriage.model.transforms.bound_sizes import unbounded_sizes as unbounded_sizes
    from tensortriage.reduce.failure import Failure as Failure
    from tensortriage.reduce.repro.module_beside import MODULE_FILES as MODULE_FILES
    from tensortriage.reduce.repro.module_beside import ModuleBeside as ModuleBeside
    from tensortriage.reduce.repro.repro_case import Repro as Repro
    from tensortriage.reduce.repro.repro_case import ReproSample as ReproSample
    from tensortriage.reduce.repro.repro_case import failure_of as failure_of
    from tensortriage.reduce.repro.repro_pack import limit_of as limit_of
    from tensortriage.report.formats.markdown import issue_text as issue_text
    from tensortriage.report.html_page import page as page
    from tensortriage.report.html_page import script_of as script_of
    from tensortriage.report.tables import Column as Column
    from tensortriage.report.tables import Looks as Looks
    from tensortriage.report.tables import Table as Table
    from tensortriage.report.tables import TableCell as TableCell
    from tensortriage.report.tables import Tone as Tone
    from tensortriage.report.terminal.lines import Line as Line
    from tensortriage.report.terminal.lines import plain as plain
    from tensortriage.report.terminal.lines import show as show
    from tensortriage.report.terminal.lines import width as width
    from tensortriage.report.terminal.table_text import more_line as more_line
    from tensortriage.report.terminal.table_text import table_lines as table_lines
    from tensortriage.runs.analyses.tactics import TacticRecord as TacticRecord
    from tensortriage.runs.analyses.tactics import features as features
    from tensortriage.runs.analyses.tactics import load_record as load_record
    from tensortriage.runs.case import Case as Case
    from tensortriage.runs.case import versions as versions
    from tensortriage.runs.check_cache import digest as digest
    from tensortriage.runs.commands.check import Checker as Checker
    from tensortriage.runs.commands.check import CheckSpec as CheckSpec
    from tensortriage.runs.commands.check import verdict_word as verdict_word
    from tensortriage.runs.commands.command_fingerprint import file_digests as file_digests
    from tensortriage.runs.commands.failure_rules import Ruling as Ruling
    from tensortriage.runs.commands.process import CommandLine as CommandLine
    from tensortriage.runs.commands.process import Finished as Finished
    from tensortriage.runs.commands.process import Processes as Processes
    from tensortriage.runs.commands.process import RunsCommands as RunsCommands
    from tensortriage.runs.commands.process import search_is_ending as search_is_ending
    from tensortriage.runs.commands.replay import Entry as Entry
    from tensortriage.runs.commands.replay import Replay as Replay
    from tensortriage.runs.commands.replay import load_replay as load_replay
    from tensortriage.runs.engine_specs import resolved_engine as resolved_engine
    from tensortriage.search.execution.executors import Executor as Executor
    from tensortriage.search.execution.executors import OracleAnswer as OracleAnswer
    from tensortriage.search.execution.executors import OracleQuestion as OracleQuestion
    from tensortriage.search.problem import CandidateOutcome as CandidateOutcome
    from tensortriage.search.problem import Oracle as Oracle
    from tensortriage.search.problem import OracleVerdict as OracleVerdict
    from tensortriage.values.dtype import DType as DType
    from tensortriage.values.dtype import Precision as Precision
    from tensortriage.values.serial import dump as dump
    from tensortriage.values.serial import load as load
    from tensortriage.values.serial import to_json as to_json
    from tensortriage.values.text import shape as shape
    from tensortriage.workflows.common.judged import HealthyJudge as HealthyJudge
    from tensortriage.workflows.common.output_selection import OutputChoice as OutputChoice
    from tensortriage.workflows.comparison.participants import Saved as Saved
    from tensortriage.workflows.comparison.rejudge import Rejudged as Rejudged
    from tensortriage.workflows.comparison.rejudge import RejudgedRow as RejudgedRow
    from tensortriage.workflows.comparison.rejudge import rejudge as rejudge
    from tensortriage.workflows.comparison.saved_accuracy import SavedAccuracy as SavedAccuracy
    from tensortriage.workflows.edits.edit_pipeline import model_to_edit as model_to_edit
    from tensortriage.workflows.edits.requests import Verify as Verify
    from tensortriage.workflows.engines.trial import try_out as try_out

_HOMES = {
    "AccuracyResult": "inputs.files.accuracy_results",
    "Availability": "engines.base",
    "BuildJudgement": "builds.trial",
    "BuildTrial": "builds.trial",
    "CandidateOutcome": "search.problem",
    "Case": "runs.case",
    "Casting": "inputs.feeds",
    "CheckSpec": "runs.commands.check",
    "Checker": "runs.commands.check",
    "Choice": "engines.base",
    "ClaimKind": "diagnose.consistency.relations",
    "ClaimOutcome": "diagnose.consistency.self_check",
    "Column": "report.tables",
    "CommandLine": "runs.commands.process",
    "Conversion": "cli.convert.eight_bits",
    "DType": "values.dtype",
    "DataFile": "inputs.files.data_file",
    "DataFormat": "inputs.files.data_file",
    "Entry": "runs.commands.replay",
    "EqualityClaim": "diagnose.consistency.relations",
    "Executor": "search.execution.executors",
    "Failure": "reduce.failure",
    "Feed": "inputs.feed",
    "Finished": "runs.commands.process",
    "Gpus": "engines.process.gpus",
    "HealthyJudge": "workflows.common.judged",
    "Iteration": "inputs.files.data_file",
    "Kind": "inputs.files.data_file",
    "LOADED_CODE": "engines.process.loaded_code",
    "LazyTensors": "inputs.files.stored_arrays",
    "Line": "report.terminal.lines",
    "LintFinding": "model.lint.finding",
    "Listener": "diagnose.state.record",
    "Looks": "report.tables",
    "MODULE_FILES": "reduce.repro.module_beside",
    "ModuleBeside": "reduce.repro.module_beside",
    "Oracle": "search.problem",
    "OracleAnswer": "search.execution.executors",
    "OracleQuestion": "search.execution.executors",
    "OracleVerdict": "search.problem",
    "Origin": "inputs.feed",
    "OutputChoice": "workflows.common.output_selection",
    "PolygraphyTolerance": "compare.judgement.tolerance",
    "Precision": "values.dtype",
    "Processes": "runs.commands.process",
    "ROWS": "diagnose.consistency.relations",
    "Rejudged": "workflows.comparison.rejudge",
    "RejudgedRow": "workflows.comparison.rejudge",
    "Replay": "runs.commands.replay",
    "Reply": "cli.prompt",
    "Repro": "reduce.repro.repro_case",
    "ReproSample": "reduce.repro.repro_case",
    "Row": "compare.comparison",
    "Ruling": "runs.commands.failure_rules",
    "RunsCommands": "runs.commands.process",
    "Saved": "workflows.comparison.participants",
    "SavedAccuracy": "workflows.comparison.saved_accuracy",
    "SelfAnswer": "diagnose.consistency.self_check",
    "SelfCheck": "diagnose.consistency.self_check",
    "Series": "inputs.files.data_file",
    "Severity": "model.lint.finding",
    "StepTeller": "cli.progress",
    "SuspectChoice": "builds.study_result",
    "Table": "report.tables",
    "TableCell": "report.tables",
    "TacticRecord": "runs.analyses.tactics",
    "Teller": "cli.progress",
    "Tone": "report.tables",
    "ValueFacts": "model.inspect.outline",
    "Verify": "workflows.edits.requests",
    "accuracy_document": "cli.inspect.accuracy_table",
    "accuracy_lines": "cli.inspect.accuracy_table",
    "ask": "cli.prompt",
    "availabilities": "engines.registry",
    "check_feed": "inputs.conform",
    "cli": "cli",
    "code_is_current": "engines.process.loaded_code",
    "declared_value": "model.inspect.outline",
    "digest": "runs.check_cache",
    "document_class": "inputs.files.polygraphy",
    "dump": "values.serial",
    "failure_of": "reduce.repro.repro_case",
    "features": "runs.analyses.tactics",
    "file_digests": "runs.commands.command_fingerprint",
    "format_for": "inputs.files.save_data",
    "is_json": "inputs.files.open_data",
    "issue_text": "report.formats.markdown",
    "limit_of": "reduce.repro.repro_pack",
    "load": "values.serial",
    "load_feeds": "inputs.feeds",
    "load_record": "runs.analyses.tactics",
    "load_replay": "runs.commands.replay",
    "model_to_edit": "workflows.edits.edit_pipeline",
    "more_line": "report.terminal.table_text",
    "open_data": "inputs.files.open_data",
    "own_words": "cli",
    "page": "report.html_page",
    "plain": "report.terminal.lines",
    "print_document": "cli.documents",
    "read_accuracy": "inputs.files.accuracy_results",
    "read_message": "model.io.parse",
    "read_model": "model.io.load",
    "rejudge": "workflows.comparison.rejudge",
    "resolved_engine": "runs.engine_specs",
    "row_relations": "diagnose.consistency.relations",
    "save": "inputs.files.save_data",
    "script_of": "report.html_page",
    "search_is_ending": "runs.commands.process",
    "shape": "values.text",
    "show": "report.terminal.lines",
    "stored_tensor": "model.inspect.outline",
    "suspects": "builds.study",
    "table_lines": "report.terminal.table_text",
    "to_json": "values.serial",
    "try_out": "workflows.engines.trial",
    "unbounded_sizes": "model.transforms.bound_sizes",
    "value_specs": "model.shape_inference.value_specs",
    "verdict_word": "runs.commands.check",
    "versions": "runs.case",
    "visible_gpus": "engines.process.gpus",
    "width": "report.terminal.lines",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"tensortriage.{_HOMES[name]}"), name)
