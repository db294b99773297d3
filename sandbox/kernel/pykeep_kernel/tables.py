"""pandas: text tables that say their shape, and bounded HTML."""

_WIDTH = 140
_COLUMNS = 20


def on_pandas(pandas):
    # pandas takes the kernel for a terminal of 80 columns and hides what does not fit.
    if pandas.get_option("display.max_columns") == 0:
        pandas.set_option("display.max_columns", _COLUMNS)
        pandas.set_option("display.width", _WIDTH)


def render_frame(frame):
    text = repr(frame)
    if not text.endswith("columns]"):
        text += f"\n\n[{frame.shape[0]} rows x {frame.shape[1]} columns]"
    data = {"text/plain": text}
    html = frame._repr_html_()
    if html:
        data["text/html"] = html
    return data, {}
