import models


def test_operands_that_hold_shapes_and_axes():
    graph = models.parse("""
        g (float[2, 3] x, int64[2] shape, int64[1] axes) => (float[A, B] y) {
            a = Reshape(x, shape)
            b = Unsqueeze(a, axes)
            y = Squeeze(b, axes)
        }""").graph
    assert graph.shape_like == {"shape", "axes"}


def test_everything_between_a_shape_and_its_use():
    graph = models.parse("""
        g (float[2, 3] x) => (float[A, B] y) <int64[1] zero = {0}, float[1] half = {0.5}> {
            s = Shape(x)
            f = Cast <to = 1> (s)
            h = Mul(f, half)
            i = Cast <to = 7> (h)
            n = Gather(i, zero)
            one = Constant <value_ints = [1]> ()
            t = Concat <axis = 0> (n, one)
            e = Exp(x)
            y = Tile(e, t)
        }""").graph
    assert graph.shape_like == {"s", "f", "half", "h", "i", "zero", "n", "one", "t"}


def test_data_that_decide_a_shape_are_not_shape_like_themselves():
    graph = models.parse("""
        g (float[N] x, float[N] w) => (float[M] y) {
            d = Mul(x, w)
            total = ReduceMax <keepdims = 0> (d)
            k = Cast <to = 7> (total)
            zero = Constant <value_int = 0> ()
            one = Constant <value_int = 1> ()
            r = Range(zero, k, one)
            y = Cast <to = 1> (r)
        }""").graph
    assert graph.shape_like == {"zero", "k", "one"}


def test_a_shape_used_as_data_is_not_shape_like():
    graph = models.parse("""
        g (float[N] x) => (float[N] y) { s = Shape(x)  f = Cast <to = 1> (s)  y = Mul(x, f) }""").graph
    assert graph.shape_like == frozenset()


def test_positions_count_and_omitted_operands_are_no_values():
    graph = models.parse("""
        g (float[1, 1, 2, 2] x, float[4] scales, int64[1] starts, int64[1] ends) => (float[A, B, C, D] y) {
            r = Resize(x, , scales)
            y = Slice(r, starts, ends)
        }""").graph
    assert graph.shape_like == {"scales", "starts", "ends"}


def test_operators_of_other_domains_are_not_guessed_at():
    graph = models.parse("""
        <ir_version: 10, opset_import: ["": 18, "own": 1]>
        g (float[2] x, int64[1] shape) => (float[N] y) { y = own.Reshape(x, shape) }""").graph
    assert graph.shape_like == frozenset()
