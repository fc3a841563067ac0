"""What ``triage`` and ``python -m tensortriage`` start: a Ctrl-C while modules are loaded ends it without a word."""

import signal


def main() -> None:
    """Run the command line; does not return."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tensortriage.cli import main as run

    run()


if __name__ == "__main__":
    main()
