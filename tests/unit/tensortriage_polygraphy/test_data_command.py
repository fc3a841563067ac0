import pytest

from tensortriage_polygraphy.data_command import is_json


@pytest.mark.parametrize(
    ("name", "contents", "expected"),
    [
        ("a.json", b"{}", True),
        ("outputs", b"  [1]", True),  # whatever a file is called
        ("a.npz", b"", False),
        ("a.safetensors", b"\0" * 8, False),
        ("missing.npz", None, False),
        ("a.pkl", b"{not json", False),
        ("a.txt", b"words", False),
        ("a.npz", b"\x93NUMPY", False),
    ],
)
def test_json_by_name_and_contents(tmp_path, name, contents, expected):
    path = tmp_path / name
    if contents is not None:
        path.write_bytes(contents)
    assert is_json(path) is expected
    assert not is_json(tmp_path)
