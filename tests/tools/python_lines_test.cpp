#include "tools/python_lines.hpp"

#include <doctest/doctest.h>

TEST_CASE("IPython's syntax is told from Python's") {
  struct Row {
    const char* code;
    bool ipython;
  };
  const Row rows[] = {
      {"x = 1", false},
      {"%time f()", true},
      {"%%bash\nls", true},
      {"!ls", true},
      {"files = !ls", true},
      {"x = %time f()", true},
      {"len?", true},
      {"?len", true},
      {"  %cd x", true},
      {"pip install x", true},
      {"x = (a\n% b)", false},
      {"x = a \\\n% b", false},
      {"x = 'text' % b", false},
      {"x = '''\n%time\n!ls\n'''", false},
      {"x = \"\"\"a\\\"\"\"\"\n%time", true},
      {"x != 1; x %= 2", false},
      {"# %time\n# what?", false},
      {"s = 'what?'", false},
      {"a if b else c", false},
      {"x is not y", false},
      {"match x:\n  case 1: pass", false},
      {"await f()", true},
      {"x = await f()", true},
      {"if a:\n    async with b: pass", true},
      {"async def f():\n    await g()\n    return 1", false},
      {"async def f():\n    await g()\nawait f()", true},
      {"def f():\n    async def g():\n        await h()\n    return g", false},
      {"print('await it')", false},
      {"awaited = asynchronous = 1", false},
      {"from __future__ import annotations", true},
      {"    x = 1\n    y = 2", true},
      {"# copied\n>>> x = 1", true},
      {"In [3]: x", true},
      {"   \nx = 1", false},
      {"# it\r!ls", true},
      {"'", false},
      {"'''", false},
      {"((((", false},
      {"\\", false},
      {"", false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.code);
    CHECK(tools::needs_ipython(tools::python_lines(row.code)) == row.ipython);
  }
}

TEST_CASE("a line knows whether it begins inside a string") {
  auto lines = tools::python_lines("a = '''x\r\n  y'''\nb = 1");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].text == "a = '''x");
  CHECK(lines[1].in_string);
  CHECK_FALSE(lines[2].in_string);
  CHECK(lines[2].begins);
  CHECK(tools::python_lines("# a\rb\r\nc").size() == 3);
}
