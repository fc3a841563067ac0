"""How accurately engines of this machine compute functions in float32.

The source of the classes ``cpu`` and ``light`` of `tensortriage.engines.float64.function_accuracy`. Per operator and
engine the largest relative error against float64, in units of 2**-23, over a million float32 numbers of the range in
which networks use the function, and the largest absolute error; engines of environments that
`triage engines install` made beside those of this Python. Run: python bench/function_accuracy.py [ENGINE ...]
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, save

from tensortriage.engines.float64.engine import Float64Engine
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec
from tensortriage_engines.install.environments import environments

COUNT = 1 << 20
RANGES: Mapping[str, tuple[float, float]] = {
    "Acos": (-1, 1), "Acosh": (1, 100), "Asin": (-1, 1), "Asinh": (-100, 100), "Atan": (-100, 100),
    "Atanh": (-0.999, 0.999), "Celu": (-10, 10), "Cos": (-100, 100), "Cosh": (-20, 20), "Elu": (-20, 20),
    "Erf": (-5, 5), "Exp": (-80, 80), "Gelu": (-10, 10), "HardSwish": (-5, 5), "Log": (1e-6, 1e6), "Mish": (-20, 20),
    "Reciprocal": (1e-3, 1e3), "Selu": (-20, 20), "Sigmoid": (-20, 20), "Sin": (-100, 100), "Sinh": (-20, 20),
    "Softmax": (-40, 40), "LogSoftmax": (-40, 40), "Softplus": (-20, 20), "Softsign": (-20, 20), "Sqrt": (1e-6, 1e6),
    "Tan": (-1.5, 1.5), "Tanh": (-10, 10), "Div": (1e-3, 1e3), "Pow": (1e-2, 10),
}  # fmt: skip
HERE = {"onnxruntime": {"optimization": "none"}, "openvino": {"precision": "fp32"}}
OPTIONS: Mapping[str, Mapping[str, str]] = {"mnn": {"gelu": "exact"}}


def engines(wanted: list[str]) -> Iterator[tuple[str, EngineSpec]]:
    """Yield a name and the spec of every engine that is requested, all that are here by default."""
    found = [(name, EngineSpec(name, options)) for name, options in HERE.items()]
    for made in environments():
        options = {"worker": made.python, **OPTIONS.get(made.engine, {})}
        found.append((f"{made.engine} {made.version}", EngineSpec(made.engine, options)))
    yield from ((name, spec) for name, spec in found if not wanted or spec.name in wanted)


def model(op_type: str, folder: Path) -> Path:
    names = ["x", "z"] if op_type in ("Div", "Pow") else ["x"]
    shape = [COUNT // 1024, 1024]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, ["y"])],
        op_type,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    path = folder / f"{op_type}.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    return path


def feed(op_type: str) -> dict[str, np.ndarray]:
    low, high = RANGES[op_type]
    rng = np.random.default_rng(0)
    numbers = rng.uniform(low, high, COUNT) if low <= 0 else np.exp(rng.uniform(np.log(low), np.log(high), COUNT))
    x = numbers.astype(np.float32).reshape(-1, 1024)
    other = {"Div": x[::-1], "Pow": rng.uniform(-3, 3, x.shape).astype(np.float32)}.get(op_type)
    return {"x": x} if other is None else {"x": x, "z": np.ascontiguousarray(other)}


def run(engine: object, path: Path, options: Mapping[str, str], arrays: dict[str, np.ndarray]) -> np.ndarray:
    session = engine.compile(path, options)  # type: ignore[attr-defined] # any engine
    try:
        return np.asarray(session.run(arrays)["y"], np.float64)
    finally:
        session.close()


def main() -> None:
    print(f"{'operator':12s} {'engine':18s} {'relative, 2^-23':>16s} {'absolute':>10s}")
    with tempfile.TemporaryDirectory() as folder:
        for op_type in RANGES:
            path, arrays = model(op_type, Path(folder)), feed(op_type)
            exact = run(Float64Engine(), path, {}, arrays)
            for name, spec in engines(sys.argv[1:]):
                try:
                    found = run(resolve(spec).engine, path, spec.options, arrays)
                except Exception as error:
                    print(f"{op_type:12s} {name:18s} {str(error)[:60]}")
                    continue
                error = np.abs(found - exact)
                usual = np.abs(exact) > np.finfo(np.float32).tiny
                relative = np.max(error[usual] / np.abs(exact[usual])) * 2.0**23
                print(f"{op_type:12s} {name:18s} {relative:16.2f} {np.max(error):10.1e}")


if __name__ == "__main__":
    main()
