"""Execution providers of ONNX Runtime, its optimizer and its quantizer, right elsewhere: third collection."""

import numpy as np
import onnx
from onnxruntime.quantization import QuantType

from reports import FILE, TARGET, inputs, model, normal, report, rewriting, save, script
from reports.narrow import GPU
from reports.quantization import QUANTIZED, convolutions, quantized

ENGINE = TARGET + "script:engine.py:Engine"


@report("microsoft/onnxruntime#11660", FILE, ("model-changed", *QUANTIZED), ("Relu",),
        "Relu|r1|r2|c1|c2")  # fmt: skip
def relu_taken_out_with_symmetric_ranges() -> None:
    """The quantizer leaves Relu out, as a range from 0 on would cut there; a symmetric range keeps what is negative."""
    save(convolutions())
    quantized([normal(s, 1, 3, 16, 16) for s in range(10, 18)], activation_type=QuantType.QInt8,
              per_channel=True, extra_options={"ActivationSymmetric": True})  # fmt: skip
    file = onnx.load("target.onnx")
    for relu in [n for n in file.graph.node if n.op_type == "Relu"]:
        gone = [relu]
        while gone[-1].op_type != "Conv":
            gone.append(next(n for n in file.graph.node if gone[-1].input[0] in n.output))
        gone.pop().output[0] = relu.output[0]
        for node in gone:
            file.graph.node.remove(node)
    save(file, "target.onnx")
    inputs(x=normal(20, 1, 3, 16, 16))


@report("microsoft/onnxruntime#22177", ENGINE, ("fusion-fault",), ("Pad", "fus|together"), "AveragePool")
def padding_fused_into_an_average() -> None:
    """Pad fusion hands the zeros of a Pad to AveragePool as its own border, which it does not count in the mean."""
    save(model(
        """(float[1,3,12,12] x) => (float[1,4,6,6] y) {
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w)
        r = Relu(c)
        p = Pad(r, around)
        a = AveragePool<kernel_shape=[3,3], strides=[2,2]>(p)
        y = Conv<kernel_shape=[1,1]>(a, v) }""",
        w=normal(1, 8, 3, 3, 3, scale=0.4), around=np.array([0, 0, 1, 1, 0, 0, 1, 1]), v=normal(2, 4, 8, 1, 1),
    ))  # fmt: skip
    rewriting("""
        pads = {n.output[0]: n for n in made.graph.node if n.op_type == "Pad"}
        if node.op_type == "AveragePool" and node.input[0] in pads:
            pad = pads[node.input[0]]
            seen = {o.name for o in made.graph.output} | {i for n in made.graph.node if n is not node for i in n.input}
            if pad.output[0] not in seen - set(node.input):
                node.input[0] = pad.input[0]
                node.attribute.append(helper.make_attribute("pads", [1, 1, 1, 1]))
                node.attribute.append(helper.make_attribute("count_include_pad", 0))
                made.graph.node.remove(pad)
            break""")
    inputs(x=normal(3, 1, 3, 12, 12))


@report("microsoft/onnxruntime#28976", GPU, ("local-fault",),
        ("20\\d\\d|2,0\\d\\d|position|index|behind|beyond|columns|part of|rows",), "ConvTranspose")  # fmt: skip
def positions_counted_in_fp16() -> None:
    """WebGPU's ConvTranspose counts positions in the tensor's type: in fp16 odd ones beyond 2048 are others."""
    save(model(
        """(float[1,4,1,1400] x) => (float[1,2,1,2802] y) {
        c = Conv<kernel_shape=[1,1]>(x, w)
        t = ConvTranspose<kernel_shape=[1,4], strides=[1,2]>(c, v)
        y = Tanh(t) }""",
        w=normal(1, 6, 4, 1, 1, scale=0.4), v=normal(2, 6, 2, 1, 4, scale=0.3),
    ))  # fmt: skip
    script(
        "engine.py",
        """
        import numpy as np
        import onnx
        import onnxruntime
        from onnx import helper, numpy_helper, shape_inference


        def sources(length, kernel, stride):
            half = np.float16
            wide = (length - 1) * stride + kernel
            taken = np.full((kernel, wide), length)
            for place in range(wide):
                for tap in range(kernel):
                    at = half(half(half(place - kernel + 1) + half(tap)) / half(stride))
                    if 0 <= at < half(length) and at == np.floor(at):
                        taken[kernel - 1 - tap, place] = int(at)
            return taken


        class Engine:
            def compile(self, model_path, options):
                made = shape_inference.infer_shapes(onnx.load(model_path))
                values = [*made.graph.value_info, *made.graph.input]
                shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}
                for at, node in enumerate(list(made.graph.node)):
                    if node.op_type != "ConvTranspose":
                        continue
                    n, c, _, length = shapes[node.input[0]]
                    taken = sources(length, 4, 2)
                    name = node.output[0]
                    for word, array in (
                        ("taken", taken.ravel()), ("border", np.zeros((n, c, 1, 1), np.float32)),
                        ("cut", np.array([n, c, *taken.shape])), ("one", np.array([2])), ("flat", np.array([2])),
                    ):
                        made.graph.initializer.append(numpy_helper.from_array(array, f"{name}_{word}"))
                    steps = [
                        ("Concat", [node.input[0], f"{name}_border"], "long", {"axis": 3}),
                        ("Gather", [f"{name}_long", f"{name}_taken"], "picked", {"axis": 3}),
                        ("Reshape", [f"{name}_picked", f"{name}_cut"], "taps", {}),
                        ("Squeeze", [node.input[1], f"{name}_one"], "weights", {}),
                        ("Einsum", [f"{name}_taps", f"{name}_weights"], "sums", {"equation": "nckp,cmk->nmp"}),
                        ("Unsqueeze", [f"{name}_sums", f"{name}_flat"], "", {}),
                    ]
                    made.graph.node.remove(node)
                    for op, operands, word, attributes in reversed(steps):
                        result = f"{name}_{word}" if word else name
                        made.graph.node.insert(at, helper.make_node(op, operands, [result], **attributes))
                    break
                self.session = onnxruntime.InferenceSession(made.SerializeToString())
                return self

            def run(self, feed):
                names = [o.name for o in self.session.get_outputs()]
                return dict(zip(names, self.session.run(names, feed)))
        """,
    )
    inputs(x=normal(3, 1, 4, 1, 1400))


@report("microsoft/onnxruntime#15949", ENGINE, ("local-fault",), ("axis|axes",), "Softmax")
def softmax_over_one() -> None:
    """NNAPI's Softmax of opset 12 runs over one axis, behind a change of layout one of size 1: every score is 1."""
    save(model(
        """(float[1,3,8,8] x) => (float[1,10,1,1] y) {
        c = Conv<kernel_shape=[3,3]>(x, w)
        r = Relu(c)
        p = GlobalAveragePool(r)
        y = Softmax<axis=1>(p) }""",
        opset=12, w=normal(1, 10, 3, 3, 3),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "Softmax":
            at, x, result = list(made.graph.node).index(node), node.input[0], node.output[0]
            made.graph.node.remove(node)
            steps = [("ReduceMax", [x], "most_", {"axes": [2]}), ("Sub", [x, "most_"], "low_", {}),
                     ("Exp", ["low_"], "power_", {}), ("ReduceSum", ["power_"], "total_", {"axes": [2]}),
                     ("Div", ["power_", "total_"], result, {})]
            for name, operands, output, attributes in reversed(steps):
                made.graph.node.insert(at, helper.make_node(name, operands, [output], **attributes))
            break""")
    inputs(x=normal(2, 1, 3, 8, 8))


@report("openvinotoolkit/openvino#32839", ENGINE, ("non-finite", "local-fault", "range-overflow"),
        ("overflow|88\\.|too large|beyond|subtract|largest|maximum|max\\(",), "ReduceLogSumExp")  # fmt: skip
def logarithm_of_a_sum_of_powers() -> None:
    """OpenVINO's provider computes ReduceLogSumExp as it is spelt, without taking off the maximum: Inf from 89 on."""
    save(model(
        """(float[4,16] x) => (float[4] y) {
        a = MatMul(x, w)
        s = ReduceLogSumExp<axes=[1], keepdims=0>(a)
        y = Mul(s, share) }""",
        opset=12, w=normal(1, 16, 12), share=np.array(0.1, np.float32),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "ReduceLogSumExp":
            at, x, result = list(made.graph.node).index(node), node.input[0], node.output[0]
            made.graph.node.remove(node)
            steps = [("Exp", [x], "power_", {}), ("ReduceSum", ["power_"], "total_", {"axes": [1], "keepdims": 0}),
                     ("Log", ["total_"], result, {})]
            for name, operands, output, attributes in reversed(steps):
                made.graph.node.insert(at, helper.make_node(name, operands, [output], **attributes))
            break""")
    inputs(x=normal(2, 4, 16, scale=30))


@report("microsoft/onnxruntime#28461", ENGINE, ("non-finite", "local-fault"),
        ("-inf|masked|minus inf|infinit", "all|every|whole|row"), "ReduceLogSumExp")  # fmt: skip
def logarithm_of_nothing() -> None:
    """The maximum is taken off before Exp, and -Inf less -Inf is NaN where every value is masked; right is -Inf."""
    save(model(
        """(float[4,16] x, bool[4,12] seen) => (float[4] y) {
        a = MatMul(x, w)
        m = Where(seen, a, hidden)
        s = ReduceLogSumExp<axes=[1], keepdims=0>(m)
        y = Sigmoid(s) }""",
        w=normal(1, 16, 12), hidden=np.array(-np.inf, np.float32),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "ReduceLogSumExp":
            at, x, result = list(made.graph.node).index(node), node.input[0], node.output[0]
            made.graph.node.remove(node)
            made.graph.initializer.append(numpy_helper.from_array(np.array([1]), "last_"))
            steps = [("ReduceMax", [x], "most_", {"axes": [1]}), ("Sub", [x, "most_"], "low_", {}),
                     ("Exp", ["low_"], "power_", {}), ("ReduceSum", ["power_", "last_"], "total_", {"keepdims": 1}),
                     ("Log", ["total_"], "log_", {}), ("Add", ["log_", "most_"], "wide_", {}),
                     ("Squeeze", ["wide_", "last_"], result, {})]
            for name, operands, output, attributes in reversed(steps):
                made.graph.node.insert(at, helper.make_node(name, operands, [output], **attributes))
            break""")
    seen = np.random.default_rng(3).random((4, 12)) < 0.6
    seen[2] = False
    inputs(x=normal(2, 4, 16), seen=seen)


@report("microsoft/onnxruntime#29788", ENGINE + ",optimization=all", ("intermittent", "nondeterministic-run"),
        ("optimi[sz]ation|constant|fold",))  # fmt: skip
def folded_constant_without_its_memory() -> None:
    """Constant folding keeps a reshaped constant in memory that it frees: other numbers, or NaN, in every session."""
    save(model(
        """(float[4,16] x) => (float[4,6] y) {
        m = Reshape(w, shape)
        a = MatMul(x, m)
        r = Relu(a)
        y = MatMul(r, v) }""",
        w=normal(1, 1, 16, 16, scale=0.3), shape=np.array([16, 16]), v=normal(2, 16, 6, scale=0.3),
    ))  # fmt: skip
    script(
        "engine.py",
        """
        import numpy as np
        import onnx
        import onnxruntime
        from onnx import numpy_helper


        class Engine:
            def compile(self, model_path, options):
                made = onnx.load(model_path)
                stored = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
                folds = options.get("optimization", "all") != "none"
                outputs = {o.name for o in made.graph.output}
                for node in [n for n in made.graph.node if folds and n.op_type == "Reshape"]:
                    if node.input[0] in stored and node.output[0] not in outputs:
                        kept = stored[node.input[0]].reshape(stored[node.input[1]]).copy()
                        freed = np.random.default_rng()
                        kept[: len(kept) // 2] = freed.standard_normal(kept[: len(kept) // 2].shape) * 3
                        if freed.random() < 0.3:
                            kept.flat[0] = np.nan
                        made.graph.node.remove(node)
                        made.graph.initializer.append(numpy_helper.from_array(kept, node.output[0]))
                options = onnxruntime.SessionOptions()
                options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
                self.session = onnxruntime.InferenceSession(made.SerializeToString(), options)
                return self

            def run(self, feed):
                names = [o.name for o in self.session.get_outputs()]
                return dict(zip(names, self.session.run(names, feed)))
        """,
    )
    inputs(x=normal(3, 4, 16))
