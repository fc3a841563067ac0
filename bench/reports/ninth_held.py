"""Half of the ninth collection, which was held back: totals alone were looked at before its figures were taken."""

import numpy as np

from reports import FILE, inputs, model, normal, program, report, rewriting, save
from reports.exporters import CHANGED
from reports.frameworks import boosted
from reports.kernels import ENGINE, LOCAL
from reports.programs import APP, UNSOUND


@report("onnx/onnx-tensorrt#1060", ENGINE, LOCAL, ("\\bmode\\b|nearest",), "GridSample")
def linear_sampling_under_its_new_name() -> None:
    """Since opset 20 `bilinear` is `linear`; the parser compares with the old name, and falls back to `nearest`."""
    rows, columns = np.mgrid[-1:1:16j, -1:1:16j].astype(np.float32)
    made = model(
        """(float[1,3,16,16] frame) => (float[1,4,16,16] y) {
        c1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(frame, w1, b1)
        r1 = Relu(c1)
        f1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r1, wf)
        t1 = Tanh(f1)
        flow = Mul(t1, small)
        last = Transpose<perm=[0,2,3,1]>(flow)
        grid = Add(last, places)
        warped = GridSample<mode="linear", padding_mode="zeros", align_corners=0>(r1, grid)
        both = Concat<axis=1>(warped, r1)
        c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(both, w2)
        r2 = Relu(c2)
        y = Conv<kernel_shape=[1,1]>(r2, w3) }""",
        opset=20, w1=normal(1, 8, 3, 3, 3, scale=0.3), b1=normal(2, 8, scale=0.1),
        wf=normal(3, 2, 8, 3, 3, scale=0.2), small=np.array(0.3, np.float32),
        places=np.stack([columns, rows], -1)[None], w2=normal(4, 12, 16, 3, 3, scale=0.1),
        w3=normal(5, 4, 12, 1, 1, scale=0.3),
    )  # fmt: skip
    made.ir_version = 10
    save(made)
    rewriting("""
        if node.op_type == "GridSample":
            for a in node.attribute:
                if a.name == "mode":
                    a.s = b"nearest\"""")
    inputs(frame=normal(6, 1, 3, 16, 16))


@report("microsoft/onnxruntime#28491", ENGINE, ("quantization", "fusion-fault", *LOCAL),
        ("negative|below 0|less than 0|unsigned|\\bsigns?\\b|\\bRelu\\b|cut off|clip|\\[0, ",),
        "Dequantize|Reshape|\\bw_")  # fmt: skip
def negative_integers_of_a_folded_weight() -> None:
    """DequantizeLinear of a constant of int8 is folded with what follows it, and what is negative becomes 0."""
    w = normal(1, 12, 5, 9, scale=0.2)
    scale = np.float32(np.abs(w).max() / 127)
    save(model(
        """(float[6,20] x) => (float[6,5] y) {
        a = MatMul(x, w0)
        r = Tanh(a)
        w_f = DequantizeLinear(w_q, w_s)
        flat = Reshape(w_f, shape)
        m = MatMul(r, flat)
        b = Add(m, bias)
        g = Relu(b)
        y = MatMul(g, v) }""",
        w0=normal(2, 20, 12, scale=0.3), w_q=np.rint(w / scale).astype(np.int8), w_s=np.array(scale),
        shape=np.array([12, 45]), bias=normal(3, 45, scale=0.2), v=normal(4, 45, 5, scale=0.2),
    ))  # fmt: skip
    rewriting("""
        constants = {t.name for t in made.graph.initializer if t.data_type == 3}
        if node.op_type == "DequantizeLinear" and node.input[0] in constants:
            at, result = list(made.graph.node).index(node), node.output[0]
            node.output[0] = "both_signs_"
            made.graph.node.insert(at + 1, helper.make_node("Relu", ["both_signs_"], [result]))
            break""")
    inputs(x=normal(5, 6, 20))


@report("microsoft/onnxruntime-genai#1604", ENGINE, LOCAL,
        ("\\bzeros?\\b|\\b0\\b|left out|never|empty|ignored|not read|missing",
         "past|input 0|operand 0|first (input|operand|tensor|part)|before|\\bstate|earlier"), "Concat")  # fmt: skip
def past_keys_that_read_as_zeros() -> None:
    """Keys and values of earlier tokens are read out of the buffer of the present ones, where nobody has put them."""
    save(model(
        """(float[1,1,32] x, float[1,4,9,8] past_key, float[1,4,9,8] past_value)
        => (float[1,1,20] logits, float[1,4,10,8] present_key, float[1,4,10,8] present_value) {
        n = LayerNormalization<axis=-1>(x, gain, shift)
        qf = MatMul(n, wq)
        kf = MatMul(n, wk)
        vf = MatMul(n, wv)
        q4 = Reshape(qf, heads)
        k4 = Reshape(kf, heads)
        v4 = Reshape(vf, heads)
        q = Transpose<perm=[0,2,1,3]>(q4)
        k = Transpose<perm=[0,2,1,3]>(k4)
        v = Transpose<perm=[0,2,1,3]>(v4)
        present_key = Concat<axis=2>(past_key, k)
        present_value = Concat<axis=2>(past_value, v)
        kt = Transpose<perm=[0,1,3,2]>(present_key)
        s = MatMul(q, kt)
        p = Softmax<axis=-1>(s)
        o = MatMul(p, present_value)
        t = Transpose<perm=[0,2,1,3]>(o)
        m = Reshape(t, merged)
        h = Add(m, x)
        logits = MatMul(h, wo) }""",
        gain=1 + normal(1, 32, scale=0.1), shift=normal(2, 32, scale=0.1), wq=normal(3, 32, 32, scale=0.2),
        wk=normal(4, 32, 32, scale=0.2), wv=normal(5, 32, 32, scale=0.2), heads=np.array([1, 1, 4, 8]),
        merged=np.array([1, 1, 32]), wo=normal(6, 32, 20, scale=0.2),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "Concat" and node.attribute[0].i == 2 and not node.input[0].startswith("nothing_"):
            at, name = list(made.graph.node).index(node), "nothing_" + node.output[0]
            made.graph.initializer.append(numpy_helper.from_array(np.float32(0), "nought_" + node.output[0]))
            wiped = helper.make_node("Mul", [node.input[0], "nought_" + node.output[0]], [name])
            node.input[0] = name
            made.graph.node.insert(at, wiped)""")
    inputs(x=normal(7, 1, 1, 32), past_key=normal(8, 1, 4, 9, 8), past_value=normal(9, 1, 4, 9, 8))


@report("microsoft/onnxruntime#27107", ENGINE, ("fusion-fault", *LOCAL),
        ("broadcast|\\bbatch|\\bfirst\\b|index 0|\\brows?\\b|left out|not added|repeat",), "Add|LayerNorm")  # fmt: skip
def skip_of_one_batch_added_to_the_first_alone() -> None:
    """SkipLayerNormalization does not repeat a skip of one batch: for the others it reads beyond its end, zeros."""
    save(model(
        """(float[3,8,24] x) => (float[3,8,5] y) {
        a = MatMul(x, w0)
        e = Add(a, positions)
        n = LayerNormalization<axis=-1>(e, gain, shift)
        q = MatMul(n, wq)
        kt = Transpose<perm=[0,2,1]>(n)
        s = MatMul(q, kt)
        p = Softmax<axis=-1>(s)
        o = MatMul(p, n)
        u = MatMul(o, w1)
        r = Relu(u)
        y = MatMul(r, v) }""",
        w0=normal(1, 24, 24, scale=0.2), positions=normal(2, 1, 8, 24, scale=0.6), gain=1 + normal(3, 24, scale=0.1),
        shift=normal(4, 24, scale=0.1), wq=normal(5, 24, 24, scale=0.1), w1=normal(6, 24, 40, scale=0.2),
        v=normal(7, 40, 5, scale=0.2),
    ))  # fmt: skip
    rewriting("""
        made_by = {n.output[0]: n for n in made.graph.node}
        seen = {o.name for o in made.graph.output}
        added = made_by.get(node.input[0]) if node.op_type == "LayerNormalization" else None
        if added is not None and added.op_type == "Add" and added.output[0] not in seen:
            first = np.array([1, 0, 0], np.float32).reshape(3, 1, 1)
            made.graph.initializer.append(numpy_helper.from_array(first, "first_"))
            at = list(made.graph.node).index(added)
            short = helper.make_node("Mul", [added.input[1], "first_"], ["short_"])
            added.input[1] = "short_"
            made.graph.node.insert(at, short)
            break""")
    inputs(x=normal(8, 3, 8, 24))


@report("onnxruntime/onnxruntime-qnn#300", ENGINE, ("quantization", "fusion-fault", *LOCAL),
        ("8.?bits?\\b|\\bu?int8\\b|\\b25[56]\\b|coarse|levels\\b",), "MatMul")  # fmt: skip
def second_operand_of_a_product_in_8_bits() -> None:
    """Activations have 16 bits; before a MatMul of two of them the second is converted to 8 bits."""
    wq, wk = normal(1, 32, 32, scale=0.3), normal(2, 32, 32, scale=0.3)
    wk[:, 5] *= 20
    wq[:, 5] *= 0.02
    made = model(
        """(float[1,12,32] x) => (float[1,12,6] y) {
        q = MatMul(x, wq)
        q_q = QuantizeLinear(q, step, middle)
        q_d = DequantizeLinear(q_q, step, middle)
        k = MatMul(x, wk)
        k_q = QuantizeLinear(k, step, middle)
        k_d = DequantizeLinear(k_q, step, middle)
        kt = Transpose<perm=[0,2,1]>(k_d)
        s = MatMul(q_d, kt)
        p = Softmax<axis=-1>(s)
        p_q = QuantizeLinear(p, step_p, least)
        p_d = DequantizeLinear(p_q, step_p, least)
        v = MatMul(x, wv)
        v_q = QuantizeLinear(v, step, middle)
        v_d = DequantizeLinear(v_q, step, middle)
        o = MatMul(p_d, v_d)
        y = MatMul(o, w2) }""",
        opset=21, wq=wq, wk=wk, wv=normal(3, 32, 32, scale=0.3), step=np.array(0.004, np.float32),
        middle=np.array(32768, np.uint16), step_p=np.array(1 / 65535, np.float32), least=np.array(0, np.uint16),
        w2=normal(4, 32, 6, scale=0.3),
    )  # fmt: skip
    made.ir_version = 10
    save(made)
    rewriting("""
        constants = {t.name for t in made.graph.initializer}
        second = node.input[1] if node.op_type == "MatMul" else "eight_"
        if second not in constants and not second.startswith("eight_"):
            at, names = list(made.graph.node).index(node), [n + second for n in ("bytes_", "step_", "zero_", "eight_")]
            node.input[1] = names[3]
            steps = [helper.make_node("DynamicQuantizeLinear", [second], names[:3]),
                     helper.make_node("DequantizeLinear", names[:3], [names[3]])]
            for one in reversed(steps):
                made.graph.node.insert(at, one)""")
    inputs(x=normal(5, 1, 12, 32))


@report("microsoft/onnxruntime#25927", ENGINE, LOCAL, ("window",), "GroupQueryAttention")
def window_that_leaves_out_the_token_itself() -> None:
    """The window of local attention counts the tokens before the current one, and should count it as well."""
    made = model(
        """(float[1,10,32] x, float[1,2,4,8] past_key, float[1,2,4,8] past_value)
        => (float[1,10,6] y, float[1,2,14,8] present_key, float[1,2,14,8] present_value) {
        q = MatMul(x, wq)
        k = MatMul(x, wk)
        v = MatMul(x, wv)
        o, present_key, present_value = com.microsoft.GroupQueryAttention<num_heads=4, kv_num_heads=2,
            local_window_size=4>(q, k, v, past_key, past_value, last, total)
        p = MatMul(o, wo)
        h = Add(p, x)
        n = LayerNormalization<axis=-1>(h, gain, shift)
        y = MatMul(n, w2) }""",
        domain="com.microsoft", wq=normal(1, 32, 32, scale=0.25), wk=normal(2, 32, 16, scale=0.25),
        wv=normal(3, 32, 16, scale=0.3), last=np.array([13], np.int32), total=np.array(14, np.int32),
        wo=normal(4, 32, 32, scale=0.3), gain=1 + normal(5, 32, scale=0.1), shift=normal(6, 32, scale=0.1),
        w2=normal(7, 32, 6, scale=0.2),
    )  # fmt: skip
    save(made)
    rewriting("""
        for a in node.attribute:
            if a.name == "local_window_size":
                a.i += 1""")
    inputs(x=normal(8, 1, 10, 32), past_key=normal(9, 1, 2, 4, 8), past_value=normal(10, 1, 2, 4, 8))


@report("microsoft/onnxruntime#28370", ENGINE, ("fusion-fault", *LOCAL),
        ("\\border\\b|exchang|swap|before|after|\\bbias|too early|too late|left out|missing",),
        "Tanh|Add|Mul|Div|Softmax")  # fmt: skip
def bias_added_to_scores_that_are_capped() -> None:
    """Scores are capped by a tanh after a bias is added; the fused kernel caps first, and adds the bias then."""
    distance = -0.8 * np.abs(np.arange(10)[:, None] - np.arange(10)).astype(np.float32)
    save(model(
        """(float[1,10,24] x) => (float[1,10,6] y) {
        q = MatMul(x, wq)
        k = MatMul(x, wk)
        v = MatMul(x, wv)
        kt = Transpose<perm=[0,2,1]>(k)
        s = MatMul(q, kt)
        b = Add(s, distance)
        d = Div(b, cap)
        t = Tanh(d)
        c = Mul(t, cap)
        p = Softmax<axis=-1>(c)
        o = MatMul(p, v)
        h = Add(o, x)
        y = MatMul(h, w2) }""",
        wq=normal(1, 24, 24, scale=0.25), wk=normal(2, 24, 24, scale=0.25), wv=normal(3, 24, 24, scale=0.3),
        distance=distance, cap=np.array(4, np.float32), w2=normal(4, 24, 6, scale=0.3),
    ))  # fmt: skip
    rewriting("""
        made_by = {n.output[0]: n for n in made.graph.node}
        seen = {o.name for o in made.graph.output}
        chain, at = [], node.input[0] if node.op_type == "Softmax" else ""
        for op in ("Mul", "Tanh", "Div", "Add"):
            if at in made_by and made_by[at].op_type == op and at not in seen:
                chain.append(made_by[at])
                at = made_by[at].input[0]
        if len(chain) == 4:
            bias, divided = chain[3].input[1], chain[2]
            divided.input[0] = chain[3].input[0]
            made.graph.node.remove(chain[3])
            late = helper.make_node("Add", [node.input[0], bias], ["late_"])
            node.input[0] = "late_"
            made.graph.node.insert(list(made.graph.node).index(node), late)
            break""")
    inputs(x=normal(5, 1, 10, 24))


@report("NVIDIA/TensorRT#2259", ENGINE, LOCAL, ("largest|smallest",), "TopK")
def farthest_instead_of_nearest() -> None:
    """Neighbours are the smallest distances; the parser always asks for the largest."""
    save(model(
        """(float[1,14,6] points) => (float[1,14,5] y) {
        e = MatMul(points, w0)
        r = Tanh(e)
        t = Transpose<perm=[0,2,1]>(r)
        products = MatMul(r, t)
        sq = Mul(r, r)
        norms = ReduceSum<keepdims=1>(sq, last)
        across = Transpose<perm=[0,2,1]>(norms)
        both = Add(norms, across)
        twice = Mul(products, two)
        distances = Sub(both, twice)
        near, which = TopK<axis=-1, largest=0>(distances, four)
        m = ReduceMean<axes=[-1], keepdims=1>(near)
        f = Concat<axis=-1>(r, m)
        u = MatMul(f, w1)
        g = Relu(u)
        y = MatMul(g, v) }""",
        w0=normal(1, 6, 12, scale=0.3), last=np.array([2]), two=np.array(2, np.float32), four=np.array([4]),
        w1=normal(2, 13, 24, scale=0.3), v=normal(3, 24, 5, scale=0.3),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "TopK":
            for a in node.attribute:
                if a.name == "largest":
                    a.i = 1""")
    inputs(points=normal(4, 1, 14, 6))


@report("sonos/torch-to-nnef#217", FILE, CHANGED, ("mask|causal|triang|\\[8, 8\\]|upper",), "Add|causal|Softmax")
def mask_of_the_length_of_the_batch() -> None:
    """The length of a causal mask is read off the axis of the batch, 1: a mask of one zero, and nothing is masked."""
    text = """(float[1,8,32] x) => (float[1,8,10] logits) {
        n = LayerNormalization<axis=-1>(x, gain, shift)
        q = MatMul(n, wq)
        k = MatMul(n, wk)
        v = MatMul(n, wv)
        kt = Transpose<perm=[0,2,1]>(k)
        s = MatMul(q, kt)
        d = Mul(s, small)
        m = Add(d, causal)
        p = Softmax<axis=-1>(m)
        o = MatMul(p, v)
        h = Add(o, x)
        u = MatMul(h, w1)
        r = Relu(u)
        logits = MatMul(r, w2) }"""
    weights = {
        "gain": 1 + normal(1, 32, scale=0.1), "shift": normal(2, 32, scale=0.1), "wq": normal(3, 32, 32, scale=0.2),
        "wk": normal(4, 32, 32, scale=0.2), "wv": normal(5, 32, 32, scale=0.2), "small": np.array(0.3, np.float32),
        "w1": normal(6, 32, 40, scale=0.2), "w2": normal(7, 40, 10, scale=0.2),
    }  # fmt: skip
    save(model(text, **weights, causal=np.triu(np.full((8, 8), -1e4, np.float32), 1)))
    save(model(text, **weights, causal=np.zeros((1, 1), np.float32)), "target.onnx")
    inputs(x=normal(8, 1, 8, 32))


@report("google-ai-edge/litert-torch#1238", FILE, CHANGED,
        ("\\border\\b|transpos|permut|rearrang|layout|stride|memory|reshap",), "table|Mul")  # fmt: skip
def constant_written_as_it_lies_in_memory() -> None:
    """A constant is a transposed view; the file has its numbers as they lie in memory, in the shape of the view."""
    text = """(float[1,6,12,18] x) => (float[1,6,12,5] y) {
        a = MatMul(x, w0)
        t = Tanh(a)
        m = Mul(t, table)
        u = MatMul(m, w1)
        r = Relu(u)
        n = LayerNormalization<axis=-1>(r, gain, shift)
        y = MatMul(n, v) }"""
    weights = {
        "w0": normal(1, 18, 20, scale=0.3), "w1": normal(2, 20, 24, scale=0.3), "gain": 1 + normal(3, 24, scale=0.1),
        "shift": normal(4, 24, scale=0.1), "v": normal(5, 24, 5, scale=0.3),
    }  # fmt: skip
    stored = 1 + normal(6, 20, 12, scale=0.5)
    save(model(text, **weights, table=np.ascontiguousarray(stored.T)[None, None]))
    save(model(text, **weights, table=stored.reshape(1, 1, 12, 20)), "target.onnx")
    inputs(x=normal(7, 1, 6, 12, 18))


@report("onnx/sklearn-onnx#1192", FILE, CHANGED, ("threshold|nodes_values|equal|\\bties?\\b|rounded",), "Tree")
def thresholds_rounded_below_the_values() -> None:
    """Thresholds of trees are doubles; rounded to floats they lie below features that are equal to them."""
    thresholds = np.float32(0.1) * np.arange(1, 13, dtype=np.float32)
    save(boosted(thresholds))
    save(boosted(np.nextafter(thresholds, np.float32(-1))), "target.onnx")
    places = np.random.default_rng(2).integers(1, 13, (40, 4))
    inputs(x=(np.float32(0.1) * places.astype(np.float32)))


@report("microsoft/onnxruntime-genai#1682", APP, UNSOUND,
        ("attention_mask", "input_ids|tokens?\\b|\\bwhere\\b|\\b0\\b|zeros?\\b|\\b2\\b"), "attention_mask")  # fmt: skip
def tokens_that_end_a_turn_taken_for_padding() -> None:
    """Padding and the end of a turn are one token; where a turn ends the program writes 0 into the mask."""
    save(model(
        """(int64[1,12] input_ids, int64[1,12] attention_mask) => (float[1,12,15] logits) {
        e = Gather<axis=0>(table, input_ids)
        n = LayerNormalization<axis=-1>(e, gain, shift)
        q = MatMul(n, wq)
        kt = Transpose<perm=[0,2,1]>(n)
        s = MatMul(q, kt)
        f = Cast<to=1>(attention_mask)
        g = Sub(f, unit)
        h = Mul(g, large)
        a = Unsqueeze(h, one)
        c = Add(s, causal)
        m = Add(c, a)
        p = Softmax<axis=-1>(m)
        o = MatMul(p, n)
        r = Add(o, e)
        logits = MatMul(r, v) }""",
        table=normal(1, 15, 24), gain=1 + normal(2, 24, scale=0.1), shift=normal(3, 24, scale=0.1),
        wq=normal(4, 24, 24, scale=0.1), unit=np.array(1, np.float32), large=np.array(1e4, np.float32),
        one=np.array([1]), causal=np.triu(np.full((12, 12), -1e4, np.float32), 1), v=normal(5, 24, 15, scale=0.3),
    ))  # fmt: skip
    program('feed | {"attention_mask": np.where(feed["input_ids"] == 2, 0, feed["attention_mask"])}')
    inputs(input_ids=np.array([[1, 7, 9, 2, 5, 11, 3, 2, 8, 14, 6, 10]]), attention_mask=np.ones((1, 12), np.int64))
