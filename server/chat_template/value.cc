#include "server/chat_template/value.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_format.h"

namespace hexad {
namespace {

// One spelling for keys that are equal in Python; nothing for what cannot be a key.
std::optional<std::string> SpellKey(const TemplateValue& key) {
  using Kind = TemplateValue::Kind;
  switch (key.kind()) {
    case Kind::kString:
      return "s" + key.string();
    case Kind::kBool:
    case Kind::kInt:
      return absl::StrFormat("i%d", key.integer());
    case Kind::kFloat: {
      const double number = key.number();
      if (std::floor(number) == number && std::abs(number) < 9e15) {
        return absl::StrFormat("i%d", static_cast<int64_t>(number));
      }
      return absl::StrFormat("f%.17g", number);
    }
    case Kind::kNone:
      return "n";
    case Kind::kTuple: {
      std::string spelled = "t";
      for (const TemplateValue& item : key.items()) {
        const auto part = SpellKey(item);
        if (!part) return std::nullopt;
        spelled += absl::StrFormat("%d:%s", part->size(), *part);
      }
      return spelled;
    }
    case Kind::kUndefined:
    case Kind::kList:
    case Kind::kGenerator:
    case Kind::kDict:
    case Kind::kObject:
      return std::nullopt;
  }
  return std::nullopt;
}

bool EqualItems(const TemplateValue::List& a, const TemplateValue::List& b, int64_t& budget) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const auto& x, const auto& y) { return x.Equals(y, budget); });
}

bool EqualDicts(const TemplateDict& a, const TemplateDict& b, int64_t& budget) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.entries()) {
    const TemplateValue* other = b.Find(key);
    if (other == nullptr || !value.Equals(*other, budget)) return false;
  }
  return true;
}

}  // namespace

TemplateValue::TemplateValue(std::string value)
    : kind_(Kind::kString), data_(std::make_shared<const std::string>(std::move(value))) {}

TemplateValue::TemplateValue(Kind kind, List items) : kind_(kind) {
  for (const TemplateValue& item : items) nesting_ = std::max(nesting_, item.nesting_);
  ++nesting_;
  data_ = std::make_shared<const List>(std::move(items));
}

TemplateValue::TemplateValue(TemplateDict value) : kind_(Kind::kDict) {
  for (const auto& [key, item] : value.entries()) {
    nesting_ = std::max({nesting_, key.nesting_, item.nesting_});
  }
  ++nesting_;
  data_ = std::make_shared<const TemplateDict>(std::move(value));
}

TemplateValue::TemplateValue(std::shared_ptr<TemplateObject> object)
    : kind_(Kind::kObject), data_(std::move(object)) {}

TemplateValue TemplateValue::None() {
  TemplateValue none;
  none.kind_ = Kind::kNone;
  return none;
}

TemplateValue TemplateValue::Undefined(std::string why) {
  TemplateValue undefined;
  undefined.data_ = std::make_shared<const std::string>(std::move(why));
  return undefined;
}

double TemplateValue::number() const {
  return is_float() ? scalar_.floating : static_cast<double>(integer());
}

const TemplateDict& TemplateValue::dict() const {
  return *static_cast<const TemplateDict*>(data_.get());
}

TemplateObject& TemplateValue::object() const {
  // Objects are the one mutable kind; every other is stored const.
  return *const_cast<TemplateObject*>(static_cast<const TemplateObject*>(data_.get()));
}

std::string TemplateValue::why_undefined() const {
  return data_ == nullptr ? "the value is undefined" : string();
}

bool TemplateValue::Truthy() const {
  switch (kind_) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return boolean();
    case Kind::kInt:
      return integer() != 0;
    case Kind::kFloat:
      return number() != 0;
    case Kind::kString:
      return !string().empty();
    case Kind::kList:
    case Kind::kTuple:
      return !items().empty();
    case Kind::kDict:
      return dict().size() > 0;
    case Kind::kGenerator:
    case Kind::kObject:
      return true;
  }
  return false;
}

bool TemplateValue::Equals(const TemplateValue& other, int64_t& budget) const {
  if (--budget < 0) return false;
  if (is_number() && other.is_number()) {
    if (is_float() || other.is_float()) return number() == other.number();
    return integer() == other.integer();
  }
  if (kind_ != other.kind_) return false;
  switch (kind_) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      budget -= static_cast<int64_t>(string().size() / 64);
      return data_ == other.data_ || string() == other.string();
    case Kind::kList:
    case Kind::kTuple:
      return data_ == other.data_ || EqualItems(items(), other.items(), budget);
    case Kind::kDict:
      return data_ == other.data_ || EqualDicts(dict(), other.dict(), budget);
    case Kind::kGenerator:
    case Kind::kObject:
      return data_ == other.data_;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      break;
  }
  return false;
}

const char* TemplateValue::TypeName() const {
  static constexpr const char* kNames[] = {"Undefined", "NoneType", "bool",  "int",
                                           "float",     "str",      "list",  "tuple",
                                           "generator", "dict",     "object"};
  return kNames[static_cast<int>(kind_)];
}

TemplateDict::TemplateDict(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) Set(entry.first, entry.second);
}

bool TemplateDict::Set(TemplateValue key, TemplateValue value) {
  const auto spelled = SpellKey(key);
  if (!spelled) return false;
  const auto [place, inserted] = index_.try_emplace(*spelled, entries_.size());
  if (inserted) {
    entries_.emplace_back(std::move(key), std::move(value));
  } else {
    entries_[place->second].second = std::move(value);
  }
  return true;
}

const TemplateValue* TemplateDict::Find(const TemplateValue& key) const {
  if (key.is_string()) return FindKey(key.string());
  const auto spelled = SpellKey(key);
  if (!spelled) return nullptr;
  const auto found = index_.find(*spelled);
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

const TemplateValue* TemplateDict::FindKey(std::string_view key) const {
  std::string spelled = "s";
  spelled += key;
  const auto found = index_.find(spelled);
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

}  // namespace hexad
