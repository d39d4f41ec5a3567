"""Errors: one sentence and a hint; problems have a place."""

from subluminal.errors import ExitCode, InvalidInput, Problem, SubluminalError, UsageError


def test_a_problem_tells_its_place_as_far_as_it_is_known() -> None:
    assert str(Problem("odd")) == "odd"
    assert str(Problem("odd", "f.yaml")) == "f.yaml: odd"
    assert str(Problem("odd", "f.yaml", 3)) == "f.yaml:3: odd"
    assert str(Problem("odd", "f.yaml", 3, 7)) == "f.yaml:3:7: odd"


def test_invalid_input_is_told_by_its_first_problem() -> None:
    one = InvalidInput([Problem("odd", "f", 1, hint="mend")])
    two = InvalidInput([Problem("odd", "f", 1), Problem("worse", "f", 2)])
    assert (str(one), one.hint) == ("f:1: odd", "mend")
    assert (str(two), len(two.problems)) == ("f:1: odd (and 1 more)", 2)


def test_every_error_of_ours_is_exit_code_2() -> None:
    for error in (SubluminalError("x"), UsageError("x"), InvalidInput([Problem("x")])):
        assert error.exit_code is ExitCode.USAGE
