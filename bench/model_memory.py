"""Memory and time that a 3 GB model with external data costs: in the library, and in commands that edit or inspect it.

    python bench/model_memory.py [--directory DIR] [--commands [WORD ...]]

Without --commands: load, cut 50 nodes out and save them, and load, mark every value and save; the bar is 150 MB above
the interpreter. With it: the commands, each in a process of its own; with WORDs those whose line contains one. Peak
memory is the largest resident set that the kernel saw, pages of mapped files included; `written` is what the command
left behind on disk. The model needs little room (a sparse file), its copies up to 3 GB in DIR.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LAYERS, WIDTH = 192, 2048  # 192 x 2048 x 2048 float32 = 3.2 GB
CUT = 50
TRIAGE = [sys.executable, "-c", "from tensortriage.cli import main; main()"]
COMMANDS = """
    inspect model big.onnx
    inspect model big.onnx --show layers
    inspect plan big.onnx --target onnxruntime
    inspect capability big.onnx --target onnxruntime
    check lint big.onnx
    surgeon sanitize big.onnx --fold-constants --cleanup -o out.onnx
    surgeon sanitize big.onnx --fold-constants --cleanup -o else/out.onnx
    surgeon sanitize big.onnx --fold-constants --cleanup --verify -o out.onnx
    surgeon extract big.onnx --node-range 10 59 -o out.onnx
    surgeon extract big.onnx --node-range 10 59 --save-external-data -o else/out.onnx
    surgeon extract big.onnx --node-range 10 59 --with-inputs random -o else/out.onnx
    surgeon insert big.onnx --op Relu --inputs v9 --outputs v9 -o out.onnx
    convert big.onnx --precision fp16 -o out.onnx
    convert big.onnx --precision bf16 -o out.onnx
    convert big.onnx --opset 21 -o out.onnx
    convert big.onnx --save-external-data -o else/out.onnx
    convert big.onnx --embed-weights -o else/out.onnx
"""


def resident_bytes(field: str) -> int:
    """Return VmRSS or VmHWM (its peak) of this process (proc(5), /proc/pid/status)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def make_model(directory: Path) -> Path:
    """Write a chain of MatMuls whose weights are a sparse file: no two weights alike, hardly a block on disk."""
    import onnx
    from onnx import helper

    nbytes = WIDTH * WIDTH * 4
    nodes, weights = [], []
    with (directory / "weights.bin").open("wb") as file:
        for layer in range(LAYERS):
            file.seek(layer * nbytes)
            file.write((layer + 1).to_bytes(4, "little"))
            tensor = onnx.TensorProto(
                name=f"w{layer}", data_type=onnx.TensorProto.FLOAT, dims=(WIDTH, WIDTH), data_location=1
            )
            for key, value in (("location", "weights.bin"), ("offset", layer * nbytes), ("length", nbytes)):
                tensor.external_data.add(key=key, value=str(value))
            weights.append(tensor)
            nodes.append(helper.make_node("MatMul", [f"v{layer}", f"w{layer}"], [f"v{layer + 1}"], name=f"mm{layer}"))
        file.truncate(LAYERS * nbytes)
    value = [helper.make_tensor_value_info(f"v{i}", onnx.TensorProto.FLOAT, (1, WIDTH)) for i in (0, LAYERS)]
    graph = helper.make_graph(nodes, "g", value[:1], value[1:], weights)
    path = directory / "big.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10).SerializeToString()
    )
    return path


def measure(edit: str, mode: str, path: Path, target: Path, bare: int) -> None:
    """Load, edit, save twice; in this process, so run it in a child."""
    started = time.perf_counter()
    from tensortriage.model.cutting.extract import extract
    from tensortriage.model.model import ExternalData, Model
    from tensortriage.model.shape_inference.value_specs import value_specs
    from tensortriage.model.transforms.mark_outputs import mark_outputs, markable

    imported = time.perf_counter()
    imports = resident_bytes("VmHWM")
    model = Model.load(path)
    loaded = time.perf_counter()
    if edit == "cut":
        names = [node.name for node in model.graph.nodes]
        edited = extract(model, names[10 : 10 + CUT], specs=value_specs(model, refine=True))
    else:
        edited = mark_outputs(model, markable(model))
    edited.save(target, external_data=ExternalData(mode))
    saved = time.perf_counter()
    edited.save(target, external_data=ExternalData(mode))
    again = time.perf_counter()
    peak = resident_bytes("VmHWM")
    clock = {"import": imported - started, "load": loaded - imported}
    clock |= {"edit+save": saved - loaded, "save again": again - saved}
    times = "  ".join(f"{step} {seconds:.2f} s" for step, seconds in clock.items())
    above = f"{(peak - bare) / 1e6:.1f} MB above the interpreter, of it imports {(imports - bare) / 1e6:.1f}"
    print(f"{edit:5s} {mode:7s} {times}   peak {above}", flush=True)


def disk_bytes(directory: Path) -> int:
    """Return the size of all files below a directory, holes included."""
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


def run_command(line: str, directory: Path) -> None:
    """Run one command, print what it took, and remove what it wrote (but the stripped model, which is read next)."""
    words = shlex.split(line)
    before = {file for file in directory.rglob("*") if file.is_file()}
    started = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([*TRIAGE, *words], cwd=directory, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        last = output.read().decode().strip().splitlines()[-2:]
    new = [file for file in directory.rglob("*") if file.is_file() and file not in before]
    written = sum(file.stat().st_size for file in new)
    print(
        f"{time.perf_counter() - started:6.1f} s  {usage.ru_utime + usage.ru_stime:6.1f} s CPU  "
        f"{usage.ru_maxrss / 1024:6.0f} MB peak  {written / 1e6:7.1f} MB written  exit {process.returncode}  {line}\n"
        + "\n".join(f"            {text[:150]}" for text in last),
        flush=True,
    )
    for file in new:
        if file.name != "stripped.onnx":
            file.unlink()


def main() -> None:
    bare = resident_bytes("VmHWM")
    if len(sys.argv) == 6 and sys.argv[1] == "measure":
        measure(sys.argv[2], sys.argv[3], Path(sys.argv[4]), Path(sys.argv[5]), bare)
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", nargs="*", metavar="WORD")
    parser.add_argument("--directory", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory) as name:
        directory = Path(name)
        path = make_model(directory)
        print(f"model of {os.path.getsize(directory / 'weights.bin') / 1e9:.2f} GB, {LAYERS} nodes")
        if given.commands is None:
            for edit, mode in (("cut", "leave"), ("cut", "always"), ("mark", "leave"), ("mark", "keep")):
                target = (directory if mode == "leave" else directory / edit) / "edited.onnx"
                subprocess.run([sys.executable, __file__, "measure", edit, mode, str(path), str(target)], check=True)
                print(
                    f"            {disk_bytes(directory) / 1e9 - 3.22:.2f} GB more on disk than the model", flush=True
                )
        else:
            for line in filter(None, map(str.strip, COMMANDS.splitlines())):
                if not given.commands or any(word in line for word in given.commands):
                    run_command(line, directory)


if __name__ == "__main__":
    main()
