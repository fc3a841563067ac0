"""The one place where errors become messages, documents and exit codes."""

import json
import os
import signal

import click
import pytest

import tensortriage.cli
from tensortriage.cli import main, own_words
from tensortriage.errors import EngineMissing

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers():
    """Let signals do what they do by default, whoever started the tests, and leave them as they were."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def ends(monkeypatch, action, *words):
    """Return the exit code of a command that does something."""
    monkeypatch.setattr(tensortriage.cli, "exit_code_of", lambda _: action())
    with pytest.raises(SystemExit) as end:
        main(["run", "m.onnx", *words])
    return end.value.code


def raises(error):
    """Return an action that raises."""

    def action():
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code", "slug"),
    [
        (EngineMissing("none", slug="engine-missing", cure="install it"), 3, "engine-missing"),
        (click.UsageError("no such option"), 2, "usage"),
        (MemoryError(), 2, "out-of-memory"),
        (OSError(28, "No space left on device", "x.onnx"), 2, "os-error"),
        (ValueError("odd"), 2, "internal"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_every_error_is_a_block_and_with_json_a_document(monkeypatch, capfd, error, code, slug):
    assert ends(monkeypatch, raises(error)) == code
    text = capfd.readouterr()
    assert text.out == ""
    assert "Traceback" not in text.err
    assert ends(monkeypatch, raises(error), "--json") == code
    printed = capfd.readouterr()
    assert printed.err == text.err
    document = json.loads(printed.out)
    assert (document["format"], document["slug"], document["exit_code"]) == ("tensortriage.error/1", slug, code)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_an_interruption_whatever_a_library_makes_of_it(monkeypatch, capfd, number):
    def importing():
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        except KeyboardInterrupt:
            raise ImportError("initialization failed") from None

    assert ends(monkeypatch, importing) == 130
    assert capfd.readouterr().err == "triage: interrupted; the results so far are kept\n"


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        ("debug repeat --json --check x --debug", "debug repeat --json"),
        ("debug repeat --check x -- --json", "debug repeat --json"),
        ("run m.onnx -- --json", "run m.onnx"),
    ],
)
def test_options_of_a_check_are_not_ours(words, ours):
    assert list(own_words(words.split())) == ours.split()


def test_a_second_command_in_one_process_is_interrupted_as_the_first(monkeypatch, capfd):
    def interrupted():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
        except KeyboardInterrupt:
            raise ImportError("initialization failed") from None

    assert [ends(monkeypatch, command) for command in (interrupted, interrupted, raises(ValueError("odd")))] == [
        130,
        130,
        2,
    ]
