#include "mcp/shape.hpp"

#include "mcp/envelope.hpp"
#include "schemas/codec.hpp"

namespace mcp {

namespace json = boost::json;

namespace {

// Our lists change only with the program.
constexpr int kListLifetimeMs = 3'600'000;

}  // namespace

void fit(Implementation& implementation, Revision revision) {
  if (revision < Revision::v2025_06_18) implementation.title.reset();
}

void fit(ToolInfo& tool, Revision revision) {
  if (revision < Revision::v2025_06_18) tool.title.reset();
  if (revision < Revision::v2025_03_26) tool.annotations.reset();
}

void fit(Resource& resource, Revision revision) {
  if (revision < Revision::v2025_06_18) resource.title.reset();
}

void fit(PromptInfo& prompt, Revision revision) {
  if (revision >= Revision::v2025_06_18) return;
  prompt.title.reset();
  for (PromptArgument& argument : prompt.arguments) argument.title.reset();
}

void fit(Content& content, Revision revision) {
  if (content.type == "audio" && revision < Revision::v2025_03_26)
    content = text_content("(" + content.mimeType.value_or("audio") +
                           ": this client's protocol revision has no audio)");
}

void fit(ResourceTemplate& resource_template, Revision revision) {
  if (revision < Revision::v2025_06_18) resource_template.title.reset();
}

void complete(json::object& result, Revision revision, Caching caching,
              const Implementation& self) {
  if (era_of(revision) == Era::legacy) return;
  if (!result.contains("resultType")) result["resultType"] = "complete";
  if (caching != Caching::none) {
    bool shared = caching == Caching::for_everyone;
    result["ttlMs"] = shared ? kListLifetimeMs : 0;
    result["cacheScope"] = shared ? "public" : "private";
  }
  json::value& meta = result["_meta"];
  if (!meta.is_object()) meta.emplace_object();
  meta.get_object()[kServerInfoKey] = schemas::encode(self);
}

}  // namespace mcp
