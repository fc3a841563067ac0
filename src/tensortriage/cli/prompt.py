"""Asking a person instead of running a check."""

import enum
import sys
from collections.abc import Mapping

import click


class Reply(enum.Enum):
    """Answers of a person about a candidate; the value is the letter to type."""

    PASS = "p"
    FAIL = "f"
    SKIP = "s"
    UNDO = "u"
    QUIT = "q"


def ask(question: str, replies: Mapping[Reply, str], *, err: bool = True) -> Reply:
    """Ask until one of the replies is given; the end of the input is `Reply.QUIT`.

    Args:
        question: The question, without its choices.
        replies: The accepted replies, each with the word to type.
        err: Whether the question goes to stderr.
    """
    shown = [word.replace(reply.value, f"[{reply.value}]", 1) for reply, word in replies.items()]
    choices = (" or " if len(shown) == 2 else ", ").join(shown) + "?"
    while True:
        click.echo(f">>> {question} {choices} ", nl=False, err=err)
        line = sys.stdin.readline()
        if not line:
            click.echo(err=err)
            return Reply.QUIT
        text = line.strip().lower()
        for reply, word in replies.items():
            if text and text in (reply.value, word):
                return reply
