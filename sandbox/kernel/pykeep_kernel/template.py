"""What the template prepared and a kernel picks up: the warmed font cache (sandbox/template)."""

import os
import shutil
import sys


def directory():
    """Where warm_up.py left things: beside the interpreter, or where PYKEEP_TEMPLATE says."""
    return os.environ.get("PYKEEP_TEMPLATE") or os.path.join(sys.prefix, "share", "pykeep")


def copy_font_cache(matplotlib):
    """Scanning fonts takes seconds; the list is copied instead, to where matplotlib can write."""
    source = os.path.join(directory(), "matplotlib")
    try:
        names = [name for name in os.listdir(source) if name.startswith("fontlist")]
        target = matplotlib.get_cachedir()
        for name in names:
            if target and not os.path.exists(os.path.join(target, name)):
                shutil.copyfile(os.path.join(source, name), os.path.join(target, name))
    except OSError:
        pass  # not warmed: the fonts are scanned, once
