"""Atoms: their values, and slopes against finite differences."""

import numpy as np
import pytest

from forecause.regression.atoms import Atom, Factor, atom_of, atom_values

INPUTS = np.random.default_rng(0).normal(size=(200, 3))
FACTORS = [
    Factor(0, "line", centre=0.2),
    Factor(1, "bend", centre=1.0),
    Factor(2, "tanh", 2.5, 0.1),
    Factor(0, "sin", 1.5),
    Factor(1, "cos", 3.0, -0.3),
]


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("line", lambda x: x),
        ("bend", np.square),
        ("tanh", lambda x: np.tanh(2 * x)),
        ("sin", lambda x: np.sin(2 * x)),
        ("cos", lambda x: np.cos(2 * x)),
    ],
)
def test_a_factor_is_its_function_less_its_centre(kind, function):
    x = np.linspace(-2.9, 2.9, 21)
    found = Factor(1, kind, 2.0, 0.25).values(np.column_stack([0 * x, x]))
    np.testing.assert_allclose(found, function(x) - 0.25)


def test_lines_and_bends_grow_no_more_from_three_on():
    far = np.array([[-9.0], [-3.0], [2.0], [3.0], [9.0]])
    assert Factor(0, "line").values(far).tolist() == [-3, -3, 2, 3, 3]
    assert Factor(0, "bend").values(far).tolist() == [9, 9, 4, 9, 9]
    assert Factor(0, "line").slopes(far).tolist() == [0, 0, 1, 0, 0]
    assert Factor(0, "bend").slopes(far).tolist() == [0, 0, 4, 0, 0]


@pytest.mark.parametrize("factor", FACTORS, ids=lambda factor: factor.kind)
def test_a_centred_factor_has_mean_zero(factor):
    centred = factor.centred(INPUTS)
    np.testing.assert_allclose(centred.values(INPUTS).mean(), 0, atol=1e-12)
    assert (centred.column, centred.kind, centred.rate) == (factor.column, factor.kind, factor.rate)


@pytest.mark.parametrize("factors", [FACTORS[i : i + 3] for i in range(3)])
def test_an_atom_is_the_product_of_its_factors_and_its_slopes_are_its_derivatives(factors):
    atom, h, inner = atom_of(*factors), 1e-6, np.clip(INPUTS, -2.9, 2.9)
    np.testing.assert_allclose(
        atom.values(inner), np.prod([factor.values(inner) for factor in factors], axis=0)
    )
    for column in range(3):
        moved = h * np.eye(3)[column]
        expected = (atom.values(inner + moved) - atom.values(inner - moved)) / (2 * h)
        np.testing.assert_allclose(atom.slopes(inner, column), expected, atol=1e-7)


def test_an_input_that_is_not_in_an_atom_has_no_slope():
    assert not atom_of(FACTORS[0], FACTORS[1]).slopes(INPUTS, 2).any()


def test_equal_atoms_are_equal_in_whatever_order_they_are_made():
    assert atom_of(*FACTORS[:3]) == atom_of(*FACTORS[2::-1])
    assert atom_of(*FACTORS[:3]).columns == (0, 1, 2)


def test_values_of_several_atoms_stand_side_by_side():
    atoms: list[Atom] = [atom_of(FACTORS[0]), atom_of(FACTORS[1], FACTORS[2])]
    found = atom_values(atoms, INPUTS)
    assert found.shape == (200, 2)
    np.testing.assert_array_equal(found[:, 1], atoms[1].values(INPUTS))
    assert atom_values([], INPUTS).shape == (200, 0)
