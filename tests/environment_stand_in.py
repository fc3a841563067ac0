"""A stand-in for Python that makes virtual environments of itself, with a pip that installs nothing."""

from pathlib import Path

SCRIPT = r"""#!/bin/sh
echo "PIP_TARGET=$PIP_TARGET PIP_INDEX_URL=$PIP_INDEX_URL $*" >> {calls}
case "$*" in
  *"-m venv "*)
    for folder; do :; done
    mkdir -p "$folder/bin"
    touch "$folder/pyvenv.cfg"
    cp "$0" "$folder/bin/python" ;;
  *"-m pip "*"==0.1 "*) printf '\377\033[31m no' >&2; exit 1 ;;
  *"-m pip "*"==0 "*) echo "no such version" >&2; exit 1 ;;
  *"-m pip "*"==9 "*) sleep 600 & echo $$ > {calls}.part; mv {calls}.part {calls}.pid; wait ;;
  *"-c "*) echo 2026.4.1 ;;
esac
"""
"""Version 0 is refused, 0.1 too in words that are none, and 9 never comes to an end."""


def stand_in_python(folder: Path) -> Path:
    """Write it; what it is asked for goes to ``calls`` in the folder, and the process of a pip without end."""
    path = folder / "stand-in-python"
    path.write_text(SCRIPT.format(calls=folder / "calls"))
    path.chmod(0o755)
    return path
