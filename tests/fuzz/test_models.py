"""Whatever a model holds, a command ends with an answer, an outcome, or an error with slug and cure."""

import pytest
from hypothesis import given

from hostile import mutated_files
from hostile.command_lines import WRITTEN, model_command
from hostile.tally import SEEDS, fuzzed

pytestmark = pytest.mark.lengthy


@given(seed=SEEDS)
@fuzzed(25)
def test_a_command_about_a_mutated_model(commands, tally, seed):
    name, data = mutated_files.model(seed)
    words = model_command(seed)
    ended = commands.run(words, {"m.onnx": data})
    tally.add("model", words[0] if words[0] in ("run", "diagnose", "convert") else " ".join(words[:2]), ended.slug)
    faults = ended.faults(WRITTEN)
    if faults:
        tally.find(seed, f"{name}: triage {' '.join(words)}: {faults}\n{ended.err[-3000:]}")
