"""Commands that a verdict suggests to run next."""

from tensortriage.runs.questions.question import Question
from tensortriage.runs.questions.suggested_commands import triage_command
from tensortriage.values.dtype import Precision


def reduce_command(question: Question) -> str:
    """Return the command that finds the smallest piece that still fails."""
    return triage_command(question, "debug reduce", "-o", "reduced.onnx", "--target", str(question.target))


def run_command(question: Question, *options: str) -> str:
    """Return the command that compares the outputs, or the tensors that options name."""
    return triage_command(question, "run", "--target", str(question.target), *options)


def layers_command(question: Question) -> str:
    """Return the command that compares every tensor."""
    return run_command(question, "--onnx-outputs", "mark", "all")


def precision_command(question: Question) -> list[str]:
    """Return the command that finds the nodes to keep in more bits, where a model can be typed in the format."""
    if question.precision not in (Precision.FP16, Precision.BF16):
        return []
    return [search_command(question)]


def search_command(question: Question, *options: str) -> str:
    """Return the command that finds the nodes to keep, by the user's metric where there is one, and writes the model.

    Args:
        question: The question.
        options: The format, and the goal where the user gave none.
    """
    goal = (*options[:1], *question.goal) if question.goal else options
    return triage_command(question, "debug precision", *goal, "--target", str(question.target), "-o", "mixed.onnx")
