"""In place of LangChain's PythonREPLTool, which runs the model's code in your own process: three lines."""

import scripted
from langchain.agents import create_agent
from pykeep.langchain import PythonREPLTool  # not: from langchain_experimental.tools import PythonREPLTool

tools = [PythonREPLTool()]
agent = create_agent(scripted.model(), tools)

answer = agent.invoke({"messages": [{"role": "user", "content": "Show me what you can do."}]})
scripted.show(answer["messages"])
