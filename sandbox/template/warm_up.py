"""Prepares a new template so that its kernels start fast. Run once, by the template's interpreter.

`pykeep template build` calls it after the packages are installed:

    <template>/bin/python -I warm_up.py [directory of the kernel package]...

with the network off if it likes, a writable template, and up to five minutes' time. It

- compiles the bytecode of everything installed, and of the directories named (a sandbox mounts them
  read-only, and without bytecode each start of a kernel compiles them anew);
- writes the list of fonts to <template>/share/pykeep/matplotlib, or where PYKEEP_TEMPLATE says,
  which a kernel copies instead of scanning all fonts. It must be run again when fonts were added;
- imports what is slow the first time, and sees whether plotly can make images here.

Prints one JSON object as its last line, e.g.
    {"python": "3.11.2", "packages": {"ipython": "9.18.1", ...}, "cjk_font": "WenQuanYi Micro Hei",
     "emoji_font": "Symbola", "plotly_images": "yes"}
and exits with 0; with 1 and a message on stderr if the template has no usable IPython. Anything else
that is missing makes the template smaller, not unusable: distributions without it work too.

Packages of Debian and Ubuntu. Fonts, for every template: fonts-dejavu-core fonts-wqy-microhei
fonts-symbola (sandboxes see /usr/share/fonts). Instead of a template from PyPI: python3-ipython,
python3-pip, and as wanted python3-numpy python3-pandas python3-matplotlib python3-pil python3-scipy
python3-sklearn python3-seaborn python3-openpyxl python3-sympy python3-tabulate python3-tqdm.
"""

import compileall
import importlib
import json
import os
import sys
import sysconfig

PACKAGES = (
    "ipython",
    "numpy",
    "pandas",
    "matplotlib",
    "plotly",
    "kaleido",
    "pillow",
    "scipy",
    "scikit-learn",
    "seaborn",
    "openpyxl",
    "pyarrow",
    "sympy",
    "tabulate",
    "tqdm",
    "pip",
)
SLOW_IMPORTS = ("numpy", "pandas", "matplotlib.pyplot", "scipy.stats", "plotly.express", "PIL.Image")
CJK = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
)
EMOJI = ("Noto Emoji", "Symbola", "Unifont Upper")


def main():
    try:
        import IPython.core.interactiveshell  # noqa: F401
    except ImportError as missing:
        sys.exit(f"no usable IPython in this environment: {missing}")
    directory = os.environ.get("PYKEEP_TEMPLATE") or os.path.join(sys.prefix, "share", "pykeep")
    fonts = warm_fonts(os.path.join(directory, "matplotlib"))
    for name in SLOW_IMPORTS:
        try:
            importlib.import_module(name)
        except ImportError:
            pass
    report = {
        "python": ".".join(map(str, sys.version_info[:3])),
        "packages": versions(),
        "cjk_font": next((name for name in CJK if name in fonts), None),
        "emoji_font": next((name for name in EMOJI if name in fonts), None),
        "plotly_images": try_plotly(),
    }
    for path in [sysconfig.get_path("purelib"), *sys.argv[1:]]:
        if os.access(path, os.W_OK):
            compileall.compile_dir(path, quiet=2, workers=0, legacy=False)
    print(json.dumps(report))


def warm_fonts(directory):
    """Lets matplotlib scan the fonts into `directory`; their names."""
    try:
        os.makedirs(directory, exist_ok=True)
        for name in os.listdir(directory):
            if name.startswith("fontlist"):
                os.unlink(os.path.join(directory, name))
        os.environ["MPLCONFIGDIR"] = directory
        from matplotlib import font_manager
    except (ImportError, OSError) as problem:
        print(f"fonts are not prepared: {problem}", file=sys.stderr)
        return set()
    return {font.name for font in font_manager.fontManager.ttflist}


def versions():
    from importlib import metadata

    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return found


def try_plotly():
    """Says yes, or why there is no image."""
    try:
        import warnings

        import plotly.graph_objects

        warnings.simplefilter("ignore")
        image = plotly.graph_objects.Figure().to_image(format="png")
        return "yes" if image[:4] == b"\x89PNG" else "no image came"
    except Exception as error:
        return (str(error).strip() or type(error).__name__).splitlines()[0]


if __name__ == "__main__":
    main()
