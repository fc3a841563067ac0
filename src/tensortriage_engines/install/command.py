"""``triage engines list`` and ``triage engines install``."""

import contextlib

from tensortriage.sdk import answer, argument, command

LIST_EPILOG = """\b
Examples:
  triage engines list
  triage engines list --json
"""
INSTALL_EPILOG = """\b
Examples:
  triage engines install openvino
  triage engines install openvino==2024.0.0
"""


@command("list", epilog=LIST_EPILOG)
def list_command(as_json: bool) -> None:
    """List every engine, whether it can be used here, and the one command that makes it usable."""
    from tensortriage_engines.install.engines_text import engine_line, environment_line
    from tensortriage_engines.install.environments import list_engines

    found = list_engines()
    lines = []
    for row in found.engines:
        here = " ".join(filter(None, (row.version, row.device)))
        lines.append(engine_line(row.name, here if row.usable else None, row.reason, row.command))
        lines += [environment_line(each.target, each.version) for each in row.environments]
    answer(found, lines, as_json=as_json)


@command("install", epilog=INSTALL_EPILOG)
def install_command(engine: str = argument("NAME[==VERSION]"), *, as_json: bool) -> None:
    """Make a virtual environment for an engine in the user's data folder, with pinned requirements.

    With a version the environment is additional, for --against and for --target with worker=.
    """
    from tensortriage.sdk import Teller
    from tensortriage_engines.install.engines_text import target_line
    from tensortriage_engines.install.environments import install

    with contextlib.closing(Teller(err=True)) as teller:
        made = install(engine, say=teller.progress)
    answer(made, [target_line(f"{made.engine} {made.version}", made.target)], as_json=as_json)
