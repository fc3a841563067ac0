"""What a command of another package is written with, beside `tensortriage.api`: names that stay.

What declares a command is there at once, for its help is made of it; what it works with is loaded on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tensortriage.cli.declared import command as command
from tensortriage.cli.documents import answer as answer
from tensortriage.engines.spec import EngineSpec as EngineSpec
from tensortriage.errors import DataError as DataError
from tensortriage.errors import EngineMissing as EngineMissing
from tensortriage.errors import StoreError as StoreError
from tensortriage.errors import TriageError as TriageError
from tensortriage.errors import UsageError as UsageError
from tensortriage.errors import WorkerLost as WorkerLost
from tensortriage.errors import did_you_mean as did_you_mean
from tensortriage.runs.elsewhere import NamedCluster as NamedCluster
from tensortriage.runs.elsewhere import OpenedCluster as OpenedCluster
from tensortriage.runs.environment_folder import ENVIRONMENT_NOTE as ENVIRONMENT_NOTE
from tensortriage.runs.environment_folder import environments_folder as environments_folder
from tensortriage.runs.request_fields import case_field as case_field
from tensortriage.runs.request_fields import cluster_field as cluster_field
from tensortriage.values.files import read_regular as read_regular
from tensortriage.values.files import write_text as write_text
from tensortriage.values.options import argument as argument
from tensortriage.values.options import flag as flag
from tensortriage.values.options import option as option
from tensortriage.values.options import request as request
from tensortriage.values.output_files import Place as Place
from tensortriage.values.printable import printable as printable
from tensortriage.values.text import count as count
from tensortriage.values.text import duration as duration
from tensortriage.values.text import magnitude as magnitude
from tensortriage.values.text import parse_bytes as parse_bytes
from tensortriage.values.text import shorten as shorten

if TYPE_CHECKING:
    from tensortriage.cli import own_words as own_words
    from tensortriage.cli.documents import print_document as print_document
    from tensortriage.cli.progress import Teller as Teller
    from tensortriage.engines.base import Availability as Availability
    from tensortriage.engines.process.gpus import Gpus as Gpus
    from tensortriage.engines.process.gpus import visible_gpus as visible_gpus
    from tensortriage.engines.registry import availabilities as availabilities
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
    from tensortriage.workflows.engines.trial import try_out as try_out

_HOMES = {
    "Availability": "engines.base",
    "CandidateOutcome": "search.problem",
    "Case": "runs.case",
    "Column": "report.tables",
    "CommandLine": "runs.commands.process",
    "Executor": "search.execution.executors",
    "Finished": "runs.commands.process",
    "Gpus": "engines.process.gpus",
    "Looks": "report.tables",
    "Oracle": "search.problem",
    "OracleAnswer": "search.execution.executors",
    "OracleQuestion": "search.execution.executors",
    "OracleVerdict": "search.problem",
    "Processes": "runs.commands.process",
    "RunsCommands": "runs.commands.process",
    "Table": "report.tables",
    "TableCell": "report.tables",
    "Teller": "cli.progress",
    "availabilities": "engines.registry",
    "digest": "runs.check_cache",
    "dump": "values.serial",
    "file_digests": "runs.commands.command_fingerprint",
    "load": "values.serial",
    "own_words": "cli",
    "page": "report.html_page",
    "print_document": "cli.documents",
    "resolved_engine": "runs.engine_specs",
    "search_is_ending": "runs.commands.process",
    "try_out": "workflows.engines.trial",
    "versions": "runs.case",
    "visible_gpus": "engines.process.gpus",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"tensortriage.{_HOMES[name]}"), name)
