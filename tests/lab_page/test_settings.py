import pytest

from countleak.errors import InputError
from countleak.lab_page.accuracy_map import MapSettings
from countleak.lab_page.settings import AttackSettings

OUT_OF_BOUNDS = [
    ({"people": "9"}, "people: 9 is out of bounds; choose from 10 to 400"),
    ({"people": "401"}, "people: 401 is out of bounds; choose from 10 to 400"),
    ({"questions": "1e9"}, "questions is '1e9'; write a whole number"),
    ({"questions": "3501"}, "questions: 3501 is out of bounds; choose from 20 to 3500"),
    ({"noise": "gaussian", "size": "nan"}, "the size of the noise: nan is out of bounds"),
    ({"noise": "gaussian", "size": "0"}, "the size of the noise: 0 is out of bounds"),
    ({"noise": "uniform", "size": "2.5"}, "2.5 is no whole number; a bound or a base is one"),
    ({"noise": "base", "size": "1"}, "rounding needs one from 2"),
    ({"noise": "<script>"}, "noise: there is no '<script>'; choose 18.1, 18.3"),
    ({"decoder": "x" * 1000}, f"decoder: there is no '{'x' * 30}...'; choose auto"),
    ({"seed": "-1"}, "seed: -1 is out of bounds"),
]


@pytest.mark.parametrize(("form", "complaint"), OUT_OF_BOUNDS, ids=str)
def test_what_is_out_of_bounds_is_refused_in_a_line(form, complaint):
    with pytest.raises(InputError) as caught:
        AttackSettings.of_form(form)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_what_a_form_leaves_out_stays_as_it_is_and_what_nobody_knows_is_ignored():
    assert AttackSettings.of_form({"people": "50", "unknown": "1"}) == AttackSettings(people=50)
    assert AttackSettings.of_form({"slowly": "yes"}).slowly


@pytest.mark.parametrize(
    "form", [{"sd": "inf"}, {"people": "5000"}, {"share": "0"}, {"law": "cauchy"}, {"limit": "x"}]
)
def test_a_place_off_the_map_is_refused(form):
    with pytest.raises(InputError):
        MapSettings.of_form(form)
