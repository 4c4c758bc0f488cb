#include "server/config/yaml_reader.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "server/config/values.h"

namespace hexad {
namespace {

constexpr size_t kMaxTextBytes = 1 << 20;
constexpr size_t kMaxProblems = 20;
constexpr size_t kMaxElements = 4096;
constexpr int kMaxDepth = 40;  // our own tree is five deep
constexpr int kMaxNodes = 200'000;

std::string Join(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

// Values in messages: short, and without anything that could forge a line.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text.substr(0, 60)) {
    const auto byte = static_cast<unsigned char>(c);
    quoted.push_back(byte < 0x20 || byte == 0x7f ? '?' : c);
  }
  return quoted + (text.size() > 60 ? "...\"" : "\"");
}

// All paths that end in `name`: where a field that is written in the wrong place belongs.
void FindByName(const Field& field, const std::string& path, const std::string& name,
                std::vector<std::string>* found) {
  for (const Field& child : field.children) {
    const std::string child_path = Join(path, child.name);
    if (child.name == name && child.kind != Field::Kind::kUnsupported) {
      found->push_back(child_path);
    }
    FindByName(child, child_path, name, found);
  }
  if (field.example != nullptr) FindByName(field.example(), path + "[]", name, found);
}

class Reader final {
 public:
  Reader(std::string_view name, const Field& root, ReadResult* result)
      : name_(name), root_(root), result_(*result) {}

  void Read(const YAML::Node& node, Field& field, const std::string& path);
  void Problem(const YAML::Mark& mark, const std::string& message);

 private:
  void ReadScalar(const YAML::Node& node, Field& field, const std::string& path);
  void ReadSection(const YAML::Node& node, Field& field, const std::string& path);
  void ReadList(const YAML::Node& node, Field& field, const std::string& path);
  void ReadMap(const YAML::Node& node, Field& field, const std::string& path);
  void UnknownName(const YAML::Node& key, const Field& field, const std::string& path);
  // The text of a mapping's key, when it is usable and new.
  std::optional<std::string> ReadKey(const YAML::Node& key, std::set<std::string>* seen,
                                     const std::string& path);
  bool Full() const { return result_.problems.size() >= kMaxProblems; }
  static std::string Subject(const std::string& path) { return path.empty() ? "this file" : path; }

  const std::string name_;
  const Field& root_;
  ReadResult& result_;
};

void Reader::Problem(const YAML::Mark& mark, const std::string& message) {
  if (Full()) return;
  const bool known = !mark.is_null();
  result_.problems.push_back(name_ + ":" + std::to_string(known ? mark.line + 1 : 1) + ":" +
                             std::to_string(known ? mark.column + 1 : 1) + ": " + message);
}

void Reader::Read(const YAML::Node& node, Field& field, const std::string& path) {
  if (Full()) return;
  const YAML::Mark mark = node.Mark();
  if (!mark.is_null()) result_.places[path] = Place{mark.line + 1, mark.column + 1};
  switch (field.kind) {
    case Field::Kind::kScalar:
      return ReadScalar(node, field, path);
    case Field::Kind::kSection:
      return ReadSection(node, field, path);
    case Field::Kind::kList:
      return ReadList(node, field, path);
    case Field::Kind::kMap:
      return ReadMap(node, field, path);
    case Field::Kind::kUnsupported:
      return Problem(mark, path + " is not supported in this version");
  }
}

void Reader::ReadScalar(const YAML::Node& node, Field& field, const std::string& path) {
  if (!node.IsScalar()) {
    return Problem(node.Mark(), path + " must be one value (" + field.type + ")");
  }
  const std::string& text = node.Scalar();
  const std::string problem = field.parse(text);
  if (!problem.empty()) Problem(node.Mark(), path + " " + problem + ", not " + Quoted(text));
}

std::optional<std::string> Reader::ReadKey(const YAML::Node& key, std::set<std::string>* seen,
                                           const std::string& path) {
  if (!key.IsScalar()) {
    Problem(key.Mark(), "names in " + Subject(path) + " must be plain text");
    return std::nullopt;
  }
  if (!seen->insert(key.Scalar()).second) {
    Problem(key.Mark(), Quoted(key.Scalar()) + " is written twice in " + Subject(path));
    return std::nullopt;
  }
  return key.Scalar();
}

void Reader::ReadSection(const YAML::Node& node, Field& field, const std::string& path) {
  if (node.IsScalar() && field.parse != nullptr) {
    const std::string problem = field.parse(node.Scalar());
    if (!problem.empty()) {
      Problem(node.Mark(), path + " " + problem + ", not " + Quoted(node.Scalar()));
    }
    return;
  }
  if (!node.IsMap()) {
    return Problem(node.Mark(), Subject(path) + " must be a mapping of names");
  }
  std::set<std::string> seen;
  for (const auto& entry : node) {
    if (Full()) return;
    const std::optional<std::string> name = ReadKey(entry.first, &seen, path);
    if (!name.has_value()) continue;
    Field* child = nullptr;
    for (Field& each : field.children) {
      if (each.name == *name) child = &each;
    }
    if (child == nullptr) {
      UnknownName(entry.first, field, path);
    } else if (entry.second.IsNull()) {  // which has no place of its own
      Problem(entry.first.Mark(), Join(path, *name) + " has no value");
    } else {
      Read(entry.second, *child, Join(path, *name));
    }
  }
  for (const Field& child : field.children) {
    if (child.required && !seen.contains(child.name)) {
      Problem(node.Mark(), Subject(path) + " needs " + child.name);
    }
  }
}

void Reader::UnknownName(const YAML::Node& key, const Field& field, const std::string& path) {
  const std::string& name = key.Scalar();
  std::string message = "unknown field " + Quoted(name) + " in " + Subject(path);
  std::vector<std::string> siblings;
  for (const Field& child : field.children) {
    if (child.kind != Field::Kind::kUnsupported) siblings.push_back(child.name);
  }
  if (const auto nearest = NearestName(name, siblings); nearest.has_value()) {
    message += "; did you mean " + Join(path, *nearest) + "?";
  } else {
    std::vector<std::string> elsewhere;
    FindByName(root_, "", name, &elsewhere);
    if (!elsewhere.empty()) message += "; it belongs at " + elsewhere.front();
  }
  Problem(key.Mark(), message);
}

void Reader::ReadList(const YAML::Node& node, Field& field, const std::string& path) {
  if (!node.IsSequence()) return Problem(node.Mark(), Subject(path) + " must be a list");
  if (node.size() > kMaxElements) {
    return Problem(node.Mark(), Subject(path) + " is longer than " + std::to_string(kMaxElements));
  }
  field.clear();
  size_t index = 0;
  for (const auto& element : node) {
    if (Full()) return;
    Field bound = field.append("");
    Read(element, bound, path + "[" + std::to_string(index++) + "]");
  }
}

void Reader::ReadMap(const YAML::Node& node, Field& field, const std::string& path) {
  if (!node.IsMap()) return Problem(node.Mark(), Subject(path) + " must be a mapping of names");
  if (node.size() > kMaxElements) {
    return Problem(node.Mark(), Subject(path) + " is longer than " + std::to_string(kMaxElements));
  }
  field.clear();
  std::set<std::string> seen;
  for (const auto& entry : node) {
    if (Full()) return;
    const std::optional<std::string> name = ReadKey(entry.first, &seen, path);
    if (!name.has_value()) continue;
    if (!IsName(*name)) {
      Problem(entry.first.Mark(), Quoted(*name) + " must be 1 to 128 letters, digits and ._/-");
      continue;
    }
    if (entry.second.IsNull()) {
      Problem(entry.first.Mark(), Join(path, *name) + " has no value");
      continue;
    }
    Field bound = field.append(*name);
    Read(entry.second, bound, Join(path, *name));
  }
}

// Looks at the parser's events before anything is built of them: yaml-cpp recurses once a level,
// and after some malformed texts its parser gives empty documents for ever.
class Inspector final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) throw YAML::Exception(mark, "there must be one YAML document");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { Count(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { Count(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string&) override {
    Count(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    Descend(mark);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    Descend(mark);
  }
  void OnMapEnd() override { --depth_; }

 private:
  void Count(const YAML::Mark& mark) {
    if (++nodes_ > kMaxNodes) throw YAML::Exception(mark, "too long");
  }
  void Descend(const YAML::Mark& mark) {
    Count(mark);
    if (++depth_ > kMaxDepth) throw YAML::Exception(mark, "nested too deeply");
  }

  int documents_ = 0;
  int depth_ = 0;
  int nodes_ = 0;
};

// The one document of the text; a null node when there is none. Throws what yaml-cpp throws.
YAML::Node LoadDocument(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Inspector inspector;
  while (parser.HandleNextDocument(inspector)) {
  }
  return YAML::Load(text);
}

// yaml-cpp takes UTF-16 and UTF-32 too, and most bytes.
bool IsText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    const bool control = byte < 0x20 && c != '\n' && c != '\r' && c != '\t';
    return !control && byte != 0x7f && byte < 0xf8;
  });
}

}  // namespace

ReadResult ReadYaml(std::string_view text, std::string_view name, Field& root) {
  ReadResult result;
  Reader reader(name, root, &result);
  if (text.size() > kMaxTextBytes) {
    reader.Problem(YAML::Mark::null_mark(), "longer than 1 MiB");
    return result;
  }
  if (!IsText(text)) {
    reader.Problem(YAML::Mark::null_mark(), "not a UTF-8 text, or with control characters");
    return result;
  }
  try {
    const YAML::Node document = LoadDocument(std::string(text));
    if (!document.IsNull()) reader.Read(document, root, "");
  } catch (const YAML::Exception& error) {
    reader.Problem(error.mark, error.msg);
  } catch (const std::exception& error) {
    reader.Problem(YAML::Mark::null_mark(), error.what());
  }
  return result;
}

std::string ProblemAt(const ReadResult& result, std::string_view name, std::string path,
                      std::string_view message) {
  auto found = result.places.find(path);
  while (found == result.places.end() && !path.empty()) {
    const size_t cut = path.find_last_of(".[");
    path = cut == std::string::npos ? std::string() : path.substr(0, cut);
    found = result.places.find(path);
  }
  const Place place = found == result.places.end() ? Place{1, 1} : found->second;
  return std::string(name) + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) +
         ": " + std::string(message);
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxTextBytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) {
    const std::string why = errno != 0 ? std::strerror(errno) : "cannot be read";
    return errno == ENOENT ? absl::NotFoundError(path + ": " + why)
                           : absl::FailedPreconditionError(path + ": " + why);
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxTextBytes) return absl::InvalidArgumentError(path + ": longer than 1 MiB");
  return text;
}

}  // namespace hexad
