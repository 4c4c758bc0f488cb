#include "server/chat_template/interpreter.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "server/chat_template/builtins.h"
#include "server/chat_template/objects.h"
#include "server/chat_template/text_ops.h"

namespace hexad {

using Node = TemplateNode::Kind;

namespace {
constexpr size_t kMaxNames = 1000;
}  // namespace

// Runs with another scope, and restores.
class ScopeGuard final {
 public:
  ScopeGuard(Interpreter& interpreter, std::shared_ptr<TemplateScope> parent)
      : interpreter_(interpreter), saved_(std::move(interpreter.scope_)) {
    interpreter.scope_ = std::make_shared<TemplateScope>();
    interpreter.scope_->parent = std::move(parent);
  }
  ~ScopeGuard() { interpreter_.scope_ = std::move(saved_); }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Interpreter& interpreter_;
  std::shared_ptr<TemplateScope> saved_;
};

const TemplateValue* TemplateArguments::Get(size_t place, std::string_view name) const {
  if (place < positional.size()) return &positional[place];
  if (name.empty()) return nullptr;
  for (const auto& [key, value] : named) {
    if (key == name) return &value;
  }
  return nullptr;
}

void TemplateScope::Set(std::string_view name, TemplateValue value) {
  for (auto& [key, old] : names) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  names.emplace_back(std::string(name), std::move(value));
}

const TemplateValue* TemplateScope::Find(std::string_view name) const {
  for (const TemplateScope* scope = this; scope != nullptr; scope = scope->parent.get()) {
    for (const auto& [key, value] : scope->names) {
      if (key == name) return &value;
    }
  }
  return nullptr;
}

Interpreter::Interpreter(const TemplateInput& input)
    : RenderContext(input.limits),
      globals_(std::make_shared<TemplateScope>()),
      scope_(std::make_shared<TemplateScope>()) {
  scope_->parent = globals_;
  DefineGlobals(*globals_, input.now);
  const auto define = [this](std::string_view name, const TemplateValue& value) {
    if (!value.is_undefined()) globals_->Set(name, value);
  };
  define("messages", input.messages);
  define("tools", input.tools);
  define("add_generation_prompt", TemplateValue(input.add_generation_prompt));
  define("bos_token", TemplateValue(input.bos_token));
  define("eos_token", TemplateValue(input.eos_token));
  if (input.extra.size() > kMaxNames) {
    FailPlainly(absl::StrFormat("more than %d template variables", kMaxNames));
    return;
  }
  for (const auto& [name, value] : input.extra) globals_->Set(name, value);
}

Interpreter::~Interpreter() {
  // A namespace may hold itself; emptied, it is freed.
  for (const auto& weak : namespaces_) {
    if (const auto object = weak.lock()) static_cast<NamespaceObject&>(*object).Clear();
  }
}

std::string Interpreter::Render(const TemplateNode& root) {
  std::string output;
  output_ = &output;
  Execute(root);
  output_ = nullptr;
  return output;
}

void Interpreter::Write(std::string_view text) {
  if (!Spend(text.size())) return;
  if (output_->size() + text.size() > limits_.max_output_bytes) {
    Fail(absl::StrFormat("rendering writes more than %d bytes", limits_.max_output_bytes));
    return;
  }
  output_->append(text);
}

Interpreter::Flow Interpreter::ExecuteAll(const std::vector<TemplateNodePtr>& nodes) {
  for (const TemplateNodePtr& node : nodes) {
    const Flow flow = Execute(*node);
    if (failed()) return Flow::kBreak;
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::Execute(const TemplateNode& node) {
  const Depth depth(*this);
  if (!depth || !Step(node.position)) return Flow::kBreak;
  switch (node.kind) {
    case Node::kSequence:
      return ExecuteAll(node.body);
    case Node::kText:
      Write(node.text);
      break;
    case Node::kOutput: {
      const TemplateValue value = Evaluate(*node.expression);
      if (value.is_string()) {
        Write(value.string());
      } else {
        Write(ToText(value));
      }
      break;
    }
    case Node::kIf:
      return ExecuteIf(node);
    case Node::kFor:
      ExecuteFor(node);
      break;
    case Node::kSet:
      Assign(*node.target, Evaluate(*node.expression));
      break;
    case Node::kSetBlock: {
      TemplateValue value = Text(Capture(node.body));
      if (node.expression != nullptr) value = EvaluateFilter(*node.expression, &value);
      Assign(*node.target, value);
      break;
    }
    case Node::kMacro:
      scope_->Set(node.text, TemplateValue(std::make_shared<MacroObject>(node, scope_)));
      break;
    case Node::kCallBlock:
      ExecuteCallBlock(node);
      break;
    case Node::kFilterBlock: {
      const TemplateValue body = Text(Capture(node.body));
      Write(ToText(EvaluateFilter(*node.expression, &body)));
      break;
    }
    case Node::kWith:
      return ExecuteWith(node);
    case Node::kBreak:
      return Flow::kBreak;
    case Node::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::ExecuteIf(const TemplateNode& node) {
  for (const TemplateNode::Branch& branch : node.branches) {
    if (branch.condition != nullptr && !Evaluate(*branch.condition).Truthy()) continue;
    return failed() ? Flow::kBreak : ExecuteAll(branch.body->body);
  }
  return Flow::kNext;
}

void Interpreter::ExecuteFor(const TemplateNode& node) {
  RunLoop(node, Evaluate(*node.expression), 0);
}

// The items for which the loop's condition holds.
TemplateValue::List Interpreter::SelectItems(const TemplateNode& node, TemplateValue::List items) {
  if (node.condition == nullptr) return items;
  TemplateValue::List selected;
  for (TemplateValue& item : items) {
    const ScopeGuard guard(*this, scope_);
    if (!Step(node.position)) break;
    Assign(*node.target, item);
    if (Evaluate(*node.condition).Truthy()) selected.push_back(std::move(item));
  }
  return selected;
}

void Interpreter::RunLoop(const TemplateNode& node, const TemplateValue& over, int depth0) {
  TemplateValue::List list = SelectItems(node, Iterate(over));
  if (failed()) return;
  if (list.empty()) {
    const ScopeGuard guard(*this, scope_);
    ExecuteAll(node.else_body);
    return;
  }
  const TemplateValue items = List(std::move(list));
  if (failed()) return;
  const auto loop = std::make_shared<LoopObject>(items, depth0, node.recursive ? &node : nullptr);
  size_t index = 0;
  for (const TemplateValue& item : items.items()) {
    if (!Step(node.position)) return;
    const ScopeGuard guard(*this, scope_);
    loop->set_index(index++);
    scope_->Set("loop", TemplateValue(loop));
    Assign(*node.target, item);
    if (ExecuteAll(node.body) == Flow::kBreak) return;
  }
}

TemplateValue Interpreter::RunLoopAgain(const TemplateNode& loop, const TemplateValue& items,
                                        int depth0) {
  const Depth depth(*this);
  if (!depth) return {};
  std::string captured;
  std::string* const saved = std::exchange(output_, &captured);
  RunLoop(loop, items, depth0);
  output_ = saved;
  return Text(std::move(captured));
}

Interpreter::Flow Interpreter::ExecuteWith(const TemplateNode& node) {
  std::vector<TemplateValue> values;
  for (const auto& parameter : node.parameters) values.push_back(Evaluate(*parameter.value));
  const ScopeGuard guard(*this, scope_);
  for (size_t i = 0; i < values.size(); ++i) scope_->Set(node.parameters[i].name, values[i]);
  return ExecuteAll(node.body);
}

std::string Interpreter::Capture(const std::vector<TemplateNodePtr>& body) {
  std::string captured;
  const ScopeGuard guard(*this, scope_);
  std::string* const saved = std::exchange(output_, &captured);
  ExecuteAll(body);
  output_ = saved;
  return captured;
}

void Interpreter::ExecuteCallBlock(const TemplateNode& node) {
  const Expression& call = *node.expression;
  const TemplateValue callee = Evaluate(*call.children[0]);
  TemplateArguments arguments = EvaluateArguments(call);
  arguments.named.emplace_back("caller",
                               TemplateValue(std::make_shared<MacroObject>(node, scope_)));
  Write(ToText(Call(callee, arguments)));
}

void Interpreter::Assign(const Expression& target, const TemplateValue& value) {
  if (failed()) return;
  if (target.kind == Expression::Kind::kName) {
    // Scopes are searched in order.
    if (scope_->names.size() >= kMaxNames) {
      Fail(absl::StrFormat("more than %d names in one scope", kMaxNames));
      return;
    }
    scope_->Set(target.name, value);
    return;
  }
  if (target.kind == Expression::Kind::kAttribute) {
    const TemplateValue* base = scope_->Find(target.children[0]->name);
    auto* space = base != nullptr && base->is_object()
                      ? dynamic_cast<NamespaceObject*>(&base->object())
                      : nullptr;
    if (space == nullptr) {
      Fail("cannot assign attribute on non-namespace object");
      return;
    }
    // Spent like an entry of a dict, so that a namespace cannot grow unseen.
    if (Spend(sizeof(TemplateDict::Entry) + target.name.size())) space->Set(target.name, value);
    return;
  }
  const TemplateValue::List items = Iterate(value);
  if (failed()) return;
  if (items.size() != target.children.size()) {
    Fail(absl::StrFormat("%s values to unpack (expected %d, got %d)",
                         items.size() > target.children.size() ? "too many" : "not enough",
                         target.children.size(), items.size()));
    return;
  }
  for (size_t i = 0; i < items.size(); ++i) Assign(*target.children[i], items[i]);
}

TemplateValue Interpreter::CallMacro(const TemplateNode& macro,
                                     const std::shared_ptr<TemplateScope>& outside,
                                     const TemplateArguments& arguments) {
  const Depth depth(*this);
  if (!depth || !Step(macro.position)) return {};
  const std::string name = macro.text.empty() ? "caller" : macro.text;
  if (arguments.positional.size() > macro.parameters.size()) {
    return Fail(absl::StrFormat("macro '%s' takes not more than %d argument(s)", name,
                                macro.parameters.size()));
  }
  const ScopeGuard guard(*this, outside);
  size_t used = arguments.positional.size();
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto& parameter = macro.parameters[i];
    const TemplateValue* given = arguments.Get(i, parameter.name);
    if (given != nullptr) {
      if (i >= arguments.positional.size()) ++used;
      scope_->Set(parameter.name, *given);
    } else if (parameter.value != nullptr) {
      scope_->Set(parameter.name, Evaluate(*parameter.value));
    } else {
      scope_->Set(parameter.name, TemplateValue::Undefined(absl::StrFormat(
                                      "parameter '%s' was not provided", parameter.name)));
    }
  }
  for (const auto& [key, value] : arguments.named) {
    if (key != "caller") continue;
    scope_->Set(key, value);
    ++used;
  }
  if (used < arguments.positional.size() + arguments.named.size()) {
    return Fail(absl::StrFormat("macro '%s' takes no such keyword argument", name));
  }
  std::string captured;
  std::string* const saved = std::exchange(output_, &captured);
  ExecuteAll(macro.body);
  output_ = saved;
  return Text(std::move(captured));
}

TemplateValue Interpreter::MakeNamespace(TemplateDict values) {
  // Reuses the places of namespaces that are gone, so that a loop of them stays small.
  if (namespaces_.size() >= next_sweep_) {
    std::erase_if(namespaces_, [](const auto& weak) { return weak.expired(); });
    next_sweep_ = namespaces_.size() * 2 + 64;
  }
  const auto made = std::make_shared<NamespaceObject>(std::move(values));
  namespaces_.push_back(made);
  Spend(sizeof(NamespaceObject));
  return TemplateValue(made);
}

}  // namespace hexad
