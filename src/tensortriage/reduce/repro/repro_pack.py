"""The repro pack: a folder that a vendor can take as it is, with model, inputs, expected outputs and a script.

Model and data are laid out as in ONNX's own tests (``model.onnx``, ``test_data_set_0``), which engines' tools read.
"""

import dataclasses
import math
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import StoreError
from tensortriage.model.io.tensor_pb import write_tensor
from tensortriage.reduce.failure import SAME_FAILURE, Failure
from tensortriage.reduce.repro.engine_half import ENGINE, engine_half
from tensortriage.reduce.repro.module_beside import MODULE_FILES
from tensortriage.reduce.repro.repro_case import MODEL_NAME, Repro
from tensortriage.reduce.repro.repro_script import script
from tensortriage.reduce.repro.repro_texts import TextFacts, issue, readme
from tensortriage.reduce.repro.trial import SCRIPT as MARK
from tensortriage.reduce.repro.trial import PackTrial, needed, tried
from tensortriage.values.files import partial_name, sweep_partial

CARRIED = "contents.txt"
"""Lists the files next to it in the folder that calls the engine."""
ISSUE = "issue.md"
"""The facts that the tracker of PyTorch's exporter asks for."""
STARTING_SECONDS = 60.0
"""Time for a process until a piece of a model runs in it: imports and a build."""
_OWN = frozenset({MODEL_NAME, f"{MODEL_NAME}.data", MARK, "README.md", ISSUE, *MODULE_FILES})
_DATA_SET, _TENSOR = re.compile(r"test_data_set_\d+"), re.compile(r"(input|output)_\d+\.pb")
"""Names in a pack; only these are replaced by another pack."""


def write_pack(
    folder: Path,
    repro: Repro,
    facts: TextFacts,
    *,
    limits: Limits,
    attempts: int = 1,
) -> PackTrial:
    """Write a repro pack, which appears when it is complete, and run it; an earlier one is replaced.

    Args:
        folder: Its place; missing, empty or an earlier pack.
        repro: The case.
        facts: Facts for its texts.
        limits: Limits of the engine.
        attempts: How often it is run at most until it fails again.

    Raises:
        StoreError: When the folder holds anything else (``repro-folder-foreign``) or cannot be written
            (``repro-unwritable``).
    """
    target, local, module = facts.target, facts.local, facts.module
    foreign = _foreign(folder)
    if foreign is not None:
        raise StoreError(
            f"{foreign} already exists where the repro would be written",
            slug="repro-folder-foreign",
            cure="move it, or give another -o",
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        sweep_partial(folder)
        fresh, earlier = partial_name(folder), partial_name(folder)
        try:
            fresh.mkdir()
            _fill(fresh, repro)
            half = engine_half(target, repro, limits)
            facts_with_command = dataclasses.replace(facts, command=half.command)
            blamed = bool(facts.exported_wrong)
            code = script(
                half.code,
                limit=limit_of(local),
                failure=local,
                seconds=limits.longest_run() + min(limits.build_seconds, STARTING_SECONDS),
                module=module if half.any_model else None,
                exported_wrong=blamed,
            )
            (fresh / MARK).write_text(code)
            _carry(fresh / ENGINE, half.files)
            if module is not None:
                module.write(fresh)
            if blamed and (module is None or module.anew is not False):  # else no exporter here is to blame
                (fresh / ISSUE).write_text(issue(repro, facts_with_command))
            trial = tried(fresh, target, local, limits, attempts)
            text = readme(repro.model, facts_with_command, trial, needed(fresh))
            for place in (fresh.absolute(), *_places(target)):  # engines quote paths in what they say
                text = text.replace(f"{place}{os.sep}", "")
            (fresh / "README.md").write_text(text)
            if folder.exists():
                folder.rename(earlier)
            fresh.rename(folder)
            return trial
        finally:
            for left in (fresh, earlier):
                shutil.rmtree(left, ignore_errors=True)
    except OSError as error:
        raise StoreError(
            f"the repro cannot be written to {folder}: {error.strerror or error}",
            slug="repro-unwritable",
            cure="free disk space, or give another -o",
        ) from error


def _places(target: EngineSpec) -> Iterator[Path]:
    """Yield the folders of the files that a spec names."""
    for value in target.options.values():
        if (path := Path(value).absolute()).is_file():
            yield path.parent


def _carry(folder: Path, files: Mapping[str, bytes]) -> None:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    if files:
        (folder / CARRIED).write_text("\n".join(sorted(files)) + "\n")


def _fill(folder: Path, repro: Repro) -> None:
    repro.model.save(folder / MODEL_NAME)
    for number, sample in enumerate(repro.samples):
        inner = folder / f"test_data_set_{number}"
        inner.mkdir()
        for position, spec in enumerate(repro.model.inputs):
            write_tensor(inner / f"input_{position}.pb", spec.name, sample.inputs[spec.name])
        for position, spec in enumerate(repro.model.outputs):
            write_tensor(inner / f"output_{position}.pb", spec.name, sample.outputs[spec.name])


def _foreign(folder: Path) -> Path | None:
    """Return a file of the user's in the pack's place, or a link; None when there is none."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        return folder
    for entry in sorted(folder.iterdir()) if folder.exists() else ():
        if entry.is_symlink():
            return entry
        if entry.is_dir() and _DATA_SET.fullmatch(entry.name):
            strange = [one for one in sorted(entry.iterdir()) if not _TENSOR.fullmatch(one.name) or one.is_symlink()]
            if strange:
                return strange[0]
        elif entry.is_dir() and entry.name == ENGINE and (entry / CARRIED).is_file():
            own = {*(entry / CARRIED).read_text().splitlines(), CARRIED}
            for path in sorted(entry.rglob("*")):
                if path.is_symlink() or (path.is_file() and str(path.relative_to(entry)) not in own):
                    return path
        elif entry.is_dir() or entry.name not in _OWN:
            return entry
    return None


def limit_of(local: Failure) -> float:
    """Return the relative error that still counts as the failure."""
    return SAME_FAILURE * local.error if local.kind.numeric and math.isfinite(local.error) else 1e-4
