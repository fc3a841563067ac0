import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortriage.errors import DataError
from tensortriage.inputs.files.json_view import open_json

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def rebuilt(view):
    """The document, found by walking every view down to its leaves."""
    if view.is_object:
        return {key: rebuilt(value) for key, value in view.fields().items()}
    if view.is_list:
        return [rebuilt(element) for element in view.elements()]
    return view.value()


@given(document=DOCUMENTS, indent=st.sampled_from([None, 0, 4]), is_ascii=st.booleans())
def test_walking_finds_what_parsing_finds(tmp_path_factory, document, indent, is_ascii):
    path = tmp_path_factory.mktemp("json") / "d.json"
    path.write_text(
        json.dumps(document, indent=indent, ensure_ascii=is_ascii), encoding="utf-8", errors="surrogatepass"
    )
    assert rebuilt(open_json(path)) == document


@given(document=DOCUMENTS, data=st.data())
def test_a_truncated_document_is_an_error_with_its_place(tmp_path_factory, document, data):
    whole = json.dumps([document]).encode()
    text = whole[: data.draw(st.integers(0, len(whole) - 1))]
    path = tmp_path_factory.mktemp("json") / "d.json"
    path.write_bytes(text)
    with pytest.raises(DataError) as caught:
        rebuilt(open_json(path))
    assert caught.value.slug == "json-invalid"
    assert "d.json" in caught.value.message


@pytest.mark.parametrize(
    "text", ["[1,]", '{"a":1,}', '{"a" 1}', "{1: 2}", "[1 2]", '{"a":}', "[", "[1}", "]", "[] x", "[NaNa]"]
)
def test_what_is_not_json_is_refused(tmp_path, text):
    path = tmp_path / "d.json"
    path.write_text(text)
    with pytest.raises(DataError):
        rebuilt(open_json(path))


def test_bare_nan_and_infinity_and_a_byte_order_mark_are_accepted(tmp_path):
    path = tmp_path / "d.json"
    path.write_bytes(b"\xef\xbb\xbf [NaN, -Infinity, 1e400] ")
    assert repr(rebuilt(open_json(path))) == "[nan, -inf, inf]"


def test_depth_is_no_danger(tmp_path):
    path = tmp_path / "d.json"
    path.write_text("[" * 200_000 + "]" * 200_000)
    view = open_json(path)
    (inner,) = view.elements()
    with pytest.raises(DataError):
        inner.value()
