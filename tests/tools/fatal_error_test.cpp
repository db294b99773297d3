#include "tools/fatal_error.hpp"

#include <doctest/doctest.h>

using tools::shorten_fatal_error;

TEST_CASE("a crash is told by the cell's own frames") {
  CHECK(shorten_fatal_error(
            "before\n"
            "Fatal Python error: Segmentation fault\n"
            "\n"
            "Current thread 0x00007f (most recent call first):\n"
            "  File \"/srv/t/lib/python3.11/site-packages/numpy/core.py\", line 7 in dot\n"
            "  File \"<cell 23>\", line 1 in <module>\n"
            "  File \"/opt/pykeep/kernel/pykeep_kernel/shell.py\", line 102 in run_code\n"
            "  File \"/srv/t/lib/python3.11/site-packages/IPython/core/x.py\", line 3 in run\n"
            "\n"
            "Extension modules: numpy.core._multiarray_umath (total: 1)\n") ==
        "before\n"
        "Fatal Python error: Segmentation fault\n"
        "\n"
        "Current thread 0x00007f (most recent call first):\n"
        "  File \".../site-packages/numpy/core.py\", line 7 in dot\n"
        "  Cell In[23], line 1 in <module>\n");
}

TEST_CASE("other text is left alone") {
  for (const char* text : {"", "  File \"/x/pykeep_kernel/y\"\n", "Extension modules: none\n"})
    CHECK(shorten_fatal_error(text) == text);
}
