"""Command lines to run next, on the model and the inputs of a question, quoted for a shell."""

import shlex

from tensortriage.runs.questions.question import Question


def triage_command(question: Question, command: str, *options: str) -> str:
    """Return a command line on the model and its inputs."""
    inputs = list(question.input_paths)
    if command == "inspect data":
        return shlex.join(["triage", "inspect", "data", *(inputs or ["INPUTS"])])
    return command_without_inputs(question, command, *options, *(["--inputs", *inputs] if inputs else []))


def command_without_inputs(question: Question, command: str, *options: str) -> str:
    """Return a command line on the model, on made-up data."""
    return shlex.join(["triage", *command.split(), str(question.model.path or "MODEL"), *options])
