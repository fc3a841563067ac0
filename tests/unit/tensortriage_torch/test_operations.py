"""Aligning the operations of a file with those of the network: expected pairs are read off the sequences by hand."""

from tensortriage_torch.operations import counterparts, read_operation


def operation(name, operator, line, *arguments, module="layers.0", size=""):
    listed = ", ".join(f"%{each}" for each in arguments) + size
    call = f"%{name} : [num_users=1] = call_function[target=x](args = ({listed}), kwargs = {{}})"
    return read_operation(
        {
            "pkg.torch.onnx.name_scopes": repr(["", module, name]),
            "pkg.torch.onnx.class_hierarchy": repr(["Net", "Layer", operator]),
            "pkg.torch.onnx.stack_trace": f'  File "net.py", line {line}, in forward\n    x',
            "pkg.torch.onnx.fx_node": call,
        }
    )


def same(file, network):
    return {name: each.name for name, each in counterparts(file, network).items()}


def test_metadata_are_read():
    made = operation("mul_1", "aten.mul", 7, "x", "add", "x")
    assert (made.name, made.arguments, made.origin.line) == ("mul_1", ("x", "add"), 7)


def test_one_operation_less_shifts_the_names_but_not_the_pairs():
    network = [operation("mul", "mul", 3, "x"), operation("add", "add", 4, "mul"), operation("mul_1", "mul", 5, "add")]
    file = [operation("add", "add", 4, "x"), operation("mul", "mul", 5, "add")]
    assert same(file, network) == {"add": "add", "mul": "mul_1", "x": "mul"}


def test_another_operator_in_the_same_line_stands_for_what_was_there():
    network = [
        operation("conv", "conv", 3, "x"),
        operation("sigmoid", "sigmoid", 4, "conv"),
        operation("add", "add", 5),
    ]
    file = [operation("conv", "conv", 3, "x"), operation("hard", "hardsigmoid", 4, "conv"), operation("add", "add", 5)]
    assert same(file, network) == {"conv": "conv", "hard": "sigmoid", "add": "add"}


def test_lines_that_moved_do_not_matter():
    network = [operation("mul", "mul", 3, "x"), operation("add", "add", 4, "mul")]
    file = [operation("mul", "mul", 30, "x"), operation("add", "add", 31, "mul")]
    assert same(file, network) == {"mul": "mul", "add": "add"}


def test_a_folded_constant_goes_by_the_operation_that_uses_it():
    network = [operation("cos", "cos", 3, "rates"), operation("mul_2", "mul", 4, "x", "cos")]
    file = [operation("mul", "mul", 4, "x", "cos_1")]
    assert same(file, network) == {"mul": "mul_2", "cos_1": "cos"}


def test_modules_keep_equal_operations_apart():
    network = [operation("a", "mul", 3, module="layers.0"), operation("b", "mul", 3, module="layers.1")]
    assert same([operation("a", "mul", 3, module="layers.1")], network) == {"a": "b"}


def test_operations_in_one_line_are_told_apart_by_their_constants():
    network = [operation("view", "view", 3, "x", size=", [1, 8]"), operation("view_1", "view", 3, "x", size=", [2, 4]")]
    assert same([operation("view", "view", 3, "x", size=", [2, 4]")], network)["view"] == "view_1"


def test_equal_calls_in_one_line_are_told_apart_by_their_names():
    network = [operation(f"view_{number}", "view", 3, f"x_{number}") for number in range(3)]
    assert same([network[0], network[2]], network)["view_2"] == "view_2"
