"""A model without a key: LangChain's test double, which asks for these calls, and prints what came back."""

import os
from textwrap import indent

from langchain.chat_models import init_chat_model
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

CODE = (
    "secret = 21\nprint(secret * 2)",
    "import os\nprint(os.path.exists(os.path.expanduser('~/.ssh')), os.environ.get('OPENAI_API_KEY'))",
    "open('/usr/lib/i-was-here', 'w')",
    "import os\nos._exit(1)",
    "print(secret)",
    "```python\nimport matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.title('Squares')\n```",
)


class ScriptedModel(FakeMessagesListChatModel):
    def bind_tools(self, tools, **kwargs):
        return self


def model():
    """The model that MODEL names, as "anthropic:claude-sonnet-5"; else the script."""
    if "MODEL" in os.environ:
        return init_chat_model(os.environ["MODEL"])
    calls = [
        AIMessage(
            content="", tool_calls=[{"name": "Python_REPL", "args": {"query": code}, "id": f"call-{number}"}]
        )
        for number, code in enumerate(CODE)
    ]
    return ScriptedModel(responses=[*calls, AIMessage(content="That was all.")])


def show(messages):
    for message in messages:
        for call in getattr(message, "tool_calls", []):
            print(indent(call["args"]["query"], "> "))
        if message.text:
            print(indent(message.text.rstrip(), "< " if message.type == "tool" else ""))
        for block in message.content_blocks:
            if block["type"] == "image":
                print(f"< ({block['mime_type']}, {len(block['base64'])} characters of base64)")
