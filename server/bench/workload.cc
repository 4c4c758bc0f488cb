#include "server/bench/workload.h"

#include <simdjson.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "server/client/json_text.h"

namespace hexad {
namespace {

constexpr size_t kMaxEntries = size_t{1} << 20;

// Short common words: one token each, with their space, in the vocabularies of today's models.
constexpr const char* kWords[] = {
    "the",   "of",    "and",  "to",   "in",    "is",    "that", "for",   "it",    "as",
    "was",   "with",  "on",   "by",   "not",   "be",    "this", "are",   "from",  "at",
    "but",   "have",  "an",   "had",  "they",  "you",   "were", "their", "one",   "all",
    "we",    "can",   "her",  "has",  "there", "been",  "if",   "more",  "when",  "will",
    "would", "who",   "so",   "no",   "she",   "other", "its",  "may",   "these", "what",
    "them",  "than",  "some", "him",  "time",  "into",  "only", "do",    "such",  "my",
    "new",   "about", "out",  "also", "two",   "any",   "up",   "first", "could", "our"};

std::string Words(int64_t count, BenchRandom random) {
  std::string text;
  text.reserve(static_cast<size_t>(count) * 5);
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) text += ' ';
    text += kWords[random.Below(std::size(kWords))];
  }
  return text;
}

// Independent streams for independent purposes.
BenchRandom Stream(uint64_t seed, uint64_t purpose, uint64_t index) {
  BenchRandom mixed(seed * 0x9E3779B97F4A7C15u + purpose);
  return BenchRandom(mixed.Next() ^ (index * 0xD1B54A32D192ED03u));
}

}  // namespace

absl::StatusOr<std::vector<DatasetEntry>> ParseDataset(std::string_view jsonl,
                                                       std::string_view origin) {
  using simdjson::SUCCESS;
  std::vector<DatasetEntry> entries;
  simdjson::dom::parser parser;
  size_t number = 0;
  while (!jsonl.empty()) {
    const size_t end = std::min(jsonl.find('\n'), jsonl.size());
    const std::string_view line = jsonl.substr(0, end);
    jsonl.remove_prefix(std::min(end + 1, jsonl.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto bad = [&](const char* what) {
      return absl::InvalidArgumentError(std::string(origin) + ":" + std::to_string(number) + ": " +
                                        what);
    };
    if (entries.size() >= kMaxEntries) return bad("more than 1048576 entries");
    simdjson::dom::element document;
    const simdjson::padded_string padded(line);
    if (parser.parse(padded).get(document) != SUCCESS || !document.is_object()) {
      return bad("not a JSON object");
    }
    DatasetEntry entry;
    std::string_view prompt;
    simdjson::dom::array messages;
    if (document["messages"].get_array().get(messages) == SUCCESS && messages.size() > 0) {
      std::ostringstream text;
      text << simdjson::minify<simdjson::dom::array>(messages);
      entry.messages_json = text.str();
    } else if (document["prompt"].get_string().get(prompt) == SUCCESS) {
      entry.messages_json = "[{\"role\":\"user\",\"content\":" + JsonString(prompt) + "}]";
    } else {
      return bad("neither \"messages\" nor \"prompt\"");
    }
    for (const char* key : {"max_tokens", "output_tokens"}) {
      int64_t value = 0;
      if (document[key].get_int64().get(value) == SUCCESS && value > 0) entry.max_tokens = value;
    }
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) return absl::InvalidArgumentError(std::string(origin) + " has no entries");
  return entries;
}

std::string Workload::Body(uint64_t index) const {
  BenchRandom lengths = Stream(options_.seed, 1, index);
  const int64_t input_tokens = options_.input_tokens.Sample(lengths);
  int64_t output_tokens = options_.output_tokens.Sample(lengths);
  std::string body = "{\"model\":" + JsonString(options_.model) + ",\"messages\":";
  if (!options_.dataset.empty()) {
    const DatasetEntry& entry = options_.dataset[index % options_.dataset.size()];
    body += entry.messages_json;
    if (entry.max_tokens > 0) output_tokens = entry.max_tokens;
  } else {
    body += '[';
    if (options_.prefix_tokens > 0) {
      const uint64_t group =
          Stream(options_.seed, 2, index).Below(static_cast<uint64_t>(options_.prefix_groups));
      body += "{\"role\":\"system\",\"content\":\"" +
              Words(options_.prefix_tokens, Stream(options_.seed, 3, group)) + "\"},";
    }
    body += "{\"role\":\"user\",\"content\":\"" +
            Words(input_tokens, Stream(options_.seed, 4, index)) + "\"}]";
  }
  body += ",\"max_tokens\":" + std::to_string(output_tokens);
  if (options_.temperature.has_value()) {
    char number[32];
    std::snprintf(number, sizeof(number), "%g", *options_.temperature);
    body += std::string(",\"temperature\":") + number;
  }
  if (options_.ignore_eos) body += ",\"ignore_eos\":true";
  body += options_.stream ? ",\"stream\":true" : ",\"stream\":false";
  if (options_.stream && options_.ask_usage) body += ",\"stream_options\":{\"include_usage\":true}";
  return body + "}";
}

double Arrivals::Next() {
  if (!poisson_) return static_cast<double>(count_++) / rate_;
  const double now = time_;
  time_ += random_.Exponential(1 / rate_);
  return now;
}

}  // namespace hexad
