#include "server/config/field_text.h"

#include <algorithm>
#include <vector>

#include "server/config/values.h"

namespace hexad {
namespace {

// Plain YAML text where that is unmistakable, else a double-quoted string.
std::string YamlScalar(const std::string& text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '/' || c == '.';
  };
  const bool bare = !text.empty() && plain(text.front()) && text.back() != ':' && text != "null" &&
                    text != "Null" && text != "NULL" &&
                    text.find_first_not_of(
                        "abcdefghijklmnopqrstuvwxyz"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789_/.-+:") == std::string::npos;
  if (bare) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  return quoted + "\"";
}

bool IsHidden(const Field& field) {
  return field.kind == Field::Kind::kUnsupported || (field.hidden != nullptr && field.hidden());
}

void AppendYaml(const Field& field, size_t indent, std::string* out);

void AppendChildren(const std::vector<Field>& children, size_t indent, std::string* out) {
  for (const Field& child : children) AppendYaml(child, indent, out);
}

void AppendYaml(const Field& field, size_t indent, std::string* out) {
  if (IsHidden(field)) return;
  const std::string margin(indent, ' ');
  switch (field.kind) {
    case Field::Kind::kUnsupported:
      return;
    case Field::Kind::kScalar:
      out->append(margin + field.name + ": " + YamlScalar(field.print()) + "\n");
      return;
    case Field::Kind::kSection: {
      const std::string word = field.print == nullptr ? "" : field.print();
      out->append(margin + field.name + ":" + (word.empty() ? "" : " " + word) + "\n");
      if (word.empty()) AppendChildren(field.children, indent + 2, out);
      return;
    }
    case Field::Kind::kMap: {
      const std::vector<Field> elements = field.elements();
      out->append(margin + field.name + (elements.empty() ? ": {}\n" : ":\n"));
      AppendChildren(elements, indent + 2, out);
      return;
    }
    case Field::Kind::kList: {
      const std::vector<Field> elements = field.elements();
      out->append(margin + field.name + (elements.empty() ? ": []\n" : ":\n"));
      for (const Field& element : elements) {
        std::string block;
        AppendChildren(element.children, indent + 4, &block);
        block[indent + 2] = '-';
        out->append(block);
      }
      return;
    }
  }
}

std::string JsonString(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json.push_back('\\');
    json.push_back(c);
  }
  return json + "\"";
}

std::string ObjectSchema(const std::vector<Field>& children);

std::string SchemaMembers(const Field& field) {
  std::string members;
  switch (field.kind) {
    case Field::Kind::kUnsupported:
      break;
    case Field::Kind::kScalar:
      members = field.schema + (field.required ? "" : ",\"default\":" + JsonString(field.print()));
      break;
    case Field::Kind::kSection:
      members = ObjectSchema(field.children);
      if (field.parse != nullptr) members = "\"anyOf\":[{" + field.schema + "},{" + members + "}]";
      break;
    case Field::Kind::kList:
      members = "\"type\":\"array\",\"items\":{" + SchemaMembers(field.example()) + "}";
      break;
    case Field::Kind::kMap:
      members =
          "\"type\":\"object\",\"additionalProperties\":{" + SchemaMembers(field.example()) + "}";
      break;
  }
  if (!field.doc.empty()) members += ",\"description\":" + JsonString(field.doc);
  return members;
}

std::string ObjectSchema(const std::vector<Field>& children) {
  std::string properties;
  std::string required;
  for (const Field& child : children) {
    if (child.kind == Field::Kind::kUnsupported) continue;
    properties += (properties.empty() ? "" : ",") + JsonString(child.name) + ":{" +
                  SchemaMembers(child) + "}";
    if (child.required) required += (required.empty() ? "" : ",") + JsonString(child.name);
  }
  return "\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" + properties + "}" +
         (required.empty() ? "" : ",\"required\":[" + required + "]");
}

std::string PathOf(const std::string& parent, const Field& parent_field, const Field& field) {
  const std::string prefix = parent + (parent_field.kind == Field::Kind::kList  ? "[]"
                                       : parent_field.kind == Field::Kind::kMap ? ".NAME"
                                                                                : "");
  return prefix.empty() ? field.name : prefix + "." + field.name;
}

std::string TypeOf(const Field& field) {
  switch (field.kind) {
    case Field::Kind::kScalar:
      return field.type;
    case Field::Kind::kSection:
      return field.type.empty() ? "section" : field.type + " or section";
    case Field::Kind::kList:
      return "list";
    case Field::Kind::kMap:
      return "mapping by name";
    case Field::Kind::kUnsupported:
      return "not supported in this version";
  }
  return "";
}

// One line a field and below it, in the order of the file.
void AppendLines(const std::string& path, const Field& field, std::string* out) {
  const Field owner = field.example == nullptr ? field : field.example();
  for (const Field& child : owner.children) {
    if (child.kind == Field::Kind::kUnsupported) continue;
    const std::string child_path = PathOf(path, field, child);
    out->append(child_path + " (" + TypeOf(child));
    if (child.kind == Field::Kind::kScalar) {
      out->append(child.required ? "; required" : "; default " + child.print());
    }
    out->append(child.reloadable ? "; reloadable): " : "): ");
    out->append(child.doc + "\n");
    if (child.kind != Field::Kind::kScalar) AppendLines(child_path, child, out);
  }
}

void AppendValues(const Field& field, const std::string& path, bool reloadable,
                  std::map<std::string, std::string>* values) {
  for (const Field& child : field.children) {
    if (IsHidden(child)) continue;
    const std::string child_path = path.empty() ? child.name : path + "." + child.name;
    if (child.kind == Field::Kind::kSection) {
      if (child.print != nullptr && !child.print().empty()) {
        (*values)[child_path] = child.print();
      } else {
        AppendValues(child, child_path, reloadable, values);
      }
    } else if (child.reloadable == reloadable) {
      AppendYaml(child, 0, &(*values)[child_path]);
    }
  }
}

}  // namespace

std::string PrintYaml(const Field& root) {
  std::string out;
  AppendChildren(root.children, 0, &out);
  return out;
}

std::string PrintSchema(const Field& root, std::string_view title) {
  return "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"title\":" +
         JsonString(title) + "," + SchemaMembers(root) + "}\n";
}

absl::StatusOr<std::string> Explain(const Field& root, std::string_view path) {
  Field field = root;
  std::vector<Field> owners;  // an example owns the element its children are bound to
  std::string walked;
  std::string rest(path);
  while (!rest.empty()) {
    const size_t dot = rest.find('.');
    std::string name = rest.substr(0, dot);
    rest = dot == std::string::npos ? std::string() : rest.substr(dot + 1);
    name = name.substr(0, name.find('['));
    Field parent = field.example == nullptr ? field : field.example();
    const auto same = [&name](const Field& child) { return child.name == name; };
    // "policy.tenants.acme.weight": the name of an entry may be written or left out.
    auto found = std::find_if(parent.children.begin(), parent.children.end(), same);
    if (found == parent.children.end() && field.kind == Field::Kind::kMap) continue;
    if (found == parent.children.end()) {
      std::vector<std::string> names;
      for (const Field& child : parent.children) names.push_back(child.name);
      const std::optional<std::string> nearest = NearestName(name, names);
      const std::string prefix = walked.empty() ? "" : walked + ".";
      std::string message = "no field " + prefix + name;
      if (nearest.has_value()) {
        message += "; did you mean " + prefix + *nearest + "?";
      } else if (!names.empty()) {
        message += "; there are";
        for (const std::string& each : names) message += " " + prefix + each;
      }
      return absl::NotFoundError(message);
    }
    walked = PathOf(walked, field, *found);
    Field next = *found;
    owners.push_back(std::move(parent));
    field = std::move(next);
  }
  if (walked.empty()) return ExplainAllFields(root);
  std::string out = walked + ": " + TypeOf(field) + "\n";
  if (!field.doc.empty()) out += "  " + field.doc + "\n";
  if (field.kind == Field::Kind::kUnsupported) return out;
  if (field.kind == Field::Kind::kScalar) {
    out += field.required ? "  Required.\n" : "  Default: " + field.print() + "\n";
  }
  out += field.reloadable ? "  A reload may change it.\n" : "  Fixed until a restart.\n";
  if (field.kind != Field::Kind::kScalar) AppendLines(walked, field, &out);
  return out;
}

std::string ExplainAllFields(const Field& root) {
  std::string out;
  AppendLines("", root, &out);
  return out;
}

std::map<std::string, std::string> FlatValues(const Field& root, bool reloadable) {
  std::map<std::string, std::string> values;
  AppendValues(root, "", reloadable, &values);
  return values;
}

}  // namespace hexad
