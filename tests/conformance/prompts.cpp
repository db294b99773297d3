#include "tests/conformance/fixtures.hpp"

namespace conformance {

using mcp::awaitable;
using mcp::Call;
using mcp::GetPromptResult;
using Arguments = mcp::Prompt::Arguments;

namespace {

GetPromptResult saying(mcp::Content content) {
  GetPromptResult result;
  result.messages.push_back(user_message(std::move(content)));
  return result;
}

awaitable<GetPromptResult> simple(Call&, const Arguments&) {
  co_return saying(mcp::text_content("This is a simple prompt for testing."));
}

awaitable<GetPromptResult> with_arguments(Call&, const Arguments& arguments) {
  std::string text = "Prompt with arguments: arg1='" + arguments.at("arg1") + "', arg2='" +
                     arguments.at("arg2") + "'";
  co_return saying(mcp::text_content(std::move(text)));
}

awaitable<GetPromptResult> with_resource(Call&, const Arguments& arguments) {
  auto contents = text_resource(arguments.at("resourceUri"), "Embedded resource content.");
  GetPromptResult result = saying(mcp::resource_content(std::move(contents)));
  result.messages.push_back(user_message(mcp::text_content("Please process the resource.")));
  co_return result;
}

awaitable<GetPromptResult> with_image(Call&, const Arguments&) {
  GetPromptResult result = saying(mcp::image_content(kPng, "image/png"));
  result.messages.push_back(user_message(mcp::text_content("Please look at the image.")));
  co_return result;
}

awaitable<GetPromptResult> with_question(Call& call, const Arguments&) {
  mcp::InputRequests requests;
  requests["user_context"] = question("What context should the prompt use?", "context", "string");
  std::optional<std::string> no_state;
  std::chrono::seconds limit(20);
  mcp::InputResponses responses =
      co_await call.ask(std::move(requests), std::move(no_state), limit);
  mcp::Answer answer = mcp::answer_in(responses, "user_context");
  co_return saying(mcp::text_content(boost::json::serialize(answer.content)));
}

mcp::PromptArgument argument(std::string name) {
  mcp::PromptArgument argument;
  argument.description = "The argument " + name;
  argument.name = std::move(name);
  argument.required = true;
  return argument;
}

}  // namespace

std::vector<mcp::Prompt> prompts() {
  std::vector<mcp::Prompt> all;
  auto add = [&all](const char* name, std::vector<std::string> arguments, auto get) {
    mcp::Prompt& prompt = all.emplace_back();
    prompt.info.name = name;
    prompt.info.description = "A prompt for tests.";
    for (std::string& one : arguments) prompt.info.arguments.push_back(argument(std::move(one)));
    prompt.get = get;
  };
  add("test_simple_prompt", {}, simple);
  add("test_prompt_with_arguments", {"arg1", "arg2"}, with_arguments);
  add("test_prompt_with_embedded_resource", {"resourceUri"}, with_resource);
  add("test_prompt_with_image", {}, with_image);
  add("test_input_required_result_prompt", {}, with_question);
  return all;
}

awaitable<std::vector<std::string>> complete(Call&, const mcp::CompleteParams& params) {
  std::vector<std::string> values;
  for (const char* word : {"paris", "park", "party"})
    if (std::string_view(word).starts_with(params.argument.value)) values.emplace_back(word);
  co_return values;
}

mcp::PromptMessage user_message(mcp::Content content) {
  mcp::PromptMessage message;
  message.role = "user";
  message.content = std::move(content);
  return message;
}

}  // namespace conformance
