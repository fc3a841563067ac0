"""``triage inspect schema``: the JSON Schema of a document, or the list of all."""

import dataclasses
import importlib.resources

import click

from tensortriage.sdk import UsageError, answer, argument, command, did_you_mean

FOLDER = importlib.resources.files("tensortriage_fleet.schemas")
ENDING = ".schema.json"

EPILOG = """\b
Examples:
  triage inspect schema
  triage inspect schema verdict > verdict.schema.json
  check-jsonschema --schemafile verdict.schema.json triage-case/verdict.json
"""


@dataclasses.dataclass(frozen=True, slots=True)
class SchemaList:
    """The documents that have a schema.

    Attributes:
        documents: Their names, as ``format`` has them before the version and after ``tensortriage.``.
        folder: Folder of the files, ``NAME.schema.json``.
    """

    documents: tuple[str, ...]
    folder: str
    format: str = "tensortriage.schemas/1"


@command(epilog=EPILOG)
def inspect_schema(name: str = argument("NAME", default=""), *, as_json: bool) -> None:
    """Print the JSON Schema of the documents of --json and of a case that are called NAME.

    NAME is what their field 'format' says, as in tensortriage.verdict/1, or a part of it: verdict. Without NAME all are
    listed.
    """
    known = sorted(file.name.removesuffix(ENDING) for file in FOLDER.iterdir() if file.name.endswith(ENDING))
    if not name:
        answer(SchemaList(tuple(known), str(FOLDER)), [*known, f"in {FOLDER}"], as_json=as_json)
        return
    word = name.removeprefix("tensortriage.").partition("/")[0]
    if word not in known:
        raise UsageError(
            f"there is no document '{name}'",
            slug="schema-unknown",
            cure=did_you_mean(word, known, otherwise="list them: triage inspect schema"),
        )
    click.echo((FOLDER / f"{word}{ENDING}").read_text(encoding="utf-8"), nl=False)
