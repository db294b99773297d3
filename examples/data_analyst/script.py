"""What a model would say, for who has no key: only the words are made up. Each tool call is carried out, on
whatever file was uploaded, and the last words quote what Python printed."""

import itertools
import re
import time
from collections.abc import Iterator
from typing import Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

PACE = 0.015  # seconds a word
IDS = itertools.count(1)

TYPES = """for column in df.select_dtypes(exclude=['number', 'bool']):
    dates = pd.to_datetime(df[column], errors='coerce', format='ISO8601')
    if dates.notna().mean() > 0.9:
        df[column] = dates
pd.DataFrame({'type': df.dtypes, 'missing': df.isna().sum(), 'different': df.nunique()})"""

NUMBERS = """numbers = df.select_dtypes('number')
numbers.corr().round(2)"""

DISTRIBUTIONS = """import matplotlib.pyplot as plt

plt.rcParams.update({'axes.spines.top': False, 'axes.spines.right': False,
                     'figure.constrained_layout.use': True})
shown = list(numbers)[:3]
figure, axes = plt.subplots(1, len(shown), figsize=(9, 3), squeeze=False)
for axis, column in zip(axes[0], shown):
    axis.hist(numbers[column].dropna(), bins=24, color='#3b6fb6', edgecolor='white')
    axis.set_title(column)
figure.suptitle('How the numbers are distributed')
plt.show()"""

COURSE = """dates = list(df.select_dtypes('datetime'))
texts = [c for c in df if c not in dates and c not in numbers and 1 < df[c].nunique() <= 8]
value = shown[0]
figure, axis = plt.subplots(figsize=(9, 3.4))
for name, part in df.groupby(texts[0]) if texts else [(value, df)]:
    axis.plot(part[dates[0]] if dates else part.index, part[value], label=name, linewidth=1.6)
axis.set_title(f'{value} over time' if dates else f'{value}, row by row')
axis.set_ylabel(value)
axis.legend(frameon=False, ncols=4)
plt.show()"""

FINDINGS = """strongest = numbers.corr().abs().stack()
strongest = strongest[strongest < 1]
print(f'- **{len(df):,} rows**, {int(df.isna().sum().sum())} values are missing.')
if texts:
    means = df.groupby(texts[0])[value].mean().sort_values()
    print(f'- `{value}` is highest for **{means.index[-1]}** ({means.iloc[-1]:,.0f} on average) '
          f'and lowest for **{means.index[0]}** ({means.iloc[0]:,.0f}).')
if len(strongest):
    one, other = strongest.idxmax()
    print(f'- `{one}` and `{other}` go together: r = {numbers[one].corr(numbers[other]):.2f}.')"""


class ScriptedModel(GenericFakeChatModel):
    """LangChain's test double, made to call tools and to speak word by word. Each line of its script is a
    message, or a function from the messages so far to one."""

    messages: Iterator[Any]

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        line = next(self.messages)
        said = line(messages) if callable(line) else line
        return ChatResult(generations=[ChatGeneration(message=said)])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        said = self._generate(messages).generations[0].message
        for word in re.findall(r"\S+\s*", said.content):
            time.sleep(PACE)
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        last = AIMessageChunk(content="", tool_calls=said.tool_calls, chunk_position="last")
        yield ChatGenerationChunk(message=last)


def scripted_model():
    return ScriptedModel(messages=itertools.chain(exploration(), itertools.cycle(later())))


def exploration():
    yield runs("Let me see what is in this file.", "print(len(df), 'rows')\ndf.head()")
    yield runs("Which types are these, and is anything missing? Dates first need to become dates.", TYPES)
    yield runs("What goes together?", "df.corr()")
    yield runs("That was too simple: only numbers can be correlated. The data is still loaded.", NUMBERS)
    yield runs("Now the charts. First, how the numbers are distributed.", DISTRIBUTIONS)
    yield runs("Then how they develop.", COURSE)
    yield runs("And what stands out, in figures.", FINDINGS)
    yield quoting("This is what stands out:\n\n{}")


def later():
    yield runs("The data is still in memory.", "df.describe(include='number').round(1)")
    yield quoting(
        "I only follow a script, which ends with this table. With `MODEL` set to a model of yours you get an answer."
    )


def runs(words, code):
    call = {"name": "run_python", "args": {"code": code}, "id": f"call-{next(IDS)}"}
    return AIMessage(content=words, tool_calls=[call])


def quoting(words):
    return lambda messages: AIMessage(content=words.format(messages[-1].text.strip()))
