import inspect

from countleak import errors


def test_the_tree_in_the_docstring_is_the_tree():
    for name, member in inspect.getmembers(errors, inspect.isclass):
        assert issubclass(member, errors.CountleakError)
        assert name in errors.__doc__


def test_a_missing_extra_names_what_to_install():
    assert "pip install '.[report]'" in str(errors.MissingExtra("drawing", "report"))
