"""Memory and time to load, edit and save a 3 GB model with external data; the bar is 150 MB above the interpreter.

Usage: python bench/model_memory.py [DIRECTORY]    (needs up to 3 GB there while it runs; a temporary one by default)
"""

import os
import sys
import tempfile
import time
from pathlib import Path

LAYERS, WIDTH = 192, 2048  # 192 x 2048 x 2048 float32 = 3.2 GB


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
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    return path


def measure(name: str, path: Path, target: Path, bare: int) -> None:
    """Load, mark every value as output, save; in this process, so run it in a child."""
    started = time.perf_counter()
    from tensortriage.model.model import ExternalData, Model

    imported = time.perf_counter()
    imports = resident_bytes("VmHWM")
    model = Model.load(path)
    loaded = time.perf_counter()
    edited = model.clone().ir
    edited.graph.outputs.extend(output for node in edited.graph for output in node.outputs[:-1])
    copy = Model.from_ir(edited)
    copy.save(target, external_data=ExternalData(name))
    saved = time.perf_counter()
    copy.save(target, external_data=ExternalData(name))
    again = time.perf_counter()
    peak = resident_bytes("VmHWM")
    clock = {"import": imported - started, "load": loaded - imported}
    clock |= {"edit+save": saved - loaded, "save again": again - saved}
    times = "  ".join(f"{step} {seconds:.2f} s" for step, seconds in clock.items())
    above = f"{(peak - bare) / 1e6:.1f} MB above the interpreter, of it imports {(imports - bare) / 1e6:.1f}"
    print(f"{name:7s} {times}   peak {above}")


def main() -> None:
    bare = resident_bytes("VmHWM")
    if len(sys.argv) == 4:
        measure(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), bare)
        return
    import subprocess

    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as name:
        directory = Path(name)
        path = make_model(directory)
        print(f"model of {os.path.getsize(directory / 'weights.bin') / 1e9:.2f} GB, {LAYERS} nodes")
        for mode in ("keep", "always"):
            target = directory / mode / "edited.onnx"
            subprocess.run([sys.executable, __file__, mode, str(path), str(target)], check=True)
            for file in sorted(target.parent.rglob("*"), reverse=True):
                file.rmdir() if file.is_dir() else file.unlink()


if __name__ == "__main__":
    main()
