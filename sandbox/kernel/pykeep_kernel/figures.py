"""matplotlib: every figure exactly once and in order, whatever backend or call the user picks."""

import io
import sys

# Larger originals are rendered at fewer dots per inch: 9,000 x 6,000 pixels would take seconds.
_ORIGINAL_EDGE = 4096

# The first of each line that is installed is asked for the glyphs DejaVu Sans lacks.
_FALLBACK_FONTS = (
    (
        "Noto Sans CJK SC",
        "Noto Sans CJK JP",
        "Source Han Sans CN",
        "WenQuanYi Micro Hei",
        "WenQuanYi Zen Hei",
        "Droid Sans Fallback",
    ),
    ("Noto Emoji", "Symbola", "Unifont Upper"),
)


def on_matplotlib(matplotlib):
    """Before pyplot chooses: no GUI is looked for, the warmed font cache is used."""
    from pykeep_kernel import template

    matplotlib.rcParams["backend"] = "agg"
    template.copy_font_cache(matplotlib)


def on_font_manager(font_manager):
    import matplotlib

    names = {font.name for font in font_manager.fontManager.ttflist}
    fallback = [next((name for name in row if name in names), None) for row in _FALLBACK_FONTS]
    fallback = [name for name in fallback if name]
    if fallback and matplotlib.rcParams["font.family"] == ["sans-serif"]:
        matplotlib.rcParams["font.family"] = ["sans-serif", *fallback]
    on_font_manager.fallback = fallback


on_font_manager.fallback = []


def on_pyplot(pyplot):
    """Takes the place of show(), so that it also works under the Agg backend."""
    from matplotlib.figure import Figure

    def show(*_arguments, **_options):
        """Show all open figures."""
        flush()

    def show_one(figure, warn=True):
        """Show this figure."""
        from IPython.display import display

        display(figure)

    pyplot.show = show
    Figure.show = show_one


def render(figure):
    """(data, metadata) of a figure as PNG, as large as the user made it."""
    text = repr(figure)
    if _is_empty(figure):
        return {"text/plain": text}, {}
    _add_fallback_fonts(figure)
    longest = max(figure.get_size_inches())
    dpi = min(figure.dpi, _ORIGINAL_EDGE / longest)
    buffer = io.BytesIO()
    figure.savefig(
        buffer,
        format="png",
        dpi=dpi,
        bbox_inches="tight",
        facecolor=figure.get_facecolor(),
        pil_kwargs={"compress_level": 1},
    )
    figure.stale = False  # saving changes the size for a moment; what comes now is the user's
    figure._pykeep_shown = True
    about = {"title": _title(figure), "axes": _axes(figure), "keep": True}
    return {"image/png": buffer.getvalue(), "text/plain": text}, {"image": about}


def flush():
    """Shows the open figures that were not shown since they last changed, and closes them all."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    pyplot = sys.modules.get("matplotlib.pyplot")
    if helpers is None or pyplot is None:
        return
    managers = helpers.Gcf.get_all_fig_managers()
    if not managers:
        return
    from IPython.display import display

    figures = [manager.canvas.figure for manager in managers]
    try:
        for figure in figures:
            shown = getattr(figure, "_pykeep_shown", False) and not figure.stale
            if not shown and not _is_empty(figure):
                display(figure)
    finally:
        pyplot.close("all")


def _is_empty(figure):
    children = figure.get_children()
    return len(children) <= 1  # the background patch


def _title(figure):
    heading = getattr(figure, "_suptitle", None)
    titles = [heading.get_text()] if heading is not None else []
    titles += [axes.get_title() for axes in figure.get_axes()[:6]]
    return "; ".join(title for title in titles if title)


def _axes(figure):
    parts = []
    for axes in figure.get_axes()[:6]:
        labels = [("x", axes.get_xlabel()), ("y", axes.get_ylabel())]
        parts.append(", ".join(f"{name}: {label}" for name, label in labels if label))
    return "; ".join(part for part in parts if part)


def _add_fallback_fonts(figure):
    """For texts that a style (seaborn's, say) left with a font that lacks their characters."""
    fallback = on_font_manager.fallback
    if not fallback:
        return
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        if not text.get_text().isascii():
            families = list(text.get_fontfamily())
            missing = [name for name in fallback if name not in families]
            if missing:
                text.set_fontfamily(families + missing)
