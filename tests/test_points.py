"""Hidden states to clouds: pooling, layers, groups, and centring."""

import numpy as np
import pytest
import torch
from golden_cases import load
from support import assert_same, check_dtypes, check_gradient, check_rejects, normal, uneven

from isonb.errors import DtypeError, ShapeError
from isonb.numerics.rows import centered
from isonb.points import (
    cls_pool,
    label_groups,
    layer_average,
    mean_pool,
    points_from_hidden_states,
    pool,
    token_cloud,
)


def test_centered_keeps_its_shape_far_from_the_origin():
    cloud = normal(4000, 3, seed=1) + 1000
    x = cloud.float()
    exact = x.double() - x.double().mean(-2)
    assert_same(centered(x).double(), exact, rtol=0, atol=2e-7)
    assert centered(x).mean(-2).abs().max() < 1e-6


def test_pooling():
    case = load("tokens_4x12x32")
    tokens, mask = case["tokens"], case["attention_mask"]
    assert_same(cls_pool(tokens), tokens[:, 0])
    want = np.stack([t[m == 1].mean(0) for t, m in zip(tokens.numpy(), mask.numpy(), strict=True)])
    assert_same(mean_pool(tokens, mask), torch.from_numpy(want))
    assert_same(mean_pool(tokens), tokens.mean(1))
    flat = np.concatenate([t[m == 1] for t, m in zip(tokens.numpy(), mask.numpy(), strict=True)])
    assert_same(token_cloud(tokens, mask), torch.from_numpy(flat))
    assert token_cloud(tokens).shape == (48, 32)
    for points in (cls_pool, token_cloud):
        check_gradient(points, uneven(2, 5, 3))
        check_dtypes(points, uneven(2, 5, 3))


def test_layer_average_counts_the_embedding_output_as_layer_zero():
    states = load("minilm_tokens_3s")["hidden_states"]
    assert_same(layer_average(states), (states[0] + states[-1]) / 2)
    assert_same(layer_average(tuple(states), (1, -1)), (states[1] + states[6]) / 2)
    check_gradient(lambda x: layer_average(x, (0, 2)), uneven(3, 2, 4, 3))
    for layers in ((), (7,), (0, -8)):
        check_rejects(layer_average, ShapeError, "7 hidden states", states, layers)


def test_hidden_states_that_are_none_or_of_one_layer_are_refused():
    tokens = uneven(4, 5, 3)
    for states in (None, 3, [], [tokens, "b"], tokens, tokens.numpy(), tokens[0, 0]):
        for points in (points_from_hidden_states, lambda x: pool(x, None, "cls")):
            with pytest.raises(ShapeError, match="hidden_states must be tensors"):
                points(states)
    for states in ([tokens, tokens + 1], torch.stack([tokens, tokens + 1])):
        assert_same(points_from_hidden_states(states)[0], tokens.flatten(0, 1) + 1)
        assert_same(pool(states, None, "cls"), torch.cat([tokens[:, 0], tokens[:, 0] + 1]))
        behind = torch.arange(tokens.shape[1]).expand(tokens.shape[:2]) > 0  # padding on the left
        assert_same(pool(states, behind, "cls"), torch.cat([tokens[:, 1], tokens[:, 1] + 1]))


def test_label_groups_are_the_parts_of_the_cloud():
    x, labels = uneven(8, 3), torch.tensor([4, 0, 4, 7, 0, 4, 7, 7])
    groups = dict(label_groups(x, labels))
    assert list(groups) == [0, 4, 7]
    for label, group in groups.items():
        assert_same(group, x[labels == label])
    for kind, match, rows, wrong in (
        (DtypeError, "labels must be integers", x, labels.double()),
        (ShapeError, r"shape \(8,\)", x, labels[:3]),
        (ShapeError, r"\(n, d\)", x.unsqueeze(0), labels),
    ):
        check_rejects(label_groups, kind, match, rows, wrong)
