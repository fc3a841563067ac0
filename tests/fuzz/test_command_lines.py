"""Whatever the words of a command line are, it is done or refused with slug and cure, and writes what it names."""

from hypothesis import given

from hostile.command_lines import any_command
from hostile.originals import data_files, model_files
from hostile.tally import SEEDS, fuzzed


@given(seed=SEEDS)
@fuzzed(40)
def test_any_command_line(commands, tally, seed):
    words = any_command(seed)
    files = {"m.onnx": model_files()["mlp"], "f.npz": data_files()["f.npz"]}
    ended = commands.run(words, files)
    tally.add("command line", words[0] if words and words[0].isalpha() else "?", ended.slug)
    named = {word.split("/")[0] for word in words} | {"triage-case", "polygraphy_debug.onnx", "polygraphy_artifacts"}
    faults = [fault for fault in ended.faults(named) if "held" not in fault]
    if faults:
        tally.find(seed, f"triage {words}: {faults}\n{ended.err[-3000:]}")
