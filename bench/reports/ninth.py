"""Parsers, decoders, files and programs: half of the ninth collection."""

import numpy as np

from reports import FILE, inputs, model, normal, program, report, rewriting, save
from reports.boards import RETURNED
from reports.exporters import CHANGED
from reports.kernels import ENGINE, LOCAL
from reports.programs import APP


@report("microsoft/onnxruntime#27249", ENGINE, LOCAL, ("pad",), "Conv")
def odd_padding_at_the_other_end() -> None:
    """`SAME_UPPER` with strides of 2 pads the end by one; the kernel computes its padding anew, and pads the front."""
    save(model(
        """(float[1,3,32,32] image) => (float[1,7] y) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], auto_pad="SAME_UPPER">(image, w1, b1)
        r1 = Clip(c1, zero, six)
        c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1], group=16>(r1, w2)
        r2 = Clip(c2, zero, six)
        c3 = Conv<kernel_shape=[1,1]>(r2, w3)
        r3 = Clip(c3, zero, six)
        c4 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(r3, w4)
        r4 = Relu(c4)
        f = Flatten(r4)
        y = Gemm(f, v) }""",
        w1=normal(1, 16, 3, 3, 3, scale=0.4), b1=normal(2, 16, scale=0.2), w2=normal(3, 16, 1, 3, 3, scale=0.4),
        w3=normal(4, 12, 16, 1, 1, scale=0.3), w4=normal(5, 8, 12, 3, 3, scale=0.2), v=normal(6, 512, 7, scale=0.05),
        zero=np.array(0, np.float32), six=np.array(6, np.float32),
    ))  # fmt: skip
    rewriting("""
        given = {a.name: a for a in node.attribute}
        if node.op_type == "Conv" and "auto_pad" in given and list(given["strides"].ints) == [2, 2]:
            node.attribute.remove(given["auto_pad"])
            node.attribute.append(helper.make_attribute("pads", [1, 1, 0, 0]))""")
    inputs(image=normal(7, 1, 3, 32, 32))


@report("onnx/onnx#7274", ENGINE, ("layout", *LOCAL),
        ("\\btile|interleav|repeat|other heads?|another head|\\border\\b|permut|groups?\\b|wrong places|elsewhere",),
        "Attention")  # fmt: skip
def heads_of_keys_in_turn() -> None:
    """Query heads 0 and 1 share the first head of keys; tiled, 0 and 2 do."""
    made = model(
        """(float[1,10,32] x) => (float[1,10,6] y) {
        qf = MatMul(x, wq)
        kf = MatMul(x, wk)
        vf = MatMul(x, wv)
        q4 = Reshape(qf, four)
        k4 = Reshape(kf, two)
        v4 = Reshape(vf, two)
        q = Transpose<perm=[0,2,1,3]>(q4)
        k = Transpose<perm=[0,2,1,3]>(k4)
        v = Transpose<perm=[0,2,1,3]>(v4)
        o = Attention(q, k, v)
        t = Transpose<perm=[0,2,1,3]>(o)
        m = Reshape(t, merged)
        p = MatMul(m, wo)
        h = Add(p, x)
        y = MatMul(h, w2) }""",
        opset=23, wq=normal(1, 32, 32, scale=0.3), wk=normal(2, 32, 16, scale=0.3), wv=normal(3, 32, 16, scale=0.3),
        four=np.array([1, 10, 4, 8]), two=np.array([1, 10, 2, 8]), merged=np.array([1, 10, 32]),
        wo=normal(4, 32, 32, scale=0.3), w2=normal(5, 32, 6, scale=0.2),
    )  # fmt: skip
    made.ir_version = 11
    save(made)
    rewriting("""
        if node.op_type == "Attention":
            made.graph.initializer.append(numpy_helper.from_array(np.array([0, 1, 0, 1]), "turns_"))
            at = list(made.graph.node).index(node)
            for k in (1, 2):
                turned = helper.make_node("Gather", [node.input[k], "turns_"], [f"tiled_{k}"], axis=1)
                node.input[k] = f"tiled_{k}"
                made.graph.node.insert(at, turned)
            break""")
    inputs(x=normal(6, 1, 10, 32))


@report(
    "onnx/onnx-mlir#1153",
    ENGINE,
    LOCAL,
    ("shift|moved|iteration|later|earlier|delay|\\bone (step|row|place)|carried",),
    "Loop|states",
)
def states_collected_one_iteration_late() -> None:
    """A Loop collects what its state was; the state is updated before it is collected: shifted by one iteration."""
    save(model(
        """(float[9,4,10] x, float[4,8] start) => (float[9,4,5] y) {
        a = MatMul(x, wx)
        b = Add(a, bias)
        final, states = Loop(nine, yes, start) <body = step (int64 i, bool go, float[4,8] h)
            => (bool on, float[4,8] next, float[4,8] before) {
            on = Identity(go)
            one = Gather<axis=0>(b, i)
            back = MatMul(h, wh)
            both = Add(one, back)
            next = Tanh(both)
            before = Identity(h)
        }>
        n = LayerNormalization<axis=-1>(states, gain, shift)
        y = MatMul(n, v) }""",
        wx=normal(1, 10, 8, scale=0.3), bias=normal(2, 8, scale=0.2), wh=normal(3, 8, 8, scale=0.3),
        nine=np.array(9), yes=np.array(True), gain=1 + normal(4, 8, scale=0.1), shift=normal(5, 8, scale=0.1),
        v=normal(6, 8, 5, scale=0.4),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "Loop":
            body = node.attribute[0].g
            for inner in body.node:
                if inner.op_type == "Identity" and inner.input[0] == body.input[2].name:
                    inner.input[0] = body.output[1].name""")
    inputs(x=normal(7, 9, 4, 10), start=normal(8, 4, 8, scale=0.5))


@report("openvinotoolkit/openvino#33164", ENGINE, LOCAL, ("saturat|clip|clamp|\\bwrap|cut off|modul|2\\^8",),
        "Sub|difference")  # fmt: skip
def differences_of_bytes_that_stop_at_zero() -> None:
    """Bytes are subtracted and wrap, 3 - 4 = 255; the engine stops at 0."""
    save(model(
        """(uint8[1,3,16,16] image, uint8[1,3,16,16] background) => (float[1,5] y) {
        difference = Sub(image, background)
        f = Cast<to=1>(difference)
        u = Mul(f, unit)
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(u, w1, b1)
        r1 = Relu(c1)
        c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r1, w2)
        r2 = Relu(c2)
        p = GlobalAveragePool(r2)
        l = Flatten(p)
        y = Gemm(l, v) }""",
        unit=np.array(1 / 255, np.float32), w1=normal(1, 8, 3, 3, 3, scale=0.4), b1=normal(2, 8, scale=0.1),
        w2=normal(3, 12, 8, 3, 3, scale=0.2), v=normal(4, 12, 5, scale=0.5),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "Sub" and not node.input[0].startswith("wide_"):
            at, result = list(made.graph.node).index(node), node.output[0]
            for name, number in (("least_", 0), ("most_", 255)):
                made.graph.initializer.append(numpy_helper.from_array(np.array(number, np.int32), name))
            made.graph.node.remove(node)
            steps = [helper.make_node("Cast", [node.input[0]], ["wide_a_"], to=6),
                     helper.make_node("Cast", [node.input[1]], ["wide_b_"], to=6),
                     helper.make_node("Sub", ["wide_a_", "wide_b_"], ["whole_"]),
                     helper.make_node("Clip", ["whole_", "least_", "most_"], ["kept_"]),
                     helper.make_node("Cast", ["kept_"], [result], to=2)]
            for one in reversed(steps):
                made.graph.node.insert(at, one)
            break""")
    rng = np.random.default_rng(5)
    inputs(image=rng.integers(0, 256, (1, 3, 16, 16), np.uint8),
           background=rng.integers(0, 256, (1, 3, 16, 16), np.uint8))  # fmt: skip


@report("microsoft/onnxruntime#433", ENGINE, ("fusion-fault", *LOCAL),
        ("\\bbool|truth|True\\b|left out|skipp|dropped|non-?zero|passes|copied",), "Cast")  # fmt: skip
def count_that_is_no_truth_value() -> None:
    """A number is cast to bool and back, which is 1; casts in a row pass the number on, 7."""
    save(model(
        """(float[4,9,16] x, bool[4,9] valid) => (float[4,6] y) {
        c = Cast<to=1>(valid)
        n = ReduceSum<keepdims=1>(c, last)
        b = Cast<to=9>(n)
        gate = Cast<to=1>(b)
        a = MatMul(x, w0)
        r = Tanh(a)
        m = ReduceMean<axes=[1], keepdims=0>(r)
        g = Mul(m, gate)
        h = MatMul(g, w1)
        k = Add(h, bias)
        s = Relu(k)
        y = MatMul(s, v) }""",
        last=np.array([1]), w0=normal(1, 16, 20, scale=0.3), w1=normal(2, 20, 24, scale=0.3),
        bias=normal(3, 24, scale=0.2), v=normal(4, 24, 6, scale=0.3),
    ))  # fmt: skip
    rewriting("""
        made_by = {n.output[0]: n for n in made.graph.node}
        seen = {o.name for o in made.graph.output}
        first = made_by.get(node.input[0]) if node.op_type == "Cast" else None
        if first is not None and first.op_type == "Cast" and first.output[0] not in seen:
            node.op_type, node.input[0] = "Identity", first.input[0]
            del node.attribute[:]""")
    inputs(x=normal(5, 4, 9, 16), valid=np.arange(9)[None] < np.array([[9], [7], [4], [6]]))


@report("ARM-software/CMSIS-NN#219", ENGINE, LOCAL, ("initial_[hc]|initial (state|value)|input [56]\\b|\\bstates?\\b",),
        "LSTM")  # fmt: skip
def states_wiped_at_every_call() -> None:
    """The states of the previous call are inputs of an LSTM, and it starts from zeros."""
    save(model(
        """(float[6,2,10] x, float[1,2,8] hidden, float[1,2,8] cell)
        => (float[6,2,4] y, float[1,2,8] hidden_out, float[1,2,8] cell_out) {
        a = MatMul(x, w0)
        r = Relu(a)
        h, hidden_out, cell_out = LSTM<hidden_size=8>(r, w, u, b, lengths, hidden, cell)
        s = Squeeze(h, one)
        n = LayerNormalization<axis=-1>(s, gain, shift)
        z = MatMul(n, v)
        y = Sigmoid(z) }""",
        w0=normal(1, 10, 12, scale=0.3), w=normal(2, 1, 32, 12, scale=0.3), u=normal(3, 1, 32, 8, scale=0.3),
        b=normal(4, 1, 64, scale=0.2), lengths=np.full(2, 6, np.int32), one=np.array([1]),
        gain=1 + normal(5, 8, scale=0.1), shift=normal(6, 8, scale=0.1), v=normal(7, 8, 4, scale=0.5),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "LSTM":
            del node.input[5:]""")
    inputs(x=normal(8, 6, 2, 10), hidden=normal(9, 1, 2, 8, scale=0.5), cell=normal(10, 1, 2, 8))


@report("onnx/onnx-mlir#2479", ENGINE, LOCAL, ("sequence_lens|lengths?\\b|input 4\\b|padding|beyond",), "GRU")
def lengths_of_sequences_not_read() -> None:
    """A GRU does not look at the lengths of its sequences: the last state of a short one is that of its padding."""
    save(model(
        """(float[10,3,12] x, int32[3] lengths) => (float[3,5] y) {
        a = MatMul(x, w0)
        t = Tanh(a)
        every, last = GRU<hidden_size=9, linear_before_reset=1>(t, w, u, b, lengths)
        s = Squeeze(last, zero)
        h = MatMul(s, w1)
        k = Add(h, bias)
        r = Relu(k)
        y = MatMul(r, v) }""",
        w0=normal(1, 12, 14, scale=0.3), w=normal(2, 1, 27, 14, scale=0.4), u=normal(3, 1, 27, 9, scale=0.3),
        b=normal(4, 1, 54, scale=0.2), zero=np.array([0]), w1=normal(5, 9, 16, scale=0.4),
        bias=normal(6, 16, scale=0.2), v=normal(7, 16, 5, scale=0.4),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "GRU":
            node.input[4] = ''""")
    inputs(x=normal(8, 10, 3, 12), lengths=np.array([10, 6, 3], np.int32))


@report("NVIDIA/TensorRT#260", ENGINE, LOCAL, ("\\beps(ilon)?\\b",), "InstanceNormalization")
def epsilon_not_below_a_minimum() -> None:
    """An InstanceNormalization's epsilon of 1e-5 becomes 1e-4, the least that the library takes."""
    save(model(
        """(float[1,3,20,20] image) => (float[1,3,20,20] y) {
        c1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(image, w1)
        n1 = InstanceNormalization<epsilon=0.00001>(c1, gain, shift)
        r1 = Relu(n1)
        c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r1, w2)
        r2 = Relu(c2)
        c3 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r2, w3)
        t3 = Tanh(c3)
        y = Add(t3, image) }""",
        w1=normal(1, 10, 3, 3, 3, scale=0.15) * np.geomspace(0.03, 1, 10, dtype=np.float32)[:, None, None, None],
        gain=1 + normal(2, 10, scale=0.2), shift=normal(3, 10, scale=0.2), w2=normal(4, 12, 10, 3, 3, scale=0.15),
        w3=normal(5, 3, 12, 3, 3, scale=0.15),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "InstanceNormalization":
            for a in node.attribute:
                if a.name == "epsilon":
                    a.f = max(a.f, 1e-4)""")
    inputs(image=normal(6, 1, 3, 20, 20, scale=0.1))


@report("Tencent/ncnn#3439", ENGINE, ("layout", "comparison-unsound", "fusion-fault", *LOCAL),
        ("transpos|permut|layout|channels? (first|last)|exchanged",), "Transpose|rows|\\[1, 64, 9\\]")  # fmt: skip
def permutation_at_the_end_removed() -> None:
    """The converter takes away the Reshape and the permutation that a network ends with."""
    save(model(
        """(float[1,3,32,32] image) => (float[1,64,9] rows) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(image, w1, b1)
        s1 = Sigmoid(c1)
        r1 = Mul(c1, s1)
        c2 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(r1, w2, b2)
        s2 = Sigmoid(c2)
        r2 = Mul(c2, s2)
        c3 = Conv<kernel_shape=[1,1]>(r2, w3)
        s3 = Sigmoid(c3)
        flat = Reshape(s3, nine)
        rows = Transpose<perm=[0,2,1]>(flat) }""",
        w1=normal(1, 12, 3, 3, 3, scale=0.3), b1=normal(2, 12, scale=0.1), w2=normal(3, 20, 12, 3, 3, scale=0.15),
        b2=normal(4, 20, scale=0.1), w3=normal(5, 9, 20, 1, 1, scale=0.4), nine=np.array([1, 9, 64]),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "Transpose" and node.output[0] in {o.name for o in made.graph.output}:
            node.op_type = "Identity"
            del node.attribute[:]
            for o in made.graph.output:
                if o.name == node.output[0]:
                    o.type.tensor_type.ClearField("shape")""")
    inputs(image=normal(6, 1, 3, 32, 32))


@report("SeanLee97/AnglE#101", FILE, CHANGED, ("\\bax[ie]s\\b|all (axes|sentences|rows)|whole|\\bbatch",),
        "ReduceSum|count|Div")  # fmt: skip
def mean_over_the_tokens_of_every_sentence() -> None:
    """The sum of a sentence's tokens is divided by the number of tokens of the whole batch."""
    text = """(float[3,9,20] x, float[3,9] mask) => (float[3,12] embedding) {{
        a = MatMul(x, w0)
        t = Tanh(a)
        h = Add(t, x)
        m = Unsqueeze(mask, two)
        kept = Mul(h, m)
        total = ReduceSum<keepdims=0>(kept, one)
        count = ReduceSum<keepdims={keep}>(mask, {axes})
        mean = Div(total, count)
        d = MatMul(mean, w1)
        embedding = Tanh(d) }}"""
    weights = {
        "w0": normal(1, 20, 20, scale=0.3), "two": np.array([2]), "one": np.array([1]),
        "w1": normal(2, 20, 12, scale=0.4),
    }  # fmt: skip
    save(model(text.format(keep=1, axes="one"), **weights))
    save(model(text.format(keep=1, axes="every"), **weights, every=np.array([0, 1])), "target.onnx")
    lengths = np.array([[9], [4], [6]])
    inputs(x=normal(3, 3, 9, 20), mask=(np.arange(9)[None] < lengths).astype(np.float32))


@report("Blaizzy/mlx-audio#920", FILE, CHANGED, ("window",), "window|frames|Mul")
def window_that_is_symmetric() -> None:
    """The window of a spectrum is the symmetric one, where the network was trained with the periodic one."""
    text = """(float[1,20,64] sound) => (float[1,20,6] y) {
        frames = Mul(sound, window)
        real = MatMul(frames, cosines)
        imaginary = MatMul(frames, sines)
        r2 = Mul(real, real)
        i2 = Mul(imaginary, imaginary)
        power = Add(r2, i2)
        mel = MatMul(power, bands)
        some = Add(mel, least)
        logs = Log(some)
        u = MatMul(logs, w1)
        r = Tanh(u)
        y = MatMul(r, v) }"""
    angles = 2 * np.pi * np.outer(np.arange(64), np.arange(33)) / 64
    weights = {
        "cosines": np.cos(angles).astype(np.float32), "sines": np.sin(angles).astype(np.float32),
        "bands": np.abs(normal(1, 33, 16, scale=0.1)), "least": np.array(1e-4, np.float32),
        "w1": normal(2, 16, 20, scale=0.2), "v": normal(3, 20, 6, scale=0.3),
    }  # fmt: skip
    periodic, symmetric = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(64) / n) for n in (64, 63))
    save(model(text, **weights, window=periodic.astype(np.float32)))
    save(model(text, **weights, window=symmetric.astype(np.float32)), "target.onnx")
    time = np.arange(20 * 64).reshape(1, 20, 64) / 64
    inputs(sound=(np.sin(2 * np.pi * 7.3 * time) + 0.4 * np.sin(2 * np.pi * 12.1 * time)).astype(np.float32))


@report("plur-ai/plur#270", APP, (*RETURNED, "fusion-fault", *LOCAL),
        ("left out|skipp|missing|not applied|\\bbefore\\b|pool|\\bmean|another (value|tensor)|instead",),
        "sentence_embedding|MatMul|pooled")  # fmt: skip
def mean_of_the_tokens_without_what_follows_it() -> None:
    """The program takes the mean of the last hidden state, and leaves out the two layers that follow it."""
    save(model(
        """(int64[1,10] input_ids) => (float[1,10,24] last_hidden_state, float[1,24] sentence_embedding) {
        e = Gather<axis=0>(table, input_ids)
        n = LayerNormalization<axis=-1>(e, gain, shift)
        q = MatMul(n, wq)
        kt = Transpose<perm=[0,2,1]>(n)
        s = MatMul(q, kt)
        p = Softmax<axis=-1>(s)
        o = MatMul(p, n)
        last_hidden_state = Add(o, e)
        pooled = ReduceMean<axes=[1], keepdims=0>(last_hidden_state)
        d1 = MatMul(pooled, w1)
        d2 = MatMul(d1, w2)
        norm = ReduceL2<axes=[1], keepdims=1>(d2)
        sentence_embedding = Div(d2, norm) }""",
        table=normal(1, 15, 24), gain=1 + normal(2, 24, scale=0.1), shift=normal(3, 24, scale=0.1),
        wq=normal(4, 24, 24, scale=0.1), w1=normal(5, 24, 60, scale=0.2), w2=normal(6, 60, 24, scale=0.15),
    ))  # fmt: skip
    program(
        results='results | {"sentence_embedding": mean / np.linalg.norm(mean)} '
        'if (mean := results.get("last_hidden_state", np.ones((1, 1, 1))).mean(1)).size > 1 else results'
    )
    inputs(input_ids=np.array([[1, 7, 9, 2, 5, 11, 3, 8, 14, 6]]))
