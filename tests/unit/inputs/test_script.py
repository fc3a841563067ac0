import textwrap

import numpy as np
import pytest

from tensortriage.errors import DataError
from tensortriage.inputs.feed import Origin
from tensortriage.inputs.script import script_feeds
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

SPECS = [ValueSpec("x", DType.FLOAT, ("n", 3))]


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / "loader.py"
        path.write_text(textwrap.dedent(text))
        return path

    return write


def test_the_default_function_and_a_named_one(script):
    path = script("""
        import numpy as np
        def load_data():
            for k in range(2):
                yield {"x": np.full((1, 3), k, np.float32)}
        def other():
            return [{"x": np.ones((2, 3), np.float32)}]
    """)
    feeds = list(script_feeds(str(path), SPECS))
    assert [feed.name for feed in feeds] == ["loader.py[0]", "loader.py[1]"]
    assert feeds[1].tensors["x"].tolist() == [[1, 1, 1]]
    assert feeds[1].origin is Origin.REAL
    (feed,) = script_feeds(f"{path}:other", SPECS)
    assert feed.tensors["x"].shape == (2, 3)


def test_a_loader_object_is_told_what_the_inputs_are(script):
    path = script("""
        import numpy as np
        class Loader:
            input_metadata = None
            def __iter__(self):
                for name, (dtype, shape) in self.input_metadata.items():
                    yield {name: np.ones((1, shape[1]), dtype)}
        load_data = Loader
    """)
    (feed,) = script_feeds(str(path), SPECS)
    np.testing.assert_array_equal(feed.tensors["x"], np.ones((1, 3), np.float32), strict=True)


def test_neighbours_can_be_imported_and_arrays_of_other_libraries_used(script, tmp_path):
    (tmp_path / "tensortriage_test_neighbour.py").write_text("VALUE = 4")
    path = script("""
        import numpy as np
        from tensortriage_test_neighbour import VALUE
        class Tensor:
            def detach(self): return self
            def cpu(self): return self
            def numpy(self): return np.full((1, 3), VALUE, np.float32)
        def load_data():
            return [{"x": Tensor()}, {"x": [[1.0, 2.0, 3.0]]}]
    """)
    feeds = list(script_feeds(str(path), SPECS))
    assert [feed.tensors["x"].tolist() for feed in feeds] == [[[4, 4, 4]], [[1, 2, 3]]]


@pytest.mark.parametrize(
    ("text", "slug", "words"),
    [
        ("def load_data():\n    return 1 / 0\n", "script-failed", "line 2: ZeroDivisionError"),
        ("def load_data():\n    yield {'x': 0}[1]\n", "script-failed", "line 2: KeyError"),
        ("import nothing_of_this_name\n", "script-failed", "line 1: ModuleNotFoundError"),
        ("def load_data(:\n", "script-failed", "line 1: SyntaxError"),
        ("raise SystemExit(0)\n", "script-failed", "SystemExit"),
        ("def load_data(path):\n    return []\n", "script-failed", "TypeError"),
        ("", "script-unusable", "no function 'load_data'"),
        ("def load_data():\n    return []\n", "feed-empty", "no sample"),
        ("def load_data():\n    return {'x': 1}\n", "script-not-feed", "returned a dict"),
        ("def load_data():\n    return None\n", "script-not-feed", "returned a NoneType"),
        ("def load_data():\n    yield None\n", "script-not-feed", "yielded a NoneType"),
        ("def load_data():\n    yield {'x': object()}\n", "script-not-feed", "'x' is a object"),
        ("def load_data():\n    yield {'y': [1.0]}\n", "feed-input-unknown", "loader.py[0]"),
    ],
)
def test_what_goes_wrong_is_told_with_its_line(script, text, slug, words):
    with pytest.raises(DataError) as caught:
        list(script_feeds(str(script(text)), SPECS))
    assert caught.value.slug == slug
    assert words in caught.value.message


def test_what_is_no_script_is_refused(tmp_path):
    (tmp_path / "data.npz").write_bytes(b"PK")
    for name in ("absent.py", "data.npz"):
        with pytest.raises(DataError) as caught:
            list(script_feeds(str(tmp_path / name), SPECS))
        assert caught.value.slug == "script-unusable"


def test_a_loader_may_fill_one_buffer_again_and_again(script):
    path = script("""
        import numpy as np
        def load_data():
            buffer = np.empty((1, 3), np.float32)
            for k in range(3):
                buffer[...] = k
                yield {"x": buffer}
    """)
    assert [feed.tensors["x"][0, 0] for feed in script_feeds(str(path), SPECS)] == [0, 1, 2]
    assert [feed.tensors["x"][0, 0] for feed in list(script_feeds(str(path), SPECS))] == [0, 1, 2]


def test_what_a_script_prints_is_no_part_of_a_document(script, capsys):
    path = script("""
        print("imported")
        def load_data():
            print("called")
            yield {"x": [[1.0, 2.0, 3.0]]}
    """)
    list(script_feeds(str(path), SPECS))
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "imported\ncalled\n")


def test_lines_are_told_of_a_script_beside_the_user(script, monkeypatch):
    path = script("def load_data():\n    yield {'x': 1 / 0}\n")
    monkeypatch.chdir(path.parent)
    with pytest.raises(DataError, match=r"loader\.py, line 2: ZeroDivisionError"):
        list(script_feeds(path.name, SPECS))
