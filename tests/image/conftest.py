import frozen
import pytest


@pytest.fixture(scope="session")
def place():
    if not frozen.TOOL or not frozen.PYTHON:
        pytest.skip("PYKEEP_IMAGE_TOOL and PYKEEP_TEST_PYTHON are not set")
    place = frozen.Place()
    yield place
    place.remove()


@pytest.fixture
def process(place):
    """A running process with nothing in it."""
    with frozen.boot(place) as process:
        yield process


@pytest.fixture
def cycle(place):
    """Freezes a process, ends it and thaws it: returns the new one."""
    alive = []

    def cycle(process, *options):
        image = place.image()
        process.freeze(image, "end", *options)
        process.kill()
        frozen.tool("verify", image)
        alive.append(frozen.thaw(place, image))
        return alive[-1]

    yield cycle
    for process in alive:
        process.kill()
