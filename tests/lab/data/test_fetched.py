"""The shipped sentences, and what is shown of models that aren't shipped: their recording is of these sentences."""

import json

import numpy as np
import pytest

from isonb.errors import DependencyError
from isonb.models.catalogue import EMBEDDED, embedded_folder
from isonb.models.loading import encode, load
from isonb_lab.data import corpus, fetched
from isonb_lab.data.corpus import sentences


def quantiles(name):
    """The cosines of sentences about different topics, pair by pair."""
    corpus = sentences()
    states = encode(load(name), [sentence.text for sentence in corpus], progress=False)
    hidden, mask = states.hidden_states[-1].numpy().astype(float), states.mask.numpy()
    rows = np.stack([row[real].mean(0) for row, real in zip(hidden, mask, strict=True)])
    cosine = rows @ rows.T / np.outer(*2 * [np.linalg.norm(rows, axis=1)])
    topics = np.array([sentence.topic for sentence in corpus])
    return np.quantile(cosine[topics[:, None] != topics], [0.5, 0.99])


def test_the_recording_is_of_these_sentences_and_of_every_fetched_model():
    about = json.loads(fetched.FILE.read_text())
    assert about["texts"] == fetched.texts_digest()
    assert set(about["models"]) == {name for name, entry in EMBEDDED.items() if entry.fetched}


def test_a_reading_has_the_quantiles_of_all_pairs_of_different_topics():
    read = fetched.reading("tiny")
    np.testing.assert_allclose([read["half"], read["top"]], quantiles("tiny"), atol=1e-4)
    assert (read["layers"], read["width"]) == (4, 128)
    assert read["audit"]["floor"][0] < read["audit"]["floor"][1] < 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mpnet", "smollm2"])
def test_a_fetched_model_still_reads_as_recorded(name):
    try:
        embedded_folder(EMBEDDED[name])
    except DependencyError:
        pytest.skip("make models fetches it")
    read = fetched.recorded()[name]
    np.testing.assert_allclose([read["half"], read["top"]], quantiles(name), atol=2e-3)


def overlap(a, b):
    first, other = ({*"".join(c.lower() if c.isalnum() else " " for c in text).split()} for text in (a, b))
    return len(first & other) / len(first | other)


def test_sentences_are_different_and_word_overlap_cannot_tell_the_two_kinds_of_pair_apart():
    every = sentences()
    result = {s.id: s for s in every}
    assert len(result) == len({s.text for s in every}) == len(every)
    assert corpus.topics() == sorted({s.topic for s in every})
    pairs = [(s, result[s.paraphrase_of]) for s in every if s.paraphrase_of]
    misses = [(s, result[s.near_miss_of]) for s in every if s.near_miss_of]
    assert all(a.topic == b.topic for a, b in pairs + misses)
    close, far = (np.median([overlap(a.text, b.text) for a, b in some]) for some in (misses, pairs))
    assert close > 0.5 > far
