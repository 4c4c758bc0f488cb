#include "server/chat_template/objects.h"

#include "absl/strings/str_format.h"

namespace hexad {

TemplateValue RuntimeObject::Call(Interpreter& interpreter, const TemplateArguments&) {
  return interpreter.Fail(Describe() + " is not callable");
}

TemplateValue MacroObject::Call(Interpreter& interpreter, const TemplateArguments& arguments) {
  const auto outside = outside_.lock();
  if (outside == nullptr) return interpreter.Fail("a macro outlived the names around it");
  return interpreter.CallMacro(macro_, outside, arguments);
}

std::optional<TemplateValue> MacroObject::Attribute(Interpreter&, std::string_view name) {
  if (name == "name") return TemplateValue(macro_.text);
  return std::nullopt;
}

std::optional<TemplateValue> NamespaceObject::Attribute(Interpreter&, std::string_view name) {
  const TemplateValue* value = values_.FindKey(name);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::string LoopObject::Describe() const {
  return absl::StrFormat("<LoopContext %d/%d>", index_ + 1, items_.items().size());
}

TemplateValue LoopObject::Call(Interpreter& interpreter, const TemplateArguments& arguments) {
  if (again_ == nullptr) return interpreter.Fail("the loop is not recursive");
  const TemplateValue* items = arguments.Get(0, "");
  if (items == nullptr) return interpreter.Fail("loop() takes what to go through");
  return interpreter.RunLoopAgain(*again_, *items, depth0_ + 1);
}

std::optional<TemplateValue> LoopObject::Attribute(Interpreter&, std::string_view name) {
  const auto& items = items_.items();
  const auto index = static_cast<int64_t>(index_);
  const auto length = static_cast<int64_t>(items.size());
  if (name == "index") return TemplateValue(index + 1);
  if (name == "index0") return TemplateValue(index);
  if (name == "revindex") return TemplateValue(length - index);
  if (name == "revindex0") return TemplateValue(length - index - 1);
  if (name == "first") return TemplateValue(index == 0);
  if (name == "last") return TemplateValue(index + 1 == length);
  if (name == "length") return TemplateValue(length);
  if (name == "depth") return TemplateValue(depth0_ + 1);
  if (name == "depth0") return TemplateValue(depth0_);
  if (name == "previtem") {
    return index > 0 ? items[index_ - 1] : TemplateValue::Undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return index + 1 < length ? items[index_ + 1]
                              : TemplateValue::Undefined("there is no next item");
  }
  if (name == "cycle") {
    return TemplateValue(std::make_shared<FunctionObject>(
        "cycle", [index](Interpreter& interpreter, const TemplateArguments& arguments) {
          if (arguments.positional.empty()) return interpreter.Fail("no items for cycling given");
          return arguments.positional[static_cast<size_t>(index) % arguments.positional.size()];
        }));
  }
  return std::nullopt;
}

}  // namespace hexad
