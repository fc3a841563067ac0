"""What a decoder promises: steps after a cache say what the whole sequence says, and no key counts that is hidden."""

import numpy as np
import onnx
import onnxruntime
import pytest

from tensortriage_testing import gpt2_decoder, llama_decoder
from tensortriage_testing.simulated.approximations import gelu

SMALL = {"layers": 2, "heads": 2, "depth": 8, "vocabulary": 13}
WORDS = np.array([[3, 1, 4, 1, 5]])


@pytest.fixture(params=[gpt2_decoder, llama_decoder], ids=["gpt2", "llama"])
def session(request):
    made = request.param(**SMALL)
    return onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])


def run(session, words, *, caches=None, mask=None, positions=None):
    """Return the logits, and the caches under the names that the next step reads them by."""
    names = [value.name for value in session.get_inputs() if value.name.startswith("past")]
    if caches is None:
        caches = {name: np.zeros((len(words), 2, 0, 8), np.float32) for name in names}
    past = caches[names[0]].shape[2]
    total = past + words.shape[1]
    feed = {
        "input_ids": words,
        "attention_mask": np.ones((len(words), total), np.int64) if mask is None else mask,
        "position_ids": np.tile(np.arange(past, total), (len(words), 1)) if positions is None else positions,
        **caches,
    }
    used = {value.name for value in session.get_inputs()}
    logits, *rest = session.run(None, {name: array for name, array in feed.items() if name in used})
    return logits, dict(zip(names, rest, strict=True))


def test_steps_say_what_the_whole_sequence_says(session):
    whole, cache = run(session, WORDS)
    first, caches = run(session, WORDS[:, :2])
    found = [first]
    for index in range(2, 5):
        logits, caches = run(session, WORDS[:, index : index + 1], caches=caches)
        found.append(logits)
    np.testing.assert_allclose(np.concatenate(found, axis=1), whole, atol=1e-4)
    for name, array in cache.items():
        np.testing.assert_allclose(caches[name], array, atol=1e-5)


def test_no_word_sees_a_later_one(session):
    whole, _ = run(session, WORDS)
    other = WORDS.copy()
    other[0, 3] = 7
    changed, _ = run(session, other)
    np.testing.assert_allclose(changed[:, :3], whole[:, :3], atol=1e-5)
    assert all(np.abs(changed - whole)[0, index].max() > 1e-2 for index in (3, 4))


def test_a_hidden_word_does_not_count(session):
    mask = np.array([[1, 0, 1, 1, 1]])
    other = WORDS.copy()
    other[0, 1] = 7
    hidden, changed = (run(session, words, mask=mask)[0] for words in (WORDS, other))
    np.testing.assert_allclose(changed[:, 2:], hidden[:, 2:], atol=1e-5)
    assert np.abs(hidden - run(session, WORDS)[0])[0, 2:].max() > 1e-2


def test_positions_count(session):
    """Learned positions count as they are, rotary ones by their distance."""
    whole, _ = run(session, WORDS)
    apart, _ = run(session, WORDS, positions=np.array([[0, 2, 4, 6, 8]]))
    assert np.abs(apart - whole).max() > 1e-2
    shifted, _ = run(session, WORDS, positions=np.arange(3, 8)[None])
    rotary = not any(value.name.startswith("past_key_values") for value in session.get_inputs())
    assert (np.abs(shifted - whole).max() < 1e-3) == rotary


def test_one_layer_is_what_the_papers_say():
    """GPT-2's block (Radford et al. 2019) in numpy."""
    made = gpt2_decoder(**{**SMALL, "layers": 1})
    w = {tensor.name: onnx.numpy_helper.to_array(tensor).astype(np.float64) for tensor in made.graph.initializer}

    def norm(x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return x * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    def attention(x):
        query, key, value = (
            linear(x, f"{layer}/self_attn/{word}_proj").reshape(5, 2, 8).transpose(1, 0, 2) for word in "qkv"
        )
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(8)
        powers = np.exp(scores - scores.max(-1, keepdims=True)) * np.tri(5)
        return ((powers / powers.sum(-1, keepdims=True)) @ value).transpose(1, 0, 2).reshape(5, 16)

    layer = "/model/layers.0"
    x = w["model.embed_tokens.weight"][WORDS[0]] + w["model.positions.weight"][:5]
    x = x + linear(attention(norm(x, f"{layer}/input_norm")), f"{layer}/self_attn/o_proj")
    hidden = linear(norm(x, f"{layer}/post_norm"), f"{layer}/mlp/up_proj")
    x = x + linear(gelu(hidden), f"{layer}/mlp/down_proj")
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(run(session, WORDS)[0][0], norm(x, "/model/norm") @ w["lm_head.weight"], atol=1e-4)


def test_the_seed_decides_the_weights():
    assert gpt2_decoder(**SMALL) == gpt2_decoder(**SMALL)
    assert gpt2_decoder(**SMALL) != gpt2_decoder(**SMALL, seed=1)
