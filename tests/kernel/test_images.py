"""Images from anywhere: to budget, with their size, their original kept when they were reduced."""

import pytest

pytestmark = pytest.mark.needs("PIL")
NOISE = "import os\nfrom PIL import Image\ndef noise(w, h): return Image.frombytes('RGB', (w, h), os.urandom(w * h * 3))\n"


def test_results_display_and_show(kernel):
    result = kernel.run(
        "from PIL import Image\nred = Image.new('RGB', (100, 50), 'red')\nred.show(); display(red)\nred"
    )
    assert result.kinds == ["image"] * 3
    for frame in result.displays:
        about = frame["metadata"]["image"]
        assert (about["width"], about["height"], about["reduced"]) == (100, 50, False)
    assert result.result == "<Image, mode RGB, 100x50>"


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I", "F", "HSV", "YCbCr"])
def test_every_mode(kernel, mode):
    result = kernel.run(f"from PIL import Image\nImage.new('{mode}', (30, 20))")
    assert result.kinds == ["image"], result.traceback


@pytest.mark.needs("IPython")
def test_small_png_passes_unchanged(kernel):
    result = kernel.run(
        "from PIL import Image; Image.new('RGB', (20, 10)).save('small.png')\n"
        "from IPython.display import Image as Shown\nShown('small.png')"
    )
    assert result.images == [("image/png", (kernel.workspace / "small.png").read_bytes())]


def test_a_large_photo_is_reduced(kernel):
    result = kernel.run(NOISE + "noise(2400, 1600)")
    (frame,) = result.displays
    about = frame["metadata"]["image"]
    assert frame["blobs"][0][0] == "image/jpeg" and len(frame["blobs"][0][1]) <= 225_000
    assert about["reduced"] and max(about["width"], about["height"]) <= 1568
    assert (kernel.workspace / about["file"]).exists()


def test_a_cells_images_share_a_budget(kernel):
    result = kernel.run(NOISE + "for _ in range(12): display(noise(600, 600))", timeout=180)
    sizes = [len(data) for _, data in result.images]
    assert sum(sizes) <= 375_000 and len(sizes) >= 2
    left_out = [frame for frame in result.displays if not frame["blobs"]]
    assert len(sizes) + len(left_out) == 12
    text = left_out[-1]["data"]["text/plain"]
    assert "not shown" in text and "outputs/" in text


def test_broken_image_data_is_said(kernel):
    result = kernel.run("from IPython.display import Image\nImage(data=b'no image', format='png')")
    assert "could not be read" in result.displays[0]["data"]["text/plain"]


def test_what_only_begins_as_an_image_is_never_sent(kernel):
    """Some clients refuse the whole conversation that a broken image is in."""
    result = kernel.run(
        "import io\nfrom PIL import Image\nfrom IPython.display import Image as Shown, display\n"
        "whole = io.BytesIO(); Image.effect_noise((90, 90), 50).save(whole, 'PNG'); whole = whole.getvalue()\n"
        "display(Shown(data=whole[:8] + bytes(30), format='png'))\n"
        "display(Shown(data=whole[:3000], format='png'))\n"
        "display(Shown(data=whole[:3000] + bytes(len(whole) - 3000), format='png'))\n"
        "display(Shown(data=whole, format='png'))"
    )
    assert len(result.displays) == 4, result.traceback
    assert [len(frame["blobs"]) for frame in result.displays] == [0, 0, 0, 1]
    for frame in result.displays[:3]:
        assert "could not be read" in frame["data"]["text/plain"]
