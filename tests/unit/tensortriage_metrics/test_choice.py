"""The output that is looked at: by its name, else the first that could be meant."""

import numpy as np
import pytest

from tensortriage_metrics.choice import chosen


def test_a_name_decides_before_the_order():
    outputs = {"hidden": np.zeros((2, 3)), "class_logits": np.zeros((2, 3)), "text": np.array(["a"], object)}
    assert chosen(outputs, "logit") == "class_logits"
    assert chosen(outputs, "box") == "hidden"
    with pytest.raises(ValueError, match="no output has 3 axes"):
        chosen(outputs, "logit", least_axes=3)
