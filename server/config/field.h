#pragma once

// One node of the configuration tree, bound to the struct member it reads and writes. A table of
// these (config_fields.cc) is the only description of the configuration: the reader, the printer,
// the schema and the explanations walk it.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/config/config.h"

namespace hexad {

struct Field {
  enum class Kind : uint8_t { kScalar, kSection, kList, kMap, kUnsupported };
  Kind kind = Kind::kScalar;
  std::string name;
  std::string doc;
  std::string type;    // kScalar: for people, "duration, 1ms to 1m"
  std::string schema;  // kScalar: members of its JSON schema object
  bool reloadable = false;
  bool required = false;

  // kScalar, and a section in whose place one word may stand: stores `text`, or says why not
  // ("must be ..."). Empty: stored.
  std::function<std::string(const std::string& text)> parse;
  // kScalar: its value. A section: the word it stands for, empty when it is written out.
  std::function<std::string()> print;
  // Left out of the printed file (a section in its unset state).
  std::function<bool()> hidden;

  std::vector<Field> children;  // kSection

  // kList, kMap. A bound element is valid until the next append.
  std::function<void()> clear;
  std::function<Field(const std::string& key)> append;
  std::function<std::vector<Field>()> elements;  // of a map: named by their keys
  std::function<Field()> example;                // bound to a default element

  Field& Reloadable() &;
  Field Reloadable() &&;
  Field Required() &&;
};

Field Section(std::string name, std::string doc, std::vector<Field> children);
// A name that belongs to the design and that nothing serves yet.
Field Unsupported(std::string name);

Field IntegerField(std::string name, std::string doc, int64_t* value, int64_t min, int64_t max);
Field BytesField(std::string name, std::string doc, int64_t* value, int64_t min, int64_t max);
Field DurationField(std::string name, std::string doc, absl::Duration* value, absl::Duration min,
                    absl::Duration max);
Field AddressField(std::string name, std::string doc, ListenAddress* value);
// Any text without control characters, up to 4096 bytes.
Field TextField(std::string name, std::string doc, std::string* value);
// 1 to 128 of [A-Za-z0-9._/-]: what may appear in a URL, a label, a log line.
Field NameField(std::string name, std::string doc, std::string* value);
bool IsName(std::string_view text);

// The same with a word ("auto", "off") for nullopt.
Field OptionalInteger(std::string name, std::string doc, std::optional<int64_t>* value,
                      std::string word, int64_t min, int64_t max);
Field OptionalBytes(std::string name, std::string doc, std::optional<int64_t>* value,
                    std::string word, int64_t min, int64_t max);
Field OptionalAddress(std::string name, std::string doc, std::optional<ListenAddress>* value,
                      std::string word);

// One of some words; get and set see the index of the word.
Field ChoiceField(std::string name, std::string doc, std::vector<std::string> words,
                  std::function<size_t()> get, std::function<void(size_t)> set);

template <typename Enum>
Field EnumField(std::string name, std::string doc, Enum* value,
                std::vector<std::pair<std::string, Enum>> words) {
  std::vector<std::string> names;
  std::vector<Enum> values;
  for (auto& [word, each] : words) {
    names.push_back(word);
    values.push_back(each);
  }
  return ChoiceField(
      std::move(name), std::move(doc), std::move(names),
      [value, values] {
        size_t index = 0;
        while (index + 1 < values.size() && values[index] != *value) ++index;
        return index;
      },
      [value, values](size_t index) { *value = values[index]; });
}

namespace detail {

// The fields of a new element, which lives as long as they do.
template <typename Element>
Field Example(std::vector<Field> (*describe)(Element&)) {
  const auto element = std::make_shared<Element>();
  Field field = Section("", "", describe(*element));
  field.hidden = [element] { return false; };
  return field;
}

}  // namespace detail

// `describe` gives the fields of one element.
template <typename Element>
Field ListField(std::string name, std::string doc, std::vector<Element>* list,
                std::vector<Field> (*describe)(Element&)) {
  Field field;
  field.kind = Field::Kind::kList;
  field.name = std::move(name);
  field.doc = std::move(doc);
  field.clear = [list] { list->clear(); };
  field.append = [list, describe](const std::string&) {
    return Section("", "", describe(list->emplace_back()));
  };
  field.elements = [list, describe] {
    std::vector<Field> elements;
    for (Element& element : *list) elements.push_back(Section("", "", describe(element)));
    return elements;
  };
  field.example = [describe] { return detail::Example(describe); };
  return field;
}

template <typename Element>
Field MapField(std::string name, std::string doc, std::map<std::string, Element>* map,
               std::vector<Field> (*describe)(Element&)) {
  Field field;
  field.kind = Field::Kind::kMap;
  field.name = std::move(name);
  field.doc = std::move(doc);
  field.clear = [map] { map->clear(); };
  field.append = [map, describe](const std::string& key) {
    return Section(key, "", describe((*map)[key]));
  };
  field.elements = [map, describe] {
    std::vector<Field> elements;
    for (auto& [key, element] : *map) elements.push_back(Section(key, "", describe(element)));
    return elements;
  };
  field.example = [describe] { return detail::Example(describe); };
  return field;
}

}  // namespace hexad
