#pragma once

// The values that a chat template computes with: JSON's, with Python's meaning. Cheap to copy;
// strings, lists and dicts are immutable and shared, so one value may be read by many threads.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace hexad {

class TemplateDict;
class TemplateObject;

class TemplateValue final {
 public:
  enum class Kind : uint8_t {
    kUndefined,  // Jinja's Undefined: prints nothing, is false, has no attributes
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,
    kList,
    kTuple,
    kGenerator,  // what lazy filters give: can be iterated, has no length and is always true
    kDict,
    kObject,  // inside a rendering only: functions, macros, namespaces, loops
  };
  using List = std::vector<TemplateValue>;

  TemplateValue() = default;                                                       // undefined
  TemplateValue(bool value) : kind_(Kind::kBool) { scalar_.boolean = value; }      // NOLINT
  TemplateValue(int64_t value) : kind_(Kind::kInt) { scalar_.integer = value; }    // NOLINT
  TemplateValue(int value) : TemplateValue(static_cast<int64_t>(value)) {}         // NOLINT
  TemplateValue(double value) : kind_(Kind::kFloat) { scalar_.floating = value; }  // NOLINT
  TemplateValue(std::string value);                                                // NOLINT
  TemplateValue(std::string_view value) : TemplateValue(std::string(value)) {}     // NOLINT
  TemplateValue(const char* value) : TemplateValue(std::string(value)) {}          // NOLINT
  TemplateValue(List value) : TemplateValue(Kind::kList, std::move(value)) {}      // NOLINT
  TemplateValue(TemplateDict value);                                               // NOLINT
  // `kind` is one of kList, kTuple and kGenerator.
  TemplateValue(Kind kind, List items);
  explicit TemplateValue(std::shared_ptr<TemplateObject> object);

  static TemplateValue None();
  // An undefined value that says why when it is used: "'x' is undefined".
  static TemplateValue Undefined(std::string why);

  Kind kind() const { return kind_; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_bool() const { return kind_ == Kind::kBool; }
  bool is_int() const { return kind_ == Kind::kInt; }
  bool is_float() const { return kind_ == Kind::kFloat; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_dict() const { return kind_ == Kind::kDict; }
  bool is_object() const { return kind_ == Kind::kObject; }
  // A list, a tuple or a generator.
  bool is_sequence() const {
    return kind_ == Kind::kList || kind_ == Kind::kTuple || kind_ == Kind::kGenerator;
  }
  bool is_number() const { return is_bool() || is_int() || is_float(); }

  // Each requires the kind.
  bool boolean() const { return scalar_.boolean; }
  int64_t integer() const { return is_bool() ? scalar_.boolean : scalar_.integer; }  // bool, int
  double number() const;  // bool, int, float
  const std::string& string() const { return *static_cast<const std::string*>(data_.get()); }
  const List& items() const { return *static_cast<const List*>(data_.get()); }
  const TemplateDict& dict() const;
  TemplateObject& object() const;
  std::string why_undefined() const;

  bool Truthy() const;
  // Python's ==: 1 == 1.0 == True, sequences and dicts by content. Lists may share parts, which
  // makes comparing them exponential: every comparison takes from `budget`, and false is the
  // answer once it is below zero.
  bool Equals(const TemplateValue& other, int64_t& budget) const;
  // How deep lists and dicts nest; 0 for scalars.
  int nesting() const { return nesting_; }
  // Python's name of the type, for messages: "str", "dict", ...
  const char* TypeName() const;

 private:
  union Scalar {
    bool boolean;
    int64_t integer = 0;
    double floating;
  };
  Kind kind_ = Kind::kUndefined;
  int32_t nesting_ = 0;
  Scalar scalar_;
  std::shared_ptr<const void> data_;
};

// Keeps the order of insertion. Keys are strings as a rule; numbers, booleans, None and tuples of
// them are possible in a template.
class TemplateDict final {
 public:
  using Entry = std::pair<TemplateValue, TemplateValue>;

  TemplateDict() = default;
  TemplateDict(std::initializer_list<Entry> entries);
  // Replaces the value of an equal key, which keeps its place. False when the key cannot be one
  // (Python's "unhashable": lists and dicts).
  bool Set(TemplateValue key, TemplateValue value);
  const TemplateValue* Find(const TemplateValue& key) const;
  const TemplateValue* FindKey(std::string_view key) const;
  const std::vector<Entry>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }

 private:
  std::vector<Entry> entries_;
  absl::flat_hash_map<std::string, size_t> index_;  // spelled key -> entry
};

// What has identity: shared by reference, and only for the time of one rendering.
class TemplateObject {
 public:
  virtual ~TemplateObject() = default;
  virtual std::string Describe() const = 0;  // what printing it gives
  virtual bool callable() const { return false; }
};

}  // namespace hexad
