"""The start of ``triage`` and ``python -m tensortriage``; Ctrl-C while modules are loaded ends it without a word."""

import signal
import sys


def main() -> None:
    """Run the command line; does not return."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.argv[1:2] == ["help"]:
        sys.argv[1:] = [*sys.argv[2:], "--help"]
    if sys.argv[1:] in (["--help"], ["-h"]) and sys.stdout is not None:
        from tensortriage.overview import show_overview

        sys.exit(show_overview())  # without the command line, which takes twice as long to import
    from tensortriage.cli import main as run

    run()


if __name__ == "__main__":
    main()
