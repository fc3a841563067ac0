"""Files of OpenVINO that are none."""

import pytest

from tensortriage.errors import UsageError
from tensortriage_engines.openvino.intermediate import read

LAYER = '<layer id="{0}" name="n" type="Relu"><output><port id="1"/></output></layer>'
CIRCLE = (
    '<net version="11"><layers>' + LAYER.format(0) + LAYER.format(1) + "</layers><edges>"
    '<edge from-layer="0" from-port="1" to-layer="1" to-port="0"/>'
    '<edge from-layer="1" from-port="1" to-layer="0" to-port="0"/></edges></net>'
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<net", "unclosed token"),
        ("<html/>", "its root is <html>"),
        ('<net version="12"/>', "newer than 11"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><net version="11"/>', "declares entities"),
        (CIRCLE, "in a circle"),
        ('<net version="11"><layers><layer id="x"/></layers></net>', "invalid literal"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(tmp_path, text, why):
    (tmp_path / "m.xml").write_text(text)
    (tmp_path / "m.bin").write_bytes(b"")
    with pytest.raises(UsageError) as told:
        read(tmp_path / "m.xml")
    assert told.value.slug == "engine-option-file"
    assert why in told.value.message
    assert told.value.cure
    assert "\n" not in told.value.message


def test_the_constants_belong_to_it(tmp_path):
    (tmp_path / "m.xml").write_text('<net version="11"/>')
    with pytest.raises(UsageError, match=r"m\.bin does not exist"):
        read(tmp_path / "m.xml")
