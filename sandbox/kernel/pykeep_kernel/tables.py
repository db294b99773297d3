"""pandas: a text table that says its shape, and bounded HTML."""

_WIDTH = 140


def _text(value):
    import pandas

    # 80 columns break wide tables; what the user chose stays.
    if pandas.get_option("display.width") == 80:
        with pandas.option_context("display.width", _WIDTH):
            return repr(value)
    return repr(value)


def render_frame(frame):
    text = _text(frame)
    if not text.endswith("columns]"):
        text += f"\n\n[{frame.shape[0]} rows x {frame.shape[1]} columns]"
    data = {"text/plain": text}
    html = frame._repr_html_()
    if html:
        data["text/html"] = html
    return data, {}


def render_series(series):
    return {"text/plain": _text(series)}, {}
