#include "tools/content.hpp"

#include <doctest/doctest.h>

#include "mcp/base64.hpp"

using tools::Content;
using tools::RenderLimits;

namespace {

const std::string kPng = "\x89PNG\r\n\x1a\nrest";

std::string text_of(const std::vector<mcp::Content>& blocks) {
  std::string all;
  for (const mcp::Content& block : blocks) all += block.text.value_or("<image>");
  return all;
}

RenderLimits characters(std::size_t count) {
  RenderLimits limits;
  limits.characters = count;
  return limits;
}

}  // namespace

TEST_CASE("text, images and remarks keep their order") {
  Content content{RenderLimits()};
  content.image("image/png", kPng, "image, png");
  content.text("mid\n");
  content.image("image/png", kPng, "image, png");
  content.line("42");
  content.remark("note");
  auto blocks = std::move(content).finish("");
  REQUIRE(blocks.size() == 5);
  CHECK(blocks[0].text == "[image, png]");
  CHECK(blocks[1].type == "image");
  CHECK(blocks[1].mimeType == "image/png");
  CHECK(mcp::base64_decode(*blocks[1].data) == kPng);
  CHECK(blocks[2].text == "mid\n[image, png]");
  CHECK(blocks[4].text == "42\n[note]");
}

TEST_CASE("text that did not end its line is not glued to what follows") {
  Content content{RenderLimits()};
  content.text("no newline");
  content.line("42");
  content.text("more\n");
  CHECK(text_of(std::move(content).finish("")) == "no newline\n42\nmore\n");
}

TEST_CASE("an image that cannot be sent says why, and where its original is") {
  struct Row {
    const char* mime;
    std::string bytes;
    const char* reason;
  };
  for (const Row& row : {Row{"image/png", "GIF89a", "not a sound image/png"},
                         Row{"image/gif", "GIF89a", "not a sound image/gif"},
                         Row{"image/png", kPng + std::string(300'000, 'x'), "too large"}}) {
    CAPTURE(row.reason);
    Content content{RenderLimits()};
    content.image(row.mime, row.bytes, "image, original: /workspace/outputs/1-1.png");
    auto blocks = std::move(content).finish("");
    REQUIRE(blocks.size() == 1);
    CHECK(blocks[0].text->find(row.reason) != std::string::npos);
    CHECK(blocks[0].text->find("outputs/1-1.png") != std::string::npos);
  }
}

TEST_CASE("all images together stay within their budget") {
  Content content{RenderLimits()};
  for (int i = 0; i < 4; ++i) content.image("image/png", kPng + std::string(150'000, 'x'), "image");
  std::size_t images = 0, bytes = 0;
  for (const mcp::Content& block : std::move(content).finish("")) {
    if (block.type != "image") continue;
    ++images;
    bytes += block.data->size();
  }
  CHECK(images == 2);
  CHECK(bytes <= 500'000);
}

TEST_CASE("too much text loses its middle, counted exactly") {
  Content content{characters(100)};
  content.text(std::string(60, 'a') + "\n" + std::string(200, 'b') + "\n" + std::string(60, 'c'));
  std::string text = text_of(std::move(content).finish("9 bytes in /workspace/outputs/1.txt"));
  CHECK(text.starts_with(std::string(55, 'a') + "\n[... "));
  CHECK(text.ends_with(" ...]\n" + std::string(45, 'c')));
  CHECK(text.find("222 bytes, 2 lines left out; all of it: 9 bytes in /workspace/outputs/1.txt") !=
        std::string::npos);
}

TEST_CASE("what was left out before counts with what is cut now") {
  Content content{characters(100)};
  content.text(std::string(500, 'a'));
  sandbox::Gap gap;
  gap.bytes = 1'000'000;
  gap.lines = 7;
  content.gap(gap);
  content.text(std::string(30, 'b'));
  std::string text = text_of(std::move(content).finish(""));
  CHECK(text.starts_with(std::string(70, 'a') + "\n["));
  CHECK(text.find("1,000,430 bytes, 7 lines left out") != std::string::npos);
  CHECK(text.ends_with(std::string(30, 'b')));
}

TEST_CASE("the end of a long text is never lost, also behind images") {
  Content content{characters(100)};
  content.text(std::string(500, 'a'));
  content.image("image/png", kPng, "image");
  content.line("ValueError: the reason");
  std::string text = text_of(std::move(content).finish(""));
  CHECK(text.ends_with("ValueError: the reason"));
  CHECK(text.find("<image>") != std::string::npos);
}

TEST_CASE("multi-byte characters are cut between, not within") {
  Content content{characters(10)};
  std::string many;
  for (int i = 0; i < 50; ++i) many += "漢";
  content.text(many);
  std::string text = text_of(std::move(content).finish(""));
  CHECK(text.starts_with("漢漢漢漢漢\n["));
  CHECK(text.ends_with("]\n漢漢漢漢漢"));
}
