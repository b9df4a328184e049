"""The grammar of the parameters cell, and the check of values before a kernel starts."""

import pytest

from isonb_lab.pages.errors import ParameterError
from isonb_lab.pages.parameters import Parameter, parse_parameters, validate_parameters

CELL = """
# everything a reader may change
n_points: int = 300  # points in the cloud; range 10..5000
rate: float = 1e-3  # learning rate; range 0..1
kind: str = "cone"  # the shape; one of cone|sphere
layers: int = 6  # how many; one of 6|12
center: bool = True  # move the cloud to the origin; its mean becomes 0
"""


def parsed():
    return {parameter.name: parameter for parameter in parse_parameters(CELL)}


def test_a_cell_is_parsed():
    result = parsed()
    assert list(result) == ["n_points", "rate", "kind", "layers", "center"]
    assert result["n_points"] == Parameter("n_points", "int", 300, "points in the cloud", low=10, high=5000)
    assert result["kind"].options == ("cone", "sphere")
    assert result["layers"].options == (6, 12)
    assert result["center"].help == "move the cloud to the origin; its mean becomes 0"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("n = 3  # points", "must read"),
        ("n: int = 3", "must read"),
        ("n: list = [3]  # points", "must read"),
        ("n: int = 1 + 2  # points", "must be a literal"),
        ("n: int = 3.5  # points", "must be int"),
        ("n: int = True  # points", "must be int"),
        ("n: bool = 1  # flag", "must be bool"),
        ("n: int = 3  # points; range 5..9", "must be int from 5 to 9; got 3"),
        ("n: int = 3  # points; range 9..5", "LO <= HI"),
        ("n: int = 3  # points; range 5", "after ';' stands"),
        ("n: str = 'a'  # word; range 1..2", "a range needs"),
        ("n: str = 'a'  # word; one of b|c", "'b' or 'c'"),
        ("n: int = 3  # a\nn: int = 4  # b", "stands 2 times"),
    ],
)
def test_each_violation_is_a_typed_error(line, message):
    with pytest.raises(ParameterError, match=message.replace("|", r"\|")):
        parse_parameters(line)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"points": 5}, "no parameter is called points. This chapter has: n_points"),
        ({"n_points": "seven"}, "must be int from 10 to 5000; got 'seven'"),
        ({"n_points": 5}, "must be int from 10 to 5000; got 5"),
        ({"n_points": True}, "must be int"),
        ({"kind": "cube"}, "'cone' or 'sphere'"),
        ({"layers": 7}, "6 or 12"),
        ({"center": "maybe"}, "must be bool"),
        ({"rate": float("nan")}, "must be float"),
    ],
)
def test_bad_values_are_refused(inputs, message):
    with pytest.raises(ParameterError, match=message):
        validate_parameters(list(parsed().values()), inputs)
