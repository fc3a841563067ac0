import pytest

from tensortriage.cli.options import split_check


@pytest.mark.parametrize(
    ("words", "ours", "check"),
    [
        ("model.onnx -o out.onnx", "model.onnx -o out.onnx", None),
        ("m.onnx --check cmd --load-inputs x -o y", "m.onnx", "cmd --load-inputs x -o y"),
        ("m.onnx --check cmd -x -- -o out.onnx", "m.onnx -o out.onnx", "cmd -x"),
        ("m.onnx --check-inference cmd", "m.onnx", "cmd"),
        ("--check", "", ""),
        ("m.onnx -- --check cmd", "m.onnx -- --check cmd", None),
    ],
)
def test_words_after_check_belong_to_it(words, ours, check):
    expected = None if check is None else check.split()
    assert split_check(words.split()) == (ours.split(), expected)


def test_a_quoted_check_ends_with_its_quotes():
    assert split_check(["m", "--check", "run x | grep y", "-o", "out"]) == (["m", "-o", "out"], ["run x | grep y"])
    assert split_check(["m", "--check=run x", "-o", "out"]) == (["m", "-o", "out"], ["run x"])


def test_a_program_with_a_space_in_its_path_is_no_quoted_check(tmp_path):
    program = tmp_path / "my check.sh"
    program.write_text("")
    assert split_check(["m", "--check", str(program), "-o", "out"]) == (["m"], [str(program), "-o", "out"])
