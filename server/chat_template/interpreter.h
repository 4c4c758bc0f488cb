#pragma once

// Evaluates a parsed template for one rendering.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/chat_template/ast.h"
#include "server/chat_template/render_context.h"

namespace hexad {

class Interpreter;

// The arguments of a call, filter or test.
struct TemplateArguments {
  std::vector<TemplateValue> positional;
  std::vector<std::pair<std::string, TemplateValue>> named;

  // By place or by name; null when not given. An empty name has only a place.
  const TemplateValue* Get(size_t place, std::string_view name) const;
};

// Names that a loop body, a macro or the template assigns. A macro reads those around it when it
// runs, and must not outlive them: it holds them weakly.
struct TemplateScope {
  std::shared_ptr<TemplateScope> parent;
  std::vector<std::pair<std::string, TemplateValue>> names;

  void Set(std::string_view name, TemplateValue value);
  const TemplateValue* Find(std::string_view name) const;
};

// Objects that templates meet: see objects.h.
class RuntimeObject : public TemplateObject {
 public:
  // The attribute, or nothing.
  virtual std::optional<TemplateValue> Attribute(Interpreter& interpreter, std::string_view name) {
    return std::nullopt;
  }
  virtual TemplateValue Call(Interpreter& interpreter, const TemplateArguments& arguments);
};

class Interpreter final : public RenderContext {
 public:
  explicit Interpreter(const TemplateInput& input);
  ~Interpreter();

  // The whole rendering, once.
  std::string Render(const TemplateNode& root);

  TemplateValue Call(const TemplateValue& callee, const TemplateArguments& arguments);
  TemplateValue Filter(const std::string& name, const TemplateValue& input,
                       const TemplateArguments& arguments);
  bool Test(const std::string& name, const TemplateValue& input,
            const TemplateArguments& arguments);
  // base.name and base[key] as Jinja does: items and attributes stand in for each other.
  TemplateValue Attribute(const TemplateValue& base, std::string_view name);
  TemplateValue Subscript(const TemplateValue& base, const TemplateValue& key);
  // "a.b.0" as filters take it.
  TemplateValue AttributePath(const TemplateValue& base, const TemplateValue& path);
  // What a loop goes through: items, keys or characters.
  TemplateValue::List Iterate(const TemplateValue& value);

  TemplateValue CallMacro(const TemplateNode& macro, const std::shared_ptr<TemplateScope>& outside,
                          const TemplateArguments& arguments);
  // One more level of a recursive loop; its output.
  TemplateValue RunLoopAgain(const TemplateNode& loop, const TemplateValue& items, int depth0);
  TemplateValue MakeNamespace(TemplateDict values);

 private:
  enum class Flow { kNext, kBreak, kContinue };
  friend class ScopeGuard;

  void Write(std::string_view text);
  Flow ExecuteAll(const std::vector<TemplateNodePtr>& nodes);
  Flow Execute(const TemplateNode& node);
  Flow ExecuteIf(const TemplateNode& node);
  void ExecuteFor(const TemplateNode& node);
  void RunLoop(const TemplateNode& node, const TemplateValue& items, int depth0);
  TemplateValue::List SelectItems(const TemplateNode& node, TemplateValue::List items);
  Flow ExecuteWith(const TemplateNode& node);
  void ExecuteCallBlock(const TemplateNode& node);
  std::string Capture(const std::vector<TemplateNodePtr>& body);
  void Assign(const Expression& target, const TemplateValue& value);

  TemplateValue Evaluate(const Expression& expression);
  TemplateValue EvaluateSequence(const Expression& expression);
  TemplateValue EvaluateDict(const Expression& expression);
  TemplateValue EvaluateName(const Expression& expression);
  TemplateValue EvaluateSlice(const Expression& expression);
  TemplateValue EvaluateConcat(const Expression& expression);
  TemplateValue EvaluateCompare(const Expression& expression);
  TemplateValue EvaluateFilter(const Expression& expression, const TemplateValue* input);
  TemplateArguments EvaluateArguments(const Expression& expression);

  std::shared_ptr<TemplateScope> globals_;
  std::shared_ptr<TemplateScope> scope_;
  std::string* output_ = nullptr;
  std::vector<std::weak_ptr<TemplateObject>> namespaces_;
  size_t next_sweep_ = 64;  // when to forget the namespaces that are gone
};

}  // namespace hexad
