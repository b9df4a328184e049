"""Options: whatever a class doesn't take is refused when it is built, alike from Python, a file and a command line."""

import doctest
import inspect
import math

import numpy as np
import pytest
import torch
from processes import python

import isonb
from isonb import layers, losses, transforms
from isonb.errors import OptionError
from isonb.options import build, declared, domains
from isonb_lab.methods import method_from, methods
from isonb_lab.methods.base import Contrast
from isonb_lab.runs.settings import EXPERIMENTS
from tests.support import uneven

PUBLIC = {getattr(room, name) for room in (losses, layers, transforms) for name in room.__all__} | {isonb.GlowFlow}
MATHS = sorted((it for it in PUBLIC if inspect.isclass(it) and declared(it)), key=lambda it: it.__name__)
KINDS = [*MATHS, *methods().values(), Contrast, *dict.fromkeys(EXPERIMENTS.values())]
NEEDED = {layers.IsoBN: {"d": 8}, layers.IsotropyLayer: {"d": 8}, isonb.GlowFlow: {"d": 8}}


def wrong(domain):
    """Values outside of a domain: of other types, without a size, past either end, of no such name."""
    kinds, named, low, high = domain
    values = [[1.0], {"a": 1}, torch.ones(2)]
    values += [] if bool in kinds else [True]
    values += [] if str in kinds else ["a word"]
    values += [math.nan, math.inf, -math.inf, 10**400, np.float64("nan")]
    values += [] if {int, float, str} & {*kinds, *map(type, named)} else [7, 0.5]
    values += [0.5] if int in kinds and float not in kinds else []
    values += [] if type(None) in kinds else [None]
    values += [low - 1, low - 1e-9] if low is not None else []
    values += [high + 1, high * (1 + 1e-9) + 1e-9] if high is not None else []
    return values


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in KINDS for name in domains(kind)],
    ids=lambda it: getattr(it, "__name__", it),
)
def test_what_an_option_does_not_take_is_refused_alike_at_every_door(kind, name):
    for value in wrong(domains(kind)[name]):
        text = []
        for door in (lambda inputs: kind(**inputs), lambda settings: build(kind, settings, kind.title())):
            with pytest.raises(OptionError) as error:
                door(NEEDED.get(kind, {}) | {name: value})
            assert type(error.value) is OptionError
            text.append(str(error.value))
        assert text[0] == text[1]
        must, got = text[0].split("; got ", 1)
        assert must == f"{name} of {kind.title()} must be {domains(kind)[name]}"
        assert got.endswith(f". It means: {declared(kind)[name].metadata['help']}.")


@pytest.mark.parametrize("kind", MATHS, ids=lambda kind: kind.__name__)
def test_repr_and_reference_show_every_option(kind):
    built = kind(**NEEDED.get(kind, {}))
    assert [name for name in declared(kind) if f"{name}=" not in repr(built)] == []
    args = kind.__doc__.partition("\nArgs:\n")[2]
    assert [name for name in declared(kind) if f"\n    {name}: " not in "\n" + args] == []
    assert "\nArgs:\n" not in args
    assert list(inspect.signature(kind).parameters) == list(declared(kind))


@pytest.mark.parametrize(
    ("kind", "extra", "name", "value"),
    [
        (losses.IStarLoss, {"unbiased": True}, "zeta", 0.7),
        (losses.SpectrumControlLoss, {"prior": "polynomial"}, "c2", 3.0),
        (losses.SpectrumControlLoss, {"c1": 0.0}, "prior", "polynomial"),
        (losses.SpectrumControlLoss, {"c2": 0.0}, "power", 3.0),
        (losses.GORLoss, {"square_weight": 0.0}, "hinge", False),
        (losses.PersistentEntropyLoss, {"select": False}, "in_cluster", 0.5),
        (losses.PersistentEntropyLoss, {"select": False}, "keep_breaking", False),
        (losses.PersistentEntropyLoss, {}, "in_cluster_sign", -1),
    ],
)
def test_an_option_that_does_nothing_beside_another_is_refused(kind, extra, name, value):
    x, loss = uneven(20, 5), kind(**extra)
    plain = loss(x)
    setattr(loss, name, value)
    assert torch.equal(loss(x), plain)
    with pytest.raises(OptionError, match=rf"{name} of {kind.__name__} must be left out with .*; got {value!r}"):
        kind(**extra, **{name: value})


def test_a_grid_over_an_option_without_effect_is_refused():
    for inputs in ({"name": "isolayer", "zeta": 0.6}, {"name": "istar", "unbiased": True, "zeta": 0.7}):
        with pytest.raises(OptionError, match=f"of method {inputs['name']} must be left out with .*: it does nothing"):
            method_from(inputs)
    assert method_from({"name": "isolayer", "isotropy": "isoscore_star", "zeta": 0.6})


def test_numbers_come_in_the_type_of_the_option():
    assert repr(isonb.IStarLoss(np.float32(0.5), 1).weight) == "0.5"
    assert type(isonb.IStarLoss(-1).weight) is float
    assert type(isonb.Whitening(np.int64(3)).k) is int
    assert isonb.SIGRegLoss(slices=16.0).slices == 16
    assert build(isonb.IStarLoss, {"zeta": "1e-1"}, "a file").zeta == 0.1
    assert build(Contrast, {"pairs": 7.0}, "a file").pairs == "7"
    with pytest.raises(OptionError, match="must be str; got 7"):
        Contrast(pairs=7)
    assert isonb.IStarLoss(zeta="auto").zeta == "auto"
    with pytest.raises(OptionError, match=r"zeta of IStarLoss must be float from 0 to 1 or 'auto'; got '0\.1'"):
        isonb.IStarLoss(zeta="0.1")


def test_a_module_is_an_option_and_trains():
    layer = isonb.IsotropyLayer(2, torch.nn.PReLU())
    assert [name for name, _ in layer.named_parameters()] == ["activation.weight", "linear.weight", "linear.bias"]
    assert layer(torch.tensor([[-1.0, 1.0]])).tolist() == [[-0.25, 1.0]]


@pytest.mark.slow
def test_nothing_is_read_from_a_docstring():
    lines = "import isonb, isonb.cli; print(isonb.IStarLoss(zeta=0.3)); isonb.cli.main(['list', 'methods'])"
    report = python("-OO", "-c", lines)
    assert report.startswith("IStarLoss(weight=1.0, zeta=0.3, unbiased=False, group='world')")
    assert "float from 0 to 1 or 'auto'" in " ".join(report.split())


PASTED = [*PUBLIC, isonb.fit_flow, isonb.sbert_wk, isonb.soft_decay, isonb.negative_count]


@pytest.mark.parametrize("it", sorted(PASTED, key=lambda it: it.__name__), ids=lambda it: it.__name__)
def test_an_example_runs_when_pasted(it):
    """What it prints is compared by pytest's doctests; here it finds no name that it hasn't imported itself."""
    lines = [example.source for example in doctest.DocTestParser().get_examples(it.__doc__)]
    assert lines
    exec("".join(lines), {})
