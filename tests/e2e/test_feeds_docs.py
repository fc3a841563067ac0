"""Every command of docs/feeds.md works as shown, run in order in one copy of the examples.

All run in this process: two dozen starts of Python would take longer than everything else.
"""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tensortriage.cli import main

pytestmark = pytest.mark.lengthy

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs/feeds.md").read_text(encoding="utf-8")
EXIT_CODE = re.compile(r"\s+# exit code (\d)$")


def commands():
    """Yield every command of the console blocks, its exit code, and the lines shown below it."""
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.rstrip().splitlines()
            code = EXIT_CODE.search(command)
            yield EXIT_CODE.sub("", command), int(code[1]) if code else 0, lines


def test_every_command_works_as_shown(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for name in ("digits_cnn.onnx", "digits.npz", "digits_samples.npz"):
        shutil.copy(REPOSITORY / "examples" / name, tmp_path)
    (script,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "loader.py").write_text(script)
    found = list(commands())
    assert len(found) > 20
    for command, code, lines in found:
        words = shlex.split(command)
        redirected = words[-1] if words[-2] == ">" else ""
        if words[0] == "python":
            exec(words[2])
            continue
        with pytest.raises(SystemExit) as ended:
            main(words[1:-2] if redirected else words[1:])
        output = capfd.readouterr()
        assert ended.value.code == code, f"{command}\n{output.err}"
        if redirected:
            Path(redirected).write_text(output.out)
        for line in lines:
            assert line in (output.out + output.err).splitlines(), f"{command}\n{output}"
