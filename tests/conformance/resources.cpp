#include "mcp/error.hpp"
#include "tests/conformance/fixtures.hpp"

namespace conformance {

namespace {

constexpr std::string_view kTemplateStart = "test://template/";
constexpr std::string_view kTemplateEnd = "/data";

mcp::Resource resource(std::string uri, std::string name, std::string mime_type) {
  mcp::Resource out;
  out.uri = std::move(uri);
  out.name = std::move(name);
  out.description = "A resource for tests.";
  out.mimeType = std::move(mime_type);
  return out;
}

mcp::ResourceContents contents_of(const std::string& uri) {
  std::string_view text = uri;
  if (uri == "test://static-text") return text_resource(uri, "This is a static text resource.");
  if (uri == "test://watched-resource") return text_resource(uri, "This one can change.");
  if (uri == "test://static-binary") {
    mcp::ResourceContents contents;
    contents.uri = uri;
    contents.mimeType = "image/png";
    contents.blob = kPng;
    return contents;
  }
  if (text.starts_with(kTemplateStart) && text.ends_with(kTemplateEnd) &&
      text.size() > kTemplateStart.size() + kTemplateEnd.size()) {
    text.remove_prefix(kTemplateStart.size());
    text.remove_suffix(kTemplateEnd.size());
    mcp::ResourceContents contents =
        text_resource(uri, R"({"id":")" + std::string(text) + R"(","data":"made from the id"})");
    contents.mimeType = "application/json";
    return contents;
  }
  throw mcp::ResourceNotFound(uri);
}

}  // namespace

std::vector<mcp::Resource> Resources::list() const {
  std::vector<mcp::Resource> all;
  all.push_back(resource("test://static-text", "static-text", "text/plain"));
  all.push_back(resource("test://static-binary", "static-binary", "image/png"));
  all.push_back(resource("test://watched-resource", "watched-resource", "text/plain"));
  return all;
}

std::vector<mcp::ResourceTemplate> Resources::templates() const {
  mcp::ResourceTemplate data;
  data.uriTemplate = "test://template/{id}/data";
  data.name = "template";
  data.description = "A template for tests.";
  data.mimeType = "application/json";
  std::vector<mcp::ResourceTemplate> all;
  all.push_back(std::move(data));
  return all;
}

mcp::awaitable<mcp::ReadResourceResult> Resources::read(mcp::Call&, std::string uri) {
  mcp::ReadResourceResult result;
  result.contents.push_back(contents_of(uri));
  co_return result;
}

}  // namespace conformance
