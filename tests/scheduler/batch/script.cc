#include "tests/scheduler/batch/script.h"

#include <cstdlib>
#include <sstream>

namespace hexad::testing {
namespace {

using Fields = std::map<std::string, std::string>;

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

// Each named member once, for reading and for writing.
template <typename Visit>
void VisitRequest(ScriptRequest& request, Visit visit) {
  visit("tenant", request.tenant);
  visit("family", request.family);
  visit("shared", request.shared);
  visit("unique", request.unique);
  visit("resumed", request.resumed);
  visit("max_new", request.max_new);
  visit("min_new", request.min_new);
  visit("eos", request.eos);
  visit("ignore_eos", request.ignore_eos);
  visit("rank", request.rank);
  visit("arrival", request.arrival);
  visit("keyed", request.keyed);
}

template <typename Visit>
void VisitConfig(Script& script, Visit visit) {
  int64_t target_us = absl::ToInt64Microseconds(script.config.step_target);
  const auto int32 = [&](const char* name, int32_t& value) {
    int64_t wide = value;
    visit(name, wide);
    value = static_cast<int32_t>(wide);
  };
  int32("block_tokens", script.layout.block_tokens);
  int32("max_running", script.config.max_running);
  int32("max_waiting", script.config.max_waiting);
  int32("steps", script.config.max_steps_in_flight);
  int32("step_tokens", script.config.max_step_tokens);
  int32("min_chunk", script.config.min_chunk_tokens);
  int32("max_context", script.config.max_context_tokens);
  int32("max_chunk", script.config.max_chunk_tokens);
  int32("first_chunk", script.config.first_chunk_tokens);
  int64_t idle_factor = static_cast<int64_t>(script.config.idle_step_factor);
  visit("idle_factor", idle_factor);
  script.config.idle_step_factor = static_cast<double>(idle_factor);
  visit("target_us", target_us);
  script.config.step_target = absl::Microseconds(target_us);
}

bool ParseFields(const std::vector<std::string>& words, size_t first, Fields& fields) {
  for (size_t i = first; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos) return false;
    fields[words[i].substr(0, equals)] = words[i].substr(equals + 1);
  }
  return true;
}

void Take(Fields& fields, const char* name, int64_t& value) {
  const auto found = fields.find(name);
  if (found == fields.end()) return;
  value = std::strtoll(found->second.c_str(), nullptr, 10);
  fields.erase(found);
}

bool ParseConfig(Fields fields, Script& script) {
  for (const std::string& name : Split(fields["groups"], ',')) {
    KvGroup group;
    group.bytes_per_token = 1;
    const std::vector<std::string> parts = Split(name, ':');
    if (parts[0] == "window" && parts.size() == 2) {
      group.kind = GroupKind::kWindow;
      group.window_tokens = std::atoi(parts[1].c_str());
    } else if (parts[0] == "latent") {
      group.kind = GroupKind::kLatent;
    } else if (parts[0] != "full") {
      return false;
    }
    script.layout.groups.push_back(group);
  }
  for (const std::string& blocks : Split(fields["pools"], ',')) {
    script.pools.push_back(static_cast<uint32_t>(std::atoi(blocks.c_str())));
  }
  fields.erase("groups");
  fields.erase("pools");
  VisitConfig(script, [&](const char* name, int64_t& value) { Take(fields, name, value); });
  return fields.empty() && !script.pools.empty() &&
         script.pools.size() == script.layout.groups.size();
}

bool ParseLine(const std::vector<std::string>& words, Script& script) {
  Fields fields;
  if (words[0] == "config") return ParseFields(words, 1, fields) && ParseConfig(fields, script);
  if (words[0] == "request") {
    if (words.size() < 2 || !ParseFields(words, 2, fields)) return false;
    ScriptRequest request;
    request.id = std::atoll(words[1].c_str());
    VisitRequest(request, [&](const char* name, int64_t& value) { Take(fields, name, value); });
    script.requests[request.id] = request;
    return fields.empty();
  }
  script.ops.push_back({words[0], {words.begin() + 1, words.end()}});
  return true;
}

}  // namespace

std::optional<Script> ParseScript(std::string_view text, std::string& error) {
  Script script;
  std::istringstream stream{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    const std::vector<std::string> words = Split(line.substr(0, line.find('#')), ' ');
    if (words.empty()) continue;
    if (!ParseLine(words, script)) {
      error = "line " + std::to_string(number) + ": " + line;
      return std::nullopt;
    }
  }
  if (script.pools.empty()) {
    error = "no config line";
    return std::nullopt;
  }
  return script;
}

std::string PrintScript(const Script& original) {
  Script script = original;
  std::ostringstream out;
  out << "config groups=";
  for (size_t g = 0; g < script.layout.groups.size(); ++g) {
    const KvGroup& group = script.layout.groups[g];
    out << (g ? "," : "");
    if (group.kind == GroupKind::kWindow) out << "window:" << group.window_tokens;
    if (group.kind == GroupKind::kLatent) out << "latent";
    if (group.kind == GroupKind::kFull) out << "full";
  }
  out << " pools=";
  for (size_t g = 0; g < script.pools.size(); ++g) out << (g ? "," : "") << script.pools[g];
  VisitConfig(script,
              [&](const char* name, int64_t& value) { out << ' ' << name << '=' << value; });
  out << '\n';
  for (auto& [id, request] : script.requests) {
    out << "request " << id;
    VisitRequest(request,
                 [&](const char* name, int64_t& value) { out << ' ' << name << '=' << value; });
    out << '\n';
  }
  for (const ScriptOp& op : script.ops) {
    out << op.verb;
    for (const std::string& argument : op.arguments) out << ' ' << argument;
    out << '\n';
  }
  return out.str();
}

}  // namespace hexad::testing
