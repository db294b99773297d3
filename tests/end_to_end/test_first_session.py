"""The first session after an upgrade: the template's image is still being made when the client goes."""

import itertools
import pathlib

import pytest
from conftest import put_on_disk, until
from test_hibernation import handle_of, images, run  # noqa: F401

PYTHON = 'import sys; print("prefix", sys.prefix, sep="=")'


def in_making(place):
    return [path for path in place.glob("*.image.*")]


@pytest.mark.parametrize("moment", ["while its kernel starts", "while it is being written"])
def test_its_image_is_given_up_and_the_session_kept(images, start, environment, moment):  # noqa: F811
    zones = itertools.count(7)

    def first_session():
        environment["TZ"] = f"Etc/GMT+{next(zones)}"  # an image is for one time zone: there is none yet
        first = start()
        told = run(first, PYTHON + "\nx = 41")
        prefix = pathlib.Path(told.text.split("prefix=")[1].strip())
        state = pathlib.Path(environment["PYKEEP_STATE_DIR"])
        places = [prefix / "share/pykeep/images", *(state / "kernel/images").glob("*")]
        if moment == "while it is being written":
            until(lambda: any(in_making(place) for place in places))
        return first, (told, places)

    told, places = put_on_disk(first_session)
    assert not any(in_making(place) for place in places)
    again = run(start(), "x + 1", session=handle_of(told)).text
    assert "variables are kept" in again
    assert again.endswith("42")
