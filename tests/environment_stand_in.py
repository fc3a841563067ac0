"""A stand-in for Python that makes virtual environments of itself, with a pip that installs nothing."""

import sys
from pathlib import Path

SCRIPT = r"""#!/bin/sh
[ "$1" != "-S" ] || exec {python} "$@"
echo "PIP_TARGET=$PIP_TARGET PIP_INDEX_URL=$PIP_INDEX_URL $*" >> {calls}
case "$*" in
  *"-m venv "*)
    for folder; do :; done
    mkdir -p "$folder/bin"
    touch "$folder/pyvenv.cfg"
    cp "$0" "$folder/bin/python" ;;
  *"-m pip "*"==9000.1 "*) printf '\377\033[31m no' >&2; exit 1 ;;
  *"-m pip "*"==9000 "*) echo "no such version" >&2; exit 1 ;;
  *"-m pip "*"==9 "*) sleep 600 & echo $$ > {calls}.part; mv {calls}.part {calls}.pid; wait ;;
  *"-c "*) echo 2026.4.1 ;;
esac
"""
"""The watchdog of processes runs in the real one. Version 9000 is refused, 9000.1 too in words that are none, and 9
never comes to an end."""


WORKING = r"""  *"-m pip "*) [ ! -e {calls}.broken ] || touch "${{0%/*}}/broken" ;;
  *) [ ! -e "${{0%/*}}/broken" ] || set -- -c "raise SystemExit('no engine here')"; exec {python} "$@" ;;
esac
"""
"""Its environments have what this Python has, but for those that are made while there is a file ``calls.broken``."""


def stand_in_python(folder: Path, *, working: bool = False) -> Path:
    """Write it; what it is requested goes to ``calls`` in the folder, and the process of a pip without end.

    Args:
        folder: Where.
        working: Whether engines of this Python run in what it makes; else it answers as if it were OpenVINO 2026.4.1.
    """
    path, words = folder / "stand-in-python", {"calls": folder / "calls", "python": sys.executable}
    text = SCRIPT.format(**words)
    if working:
        text = text[: text.rindex('  *"-c "*)')] + WORKING.format(**words)
    path.write_text(text)
    path.chmod(0o755)
    return path
