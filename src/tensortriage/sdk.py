"""What a command of another package is written with, beside `tensortriage.api`: names that stay.

What declares a command is there at once, for its help is made of it; what it works with is loaded on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tensortriage.cli.declared import command as command
from tensortriage.cli.documents import answer as answer
from tensortriage.cluster.cluster_spec import ClusterSpec as ClusterSpec
from tensortriage.errors import DataError as DataError
from tensortriage.errors import EngineMissing as EngineMissing
from tensortriage.errors import StoreError as StoreError
from tensortriage.errors import TriageError as TriageError
from tensortriage.errors import UsageError as UsageError
from tensortriage.errors import did_you_mean as did_you_mean
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
    from tensortriage.cli.progress import Teller as Teller
    from tensortriage.engines.base import Availability as Availability
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
    from tensortriage.runs.commands.command_pool import CommandNeeds as CommandNeeds
    from tensortriage.runs.commands.command_pool import CommandPool as CommandPool
    from tensortriage.runs.commands.process import CommandLine as CommandLine
    from tensortriage.runs.commands.process import Finished as Finished
    from tensortriage.runs.engine_specs import resolved_engine as resolved_engine
    from tensortriage.values.serial import dump as dump
    from tensortriage.values.serial import load as load
    from tensortriage.workflows.engines.trial import try_out as try_out

_HOMES = {
    "Availability": "engines.base",
    "availabilities": "engines.registry",
    "dump": "values.serial",
    "load": "values.serial",
    "try_out": "workflows.engines.trial",
    "Case": "runs.case",
    "Column": "report.tables",
    "CommandLine": "runs.commands.process",
    "CommandNeeds": "runs.commands.command_pool",
    "CommandPool": "runs.commands.command_pool",
    "Finished": "runs.commands.process",
    "Looks": "report.tables",
    "Table": "report.tables",
    "TableCell": "report.tables",
    "Teller": "cli.progress",
    "digest": "runs.check_cache",
    "file_digests": "runs.commands.command_fingerprint",
    "page": "report.html_page",
    "resolved_engine": "runs.engine_specs",
    "versions": "runs.case",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"tensortriage.{_HOMES[name]}"), name)
