"""Top-level await, asyncio.run, and tasks that outlive their cell."""


def test_asyncio_run(kernel):
    assert kernel.run("import asyncio; asyncio.run(asyncio.sleep(0.05)) or 1").result == "1"
    assert kernel.run("import asyncio; asyncio.run(asyncio.sleep(0.05)) or 2").result == "2"


def test_top_level_await(kernel):
    code = "import asyncio\nawait asyncio.gather(asyncio.sleep(0.01, 'a'), asyncio.sleep(0.01, 'b'))"
    assert kernel.run(code).result == "['a', 'b']"
    assert kernel.run("asyncio.run(asyncio.sleep(0.01)) or 1").result == "1"
    assert kernel.run("await asyncio.sleep(0.01, 'c')").result == "'c'"


def test_async_for_and_with(kernel):
    code = (
        "async def numbers():\n    for i in range(3): yield i\n" "found = [i async for i in numbers()]\nfound"
    )
    assert kernel.run(code).result == "[0, 1, 2]"


def test_a_task_goes_on_in_the_next_await(kernel):
    kernel.run(
        "import asyncio\nasync def work():\n    print('begun'); await asyncio.sleep(0.05); print('ended')\n"
        "task = asyncio.create_task(work()); await asyncio.sleep(0)"
    )
    assert kernel.run("1+1").out == ""
    assert kernel.run("await task").out == "ended\n"


def test_errors_of_awaits_are_the_cells(kernel):
    number = kernel.run("1").done["execution_count"] + 1
    text = kernel.run("import asyncio\nawait asyncio.sleep(0)\n1/0").traceback
    assert f"Cell In[{number}], line 3" in text and "asyncio/" not in text
