#include "transport/http/oauth.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <sstream>
#include <stdexcept>

namespace transport::http {

namespace json = boost::json;

namespace {

constexpr std::chrono::seconds kLeeway{60};  // by which clocks may differ
constexpr std::size_t kMaxSubject = 255;
constexpr const char* kWellKnown = "/.well-known/oauth-protected-resource";

// A NumericDate (RFC 7519, section 2): seconds, possibly with a fraction.
std::optional<double> time_in(const json::object& claims, const char* name) {
  const json::value* value = claims.if_contains(name);
  if (!value || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

// A claim that is one text; empty if it is not.
std::string text_in(const json::object& claims, const char* name) {
  const json::value* value = claims.if_contains(name);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

// A claim that is one text or an array of them.
std::vector<std::string> texts_in(const json::object& claims, const char* name) {
  std::vector<std::string> texts;
  const json::value* value = claims.if_contains(name);
  if (value && value->is_string()) texts.emplace_back(value->get_string());
  if (value && value->is_array())
    for (const json::value& entry : value->get_array())
      if (entry.is_string()) texts.emplace_back(entry.get_string());
  return texts;
}

// `scope` (RFC 9068, section 2.2.3) or what some issuers write instead, `scp`.
std::vector<std::string> scopes_in(const json::object& claims) {
  std::vector<std::string> scopes;
  for (const char* name : {"scope", "scp"})
    for (const std::string& text : texts_in(claims, name)) {
      std::istringstream words(text);
      for (std::string word; words >> word;) scopes.push_back(word);
    }
  return scopes;
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// The path of "https://host/mcp": "/mcp"; empty for a root.
std::string path_of(const std::string& url) {
  std::size_t slash = url.find('/', url.find("://") + 3);
  return slash == url.npos ? std::string() : url.substr(slash);
}

bool is_url(const std::string& text) {
  return (text.starts_with("https://") || text.starts_with("http://")) &&
         text.find_first_of("\"\\# \t\r\n") == text.npos;
}

OAuth::Verdict invalid(std::string problem) {
  OAuth::Verdict verdict;
  verdict.problem = std::move(problem);
  return verdict;
}

bool is_scope(const std::string& text) {  // RFC 6749, section 3.3
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 0x7f && c != '"' && c != '\\';
  });
}

}  // namespace

OAuth::OAuth(OAuthOptions options, JwksSource& keys) : options_(std::move(options)), keys_(keys) {
  if (!is_url(options_.issuer)) throw std::runtime_error("the OAuth issuer is not a URL");
  if (!is_url(options_.resource))
    throw std::runtime_error("OAuth needs the URL that clients use for this server");
  if (!std::all_of(options_.scopes.begin(), options_.scopes.end(), is_scope))
    throw std::runtime_error("an OAuth scope is of printable characters without blanks and quotes");
  while (options_.resource.ends_with('/')) options_.resource.pop_back();
  if (options_.audience.empty()) options_.audience = options_.resource;
  if (options_.authorization_servers.empty())
    options_.authorization_servers.push_back(options_.issuer);
}

OAuth::Verdict OAuth::check(std::string_view text,
                            std::chrono::system_clock::time_point now) const {
  try {
    SignedToken token(text);
    if (auto claims = token.claims(keys_.keys())) return judge(*claims, now);
    Verdict verdict = invalid("its key is not one of the issuer's");
    if (keys_.keys().empty()) verdict.kind = Verdict::Kind::no_keys;
    return verdict;
  } catch (const std::runtime_error& problem) {
    return invalid(problem.what());
  }
}

OAuth::Verdict OAuth::judge(const json::object& claims,
                            std::chrono::system_clock::time_point now) const {
  double seconds = std::chrono::duration<double>(now.time_since_epoch()).count();
  double leeway = static_cast<double>(kLeeway.count());
  std::string subject = text_in(claims, "sub");
  auto expires = time_in(claims, "exp"), begins = time_in(claims, "nbf");
  if (text_in(claims, "iss") != options_.issuer) return invalid("it is of another issuer");
  if (!contains(texts_in(claims, "aud"), options_.audience))
    return invalid("it is not made out for this server (its audience is another)");
  if (!expires) return invalid("it does not say when it expires");
  if (seconds >= *expires + leeway) return invalid("it has expired");
  if (claims.contains("nbf") && (!begins || seconds < *begins - leeway))
    return invalid("it is not valid yet");
  auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  if (subject.empty() || subject.size() > kMaxSubject ||
      std::any_of(subject.begin(), subject.end(), is_control))
    return invalid("it does not say whose it is");
  std::vector<std::string> scopes = scopes_in(claims);
  Verdict verdict;
  verdict.kind = Verdict::Kind::accepted;
  verdict.principal = options_.issuer + "#" + subject;  // an issuer has no '#' (RFC 8414)
  for (const std::string& scope : options_.scopes)
    if (!contains(scopes, scope)) {
      verdict.kind = Verdict::Kind::insufficient_scope;
      verdict.problem = "it lacks the scope " + scope;
    }
  return verdict;
}

awaitable<void> OAuth::prepare(std::string text) {
  std::string kid;
  try {
    kid = SignedToken(text).kid();
  } catch (const std::runtime_error&) {
    co_return;  // check() says why
  }
  if (!keys_.keys().has(kid)) co_await keys_.look_for(std::move(kid));
}

std::string OAuth::metadata() const {
  json::object document;
  document["resource"] = options_.resource;
  document["authorization_servers"] = json::value_from(options_.authorization_servers);
  document["bearer_methods_supported"] = json::array{"header"};
  document["resource_name"] = "pykeep";
  if (!options_.scopes.empty()) document["scopes_supported"] = json::value_from(options_.scopes);
  return json::serialize(document);
}

std::vector<std::string> OAuth::metadata_paths() const {
  std::vector<std::string> paths{kWellKnown};
  std::string path = path_of(options_.resource);
  if (!path.empty()) paths.push_back(kWellKnown + path);
  // Whatever prefix a proxy takes off, the endpoint here is /mcp.
  if (path != "/mcp") paths.push_back(std::string(kWellKnown) + "/mcp");
  return paths;
}

std::string OAuth::metadata_url() const {
  std::string path = path_of(options_.resource);
  return options_.resource.substr(0, options_.resource.size() - path.size()) + kWellKnown + path;
}

Response OAuth::metadata_response() const {
  Response response;
  response.headers.emplace_back("Content-Type", "application/json");
  response.headers.emplace_back("Cache-Control", "max-age=3600");
  response.body = metadata();
  return response;
}

std::string OAuth::scope() const {
  std::string all;
  for (const std::string& scope : options_.scopes) all += (all.empty() ? "" : " ") + scope;
  return all;
}

}  // namespace transport::http
