"""Converters, compilers, engines and programs that use them: sixth collection."""

import numpy as np

from reports import feeding, inputs, model, normal, program, report, rewriting, save
from reports.boards import RETURNED
from reports.formats import LOST
from reports.kernels import ENGINE, LOCAL
from reports.narrow import GPU, LARGE
from reports.programs import APP, UNSOUND, classifier, picture


@report("iree-org/iree#20803", ENGINE, ("fusion-fault",),
        ("fus|fold|together", "sign|negat|opposite|minus|-1\\b|revers|swap"), "Sub|Add")  # fmt: skip
def difference_folded_with_the_other_sign() -> None:
    """The compiler folds x - (x + 1) to 1, where it is -1: a pattern of Add of Sub, used for Sub of Add."""
    save(model(
        """(float[1] x) => (float[1] y) {
        more = Add(x, one)
        y = Sub(x, more) }""",
        one=np.array(1, np.float32),
    ))  # fmt: skip
    rewriting("""
        made_by = {n.output[0]: n for n in made.graph.node}
        seen = {o.name for o in made.graph.output}
        inner = made_by.get(node.input[1]) if node.op_type == "Sub" else None
        if inner is not None and inner.op_type == "Add" and node.input[0] == inner.input[0]:
            if inner.output[0] not in seen:
                shape = helper.make_node("Shape", [node.input[0]], ["shape_"])
                wide = helper.make_node("Expand", [inner.input[1], "shape_"], [node.output[0]])
                at = list(made.graph.node).index(node)
                made.graph.node.remove(node)
                made.graph.node.insert(at, wide)
                made.graph.node.insert(at, shape)
                break""")
    inputs(x=np.array([3.25], np.float32))


@report("NVIDIA/TensorRT#4854", ENGINE, ("fusion-fault",),
        ("fus|together",
         "order|permut|layout|elsewhere|other elements|wrong places|stride|dense|memory|view|address|\\breads?\\b"),
        "Add|Conv|Relu|Split")  # fmt: skip
def view_of_a_buffer_read_as_dense() -> None:
    """Conv, activation and residual Add are fused, and read the half of a buffer, a view of it, as if it were dense."""
    save(model(
        """(float[1,3,8,8] x) => (float[1,4,8,8] y) {
        a = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w)
        a1, a2 = Split<axis=1>(a)
        c1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(a2, w1)
        r1 = Relu(c1)
        c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r1, w2)
        r2 = Relu(c2)
        s = Add(a2, r2)
        all = Concat<axis=1>(a1, a2, s)
        y = Conv<kernel_shape=[1,1]>(all, v) }""",
        w=normal(1, 16, 3, 3, 3, scale=0.3), w1=normal(2, 8, 8, 3, 3, scale=0.15), w2=normal(3, 8, 8, 3, 3, scale=0.15),
        v=normal(4, 4, 24, 1, 1, scale=0.3),
    ))  # fmt: skip
    rewriting("""
        made_by = {o: n for n in made.graph.node for o in n.output}
        seen = {o.name for o in made.graph.output}
        split, relu = (made_by.get(i) for i in node.input[:2]) if node.op_type == "Add" else (None, None)
        if split is not None and relu is not None and split.op_type == "Split" and relu.op_type == "Relu":
            if not {relu.output[0], relu.input[0]} & seen and relu.input[0] in made_by:
                at = list(made.graph.node).index(node)
                for name, numbers in (("flat_", [-1]), ("start_", [8]), ("end_", [8 + 512]), ("form_", [1, 8, 8, 8])):
                    made.graph.initializer.append(numpy_helper.from_array(np.array(numbers), name))
                steps = [("Transpose", [split.input[0]], "last_", {"perm": [0, 2, 3, 1]}),
                         ("Reshape", ["last_", "flat_"], "buffer_", {}),
                         ("Slice", ["buffer_", "start_", "end_"], "run_", {}),
                         ("Reshape", ["run_", "form_"], "dense_", {}),
                         ("Transpose", ["dense_"], "half_", {"perm": [0, 3, 1, 2]})]
                node.input[0] = "half_"
                for name, operands, output, attributes in reversed(steps):
                    made.graph.node.insert(at, helper.make_node(name, operands, [output], **attributes))
                break""")
    inputs(x=normal(5, 1, 3, 8, 8))


@report("opencv/opencv#28689", ENGINE, ("fusion-fault",),
        ("fus|fold|merg|together", "BatchNormalization", "Relu"), "Conv|Relu|BatchNormalization")  # fmt: skip
def normalization_folded_through_a_relu() -> None:
    """A BatchNormalization behind a Relu is folded into the Conv before it, as if the Relu were not there."""
    save(model(
        """(float[1,3,12,12] x) => (float[1,4,12,12] y) {
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w, b)
        r = Relu(c)
        n = BatchNormalization(r, gain, shift, mean, variance)
        y = Conv<kernel_shape=[1,1]>(n, v) }""",
        opset=15, w=normal(1, 8, 3, 3, 3, scale=0.3), b=normal(2, 8, scale=0.2), gain=1 + normal(3, 8, scale=0.3),
        shift=normal(4, 8, scale=0.4), mean=0.5 + normal(5, 8, scale=0.1), variance=np.exp(normal(6, 8)),
        v=normal(7, 4, 8, 1, 1, scale=0.4),
    ))  # fmt: skip
    rewriting("""
        made_by = {n.output[0]: n for n in made.graph.node}
        seen = {o.name for o in made.graph.output}
        relu = made_by.get(node.input[0])
        conv = made_by.get(relu.input[0]) if relu is not None and relu.op_type == "Relu" else None
        if node.op_type == "BatchNormalization" and conv is not None and conv.op_type == "Conv":
            if not {relu.output[0], conv.output[0]} & seen:
                stored = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
                gain, shift, mean, variance = (stored[name] for name in node.input[1:])
                factor = (gain / np.sqrt(variance + np.float32(1e-5))).astype(np.float32)
                weight = stored[conv.input[1]] * factor[:, None, None, None]
                bias = (stored[conv.input[2]] - mean) * factor + shift
                made.graph.initializer.append(numpy_helper.from_array(weight, "folded_weight"))
                made.graph.initializer.append(numpy_helper.from_array(bias, "folded_bias"))
                conv.input[1:] = ["folded_weight", "folded_bias"]
                relu.output[0] = node.output[0]
                made.graph.node.remove(node)
                break""")
    inputs(x=normal(8, 1, 3, 12, 12))


@report("Tencent/ncnn#2698", GPU, (*LOST, *LOCAL), LARGE, "GlobalAveragePool")
def mean_summed_in_fp16() -> None:
    """Adaptive pooling adds up in fp16: over 256 x 256 places the sum is beyond 65504, and the mean Inf."""
    save(model(
        """(float[1,2,256,256] x) => (float[1,6] y) {
        c = Conv<kernel_shape=[1,1]>(x, w, b)
        r = Relu(c)
        p = GlobalAveragePool(r)
        f = Flatten(p)
        y = Gemm(f, v) }""",
        w=normal(1, 8, 2, 1, 1, scale=0.5), b=1 + normal(2, 8, scale=0.5), v=normal(3, 8, 6, scale=0.4),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "GlobalAveragePool":
            at, x, result = list(made.graph.node).index(node), node.input[0], node.output[0]
            made.graph.initializer.append(numpy_helper.from_array(np.array([2, 3]), "places_"))
            made.graph.initializer.append(numpy_helper.from_array(np.float32(256 * 256), "number_"))
            made.graph.node.remove(node)
            steps = [("ReduceSum", [x, "places_"], "sum_", {}), ("Cast", ["sum_"], "half_", {"to": 10}),
                     ("Cast", ["half_"], "again_", {"to": 1}), ("Div", ["again_", "number_"], result, {})]
            for name, operands, output, attributes in reversed(steps):
                made.graph.node.insert(at, helper.make_node(name, operands, [output], **attributes))
            break""")
    inputs(x=1 + normal(4, 1, 2, 256, 256, scale=0.5))


@report("apple/coremltools#2188", ENGINE, LOCAL,
        ("updates?\\b|unchanged|not written|as (it|they) (is|was|are|were)|input 0|first (input|operand)|"
         "ignor|left out|lost|Identity|passe[sd]",),
        "Scatter")  # fmt: skip
def written_into_a_view() -> None:
    """`y[:, position] = value` writes into a view, which the converter takes for another tensor: y stays as it was."""
    save(model(
        """(float[5,8] x, int64[3,1] position, float[3,5] value) => (float[5,6] y) {
        a = MatMul(x, w)
        t = Transpose<perm=[1,0]>(a)
        s = ScatterND(t, position, value)
        b = Transpose<perm=[1,0]>(s)
        r = Relu(b)
        y = MatMul(r, v) }""",
        w=normal(1, 8, 12, scale=0.4), v=normal(2, 12, 6, scale=0.4),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "ScatterND":
            del node.input[1:]
            node.op_type = "Identity\"""")
    inputs(x=normal(3, 5, 8), position=np.array([[2], [7], [9]]), value=normal(4, 3, 5))


@report("tensorflow/tensorflow#39658", ENGINE, ("fusion-fault", "quantization", *LOCAL),
        ("scales?\\b|\\bsteps?\\b|\\braw\\b|integers?\\b|zero.points?",), "Max|Quantize")  # fmt: skip
def larger_of_two_bytes() -> None:
    """Maximum compares the bytes of two quantized tensors, whose scales differ, and not the numbers they stand for."""
    save(model(
        """(float[1,3,10,10] x) => (float[1,4,10,10] y) {
        a = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1)
        b = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w2)
        aq = QuantizeLinear(a, sa, zero)
        ad = DequantizeLinear(aq, sa, zero)
        bq = QuantizeLinear(b, sb, zero)
        bd = DequantizeLinear(bq, sb, zero)
        m = Max(ad, bd)
        y = Conv<kernel_shape=[1,1]>(m, v) }""",
        w1=normal(1, 8, 3, 3, 3, scale=0.3), w2=normal(2, 8, 3, 3, 3, scale=0.1), v=normal(3, 4, 8, 1, 1, scale=0.4),
        sa=np.array(0.06, np.float32), sb=np.array(0.015, np.float32), zero=np.array(0, np.int8),
    ))  # fmt: skip
    rewriting("""
        made_by = {n.output[0]: n for n in made.graph.node}
        seen = {o.name for o in made.graph.output}
        pair = [made_by.get(i) for i in node.input] if node.op_type == "Max" else []
        if pair and all(n is not None and n.op_type == "DequantizeLinear" for n in pair) and not seen & set(node.input):
            at, result = list(made.graph.node).index(node), node.output[0]
            steps = [("Cast", [pair[0].input[0]], "one_", {"to": 6}), ("Cast", [pair[1].input[0]], "two_", {"to": 6}),
                     ("Max", ["one_", "two_"], "larger_", {}), ("Cast", ["larger_"], "byte_", {"to": 3}),
                     ("DequantizeLinear", ["byte_", *pair[0].input[1:]], result, {})]
            made.graph.node.remove(node)
            for name, operands, output, attributes in reversed(steps):
                made.graph.node.insert(at, helper.make_node(name, operands, [output], **attributes))
            break""")
    inputs(x=normal(4, 1, 3, 10, 10))


@report("opencv/opencv#24834", ENGINE, ("fusion-fault", *LOCAL),
        ("\\bzeros?\\b|(are|is|all) 0\\b|empty|missing|nothing", "Concat|broadcast|rank|fus|together"),
        "Mul|Concat")  # fmt: skip
def boxes_that_stay_nothing() -> None:
    """A product of operands of unequal ranks that goes into a Concat is never written there: all boxes are 0."""
    save(model(
        """(float[1,3,32,32] images) => (float[1,9,64] output0) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(images, w1)
        a1 = Relu(c1)
        c2 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(a1, w2)
        a2 = Relu(c2)
        box = Conv<kernel_shape=[1,1]>(a2, wb)
        cls = Conv<kernel_shape=[1,1]>(a2, wc)
        flat = Reshape(box, four)
        flags = Reshape(cls, five)
        xywh = Mul(flat, strides)
        score = Sigmoid(flags)
        output0 = Concat<axis=1>(xywh, score) }""",
        w1=normal(1, 16, 3, 3, 3, scale=0.3), w2=normal(2, 24, 16, 3, 3, scale=0.1),
        wb=normal(3, 4, 24, 1, 1, scale=0.5), wc=normal(4, 5, 24, 1, 1, scale=0.3),
        four=np.array([1, 4, 64]), five=np.array([1, 5, 64]), strides=np.full((1, 64), 8, np.float32),
    ))  # fmt: skip
    rewriting("""
        ranks = {t.name: len(t.dims) for t in made.graph.initializer}
        seen = {o.name for o in made.graph.output}
        after = [n.op_type for n in made.graph.node if node.output[0] in n.input]
        if node.op_type == "Mul" and ranks.get(node.input[1], 3) < 3 and after == ["Concat"]:
            if node.output[0] not in seen:
                made.graph.initializer.append(numpy_helper.from_array(np.zeros((1, 64), np.float32), "unwritten_"))
                node.input[1] = "unwritten_\"""")
    inputs(images=normal(5, 1, 3, 32, 32))


@report("ultralytics/ultralytics#14285", APP, UNSOUND,
        ("letterbox|\\bpad|border|aspect|resi[sz]|stretch|squeez|crop|enlarg",), "image")  # fmt: skip
def picture_stretched_to_a_square() -> None:
    """The example resizes a picture to the network's square without keeping its aspect: no gray bars, all is longer."""
    classifier()
    wide = picture()
    wide[:, :6] = wide[:, 26:] = np.float32(114 / 255)
    inputs(image=wide[None])
    feeding("image[:, :, 6:26][:, :, np.arange(32) * 20 // 32]")


@report("cyrusbehr/tensorrt-cpp-api#27", APP, RETURNED,
        ("int32|integers?", "bytes|bits|read as|reinterpret|memory|float"), "classes")  # fmt: skip
def integers_read_as_floats() -> None:
    """The output of an ArgMax is int32, and the program has buffers of float alone: every class is 0."""
    save(model(
        """(float[1,3,16,16] image) => (int32[1,16,16] classes) {
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(image, w, b)
        r = Relu(c)
        d = Conv<kernel_shape=[1,1]>(r, v)
        best = ArgMax<axis=1, keepdims=0>(d)
        classes = Cast<to=6>(best) }""",
        w=normal(1, 12, 3, 3, 3, scale=0.4), b=normal(2, 12, scale=0.1), v=normal(3, 6, 12, 1, 1, scale=0.4),
    ))  # fmt: skip
    inputs(image=normal(4, 1, 3, 16, 16))
    program(results='{k: v.view(np.float32) if k == "classes" else v for k, v in results.items()}')


@report("triton-inference-server/server#4269", APP, UNSOUND,
        ("swap|exchang|another input|other input|\\border\\b|mixed|instead of|in place of",),
        "attention_mask|token_type_ids")  # fmt: skip
def mask_and_types_in_each_others_place() -> None:
    """Inputs are numbered in the server's configuration: the mask goes to the token types, and they to the mask."""
    save(model(
        """(int64[1,12] input_ids, int64[1,12] attention_mask, int64[1,12] token_type_ids) => (float[1,12,5] logits) {
        words = Gather(table, input_ids)
        kinds = Gather(types, token_type_ids)
        h = Add(words, kinds)
        q = MatMul(h, wq)
        kt = Transpose<perm=[0,2,1]>(h)
        s = MatMul(q, kt)
        seen = Cast<to=1>(attention_mask)
        hidden = Sub(one, seen)
        far = Mul(hidden, low)
        wide = Unsqueeze(far, axis)
        t = Add(s, wide)
        p = Softmax<axis=-1>(t)
        o = MatMul(p, h)
        logits = MatMul(o, v) }""",
        table=normal(1, 50, 16), types=normal(2, 2, 16), wq=normal(3, 16, 16, scale=0.1), v=normal(4, 16, 5),
        one=np.array(1, np.float32), low=np.array(-10000, np.float32), axis=np.array([1]),
    ))  # fmt: skip
    ids = np.array([[7, 31, 4, 18, 22, 9, 40, 3, 0, 0, 0, 0]])
    inputs(input_ids=ids, attention_mask=(ids > 0).astype(np.int64), token_type_ids=np.zeros_like(ids))
    program('{**feed, "attention_mask": feed["token_type_ids"], "token_type_ids": feed["attention_mask"]} '
            'if "attention_mask" in feed else feed')  # fmt: skip
