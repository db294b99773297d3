#include "sandbox/execution.hpp"

#include <doctest/doctest.h>

using sandbox::held_bytes;
using sandbox::Output;

TEST_CASE("what an output holds is counted wherever the sandbox put it") {
  constexpr std::size_t kLarge = 100'000;
  const std::string large(kLarge, 'x');

  sandbox::Display in_data, in_metadata, in_binary, in_id, in_array;
  in_data.data["text/html"] = large;
  in_metadata.metadata["image"].emplace_object()["title"] = large;
  in_binary.binary.push_back({"image/png", large});
  in_id.display_id = large;
  in_array.metadata["list"].emplace_array().resize(kLarge);

  for (const Output& output : {
           Output{sandbox::Text{sandbox::StreamName::out, large}},
           Output{sandbox::PythonError{"E", large, {}}},
           Output{sandbox::PythonError{"E", "", {large}}},
           Output{in_data},
           Output{in_metadata},
           Output{in_binary},
           Output{in_id},
           Output{in_array},
       }) {
    CAPTURE(output.what.index());
    CHECK(held_bytes(output) >= kLarge);
  }
  CHECK(held_bytes(Output{sandbox::Gap()}) < 1000);
}
