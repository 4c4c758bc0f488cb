#pragma once

// The objects that a rendering makes: functions, macros, namespaces and the loop variable.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/chat_template/interpreter.h"

namespace hexad {

// A global function or a method bound to its value.
class FunctionObject final : public RuntimeObject {
 public:
  using Body = std::function<TemplateValue(Interpreter&, const TemplateArguments&)>;
  FunctionObject(std::string name, Body body) : name_(std::move(name)), body_(std::move(body)) {}
  std::string Describe() const override { return "<function " + name_ + ">"; }
  bool callable() const override { return true; }
  TemplateValue Call(Interpreter& interpreter, const TemplateArguments& arguments) override {
    return body_(interpreter, arguments);
  }

 private:
  std::string name_;
  Body body_;
};

class MacroObject final : public RuntimeObject {
 public:
  MacroObject(const TemplateNode& macro, const std::shared_ptr<TemplateScope>& outside)
      : macro_(macro), outside_(outside) {}
  std::string Describe() const override { return "<Macro '" + macro_.text + "'>"; }
  bool callable() const override { return true; }
  TemplateValue Call(Interpreter& interpreter, const TemplateArguments& arguments) override;
  std::optional<TemplateValue> Attribute(Interpreter& interpreter, std::string_view name) override;

 private:
  const TemplateNode& macro_;
  std::weak_ptr<TemplateScope> outside_;
};

// The only value that a template can change. It may hold itself, so the interpreter empties it at
// the end.
class NamespaceObject final : public RuntimeObject {
 public:
  explicit NamespaceObject(TemplateDict values) : values_(std::move(values)) {}
  std::string Describe() const override { return "<Namespace>"; }
  std::optional<TemplateValue> Attribute(Interpreter& interpreter, std::string_view name) override;
  void Set(std::string_view name, TemplateValue value) {
    values_.Set(TemplateValue(name), std::move(value));
  }
  void Clear() { values_ = {}; }

 private:
  TemplateDict values_;
};

class LoopObject final : public RuntimeObject {
 public:
  // `again` is the loop when it is recursive, or null.
  LoopObject(TemplateValue items, int depth0, const TemplateNode* again)
      : items_(std::move(items)), depth0_(depth0), again_(again) {}
  std::string Describe() const override;
  bool callable() const override { return again_ != nullptr; }
  TemplateValue Call(Interpreter& interpreter, const TemplateArguments& arguments) override;
  std::optional<TemplateValue> Attribute(Interpreter& interpreter, std::string_view name) override;
  void set_index(size_t index) { index_ = index; }

 private:
  TemplateValue items_;
  size_t index_ = 0;
  int depth0_;
  const TemplateNode* again_;
};

}  // namespace hexad
