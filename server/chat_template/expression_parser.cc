#include "server/chat_template/expression_parser.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace hexad {
namespace {

using Op = Expression::Kind;

std::string Describe(const TemplateToken& token) {
  switch (token.kind) {
    case TemplateToken::Kind::kEnd:
      return "the end of the template";
    case TemplateToken::Kind::kText:
    case TemplateToken::Kind::kVariableBegin:
    case TemplateToken::Kind::kBlockBegin:
      return "text";
    case TemplateToken::Kind::kVariableEnd:
    case TemplateToken::Kind::kBlockEnd:
      return "the end of the tag";
    default:
      return absl::StrFormat("\"%s\"", token.text.substr(0, 40));
  }
}

}  // namespace

std::nullptr_t ExpressionParser::Fail(const std::string& message) {
  if (status_.ok()) {
    status_ = TemplateError(Current().position, message + ", not " + Describe(Current()));
  }
  return nullptr;
}

const TemplateToken& ExpressionParser::Ahead() const {
  return tokens_[std::min(at_ + 1, tokens_.size() - 1)];
}

bool ExpressionParser::IsOperator(std::string_view text) const {
  return Current().kind == Kind::kOperator && Current().text == text;
}
bool ExpressionParser::IsName(std::string_view text) const {
  return Current().kind == Kind::kName && Current().text == text;
}
bool ExpressionParser::TakeOperator(std::string_view text) {
  if (failed() || !IsOperator(text)) return false;
  Advance();
  return true;
}
bool ExpressionParser::TakeName(std::string_view text) {
  if (failed() || !IsName(text)) return false;
  Advance();
  return true;
}
void ExpressionParser::ExpectOperator(std::string_view text) {
  if (!TakeOperator(text)) Fail(absl::StrFormat("expected \"%s\"", text));
}
std::string ExpressionParser::ExpectIdentifier() {
  if (Current().kind != Kind::kName) {
    Fail("expected a name");
    return {};
  }
  std::string name = Current().text;
  Advance();
  return name;
}

bool ExpressionParser::EnterNesting() {
  if (++nesting_ <= kMaxParseNesting) return true;
  if (status_.ok()) {
    status_ = TemplateError(Current().position,
                            absl::StrFormat("nested deeper than %d", kMaxParseNesting));
  }
  return false;
}

// Sets the depth of the tree, and refuses one that evaluation could not walk.
ExpressionPtr ExpressionParser::Finish(ExpressionPtr expression) {
  if (failed()) return nullptr;
  for (const auto& child : expression->children) {
    if (child != nullptr) expression->depth = std::max(expression->depth, child->depth + 1);
  }
  for (const auto& [name, child] : expression->named) {
    if (child != nullptr) expression->depth = std::max(expression->depth, child->depth + 1);
  }
  if (expression->depth > kMaxExpressionDepth) {
    status_ = TemplateError(expression->position,
                            absl::StrFormat("an expression deeper than %d", kMaxExpressionDepth));
    return nullptr;
  }
  return expression;
}

ExpressionPtr ExpressionParser::Make(Op kind, SourcePosition position,
                                     std::vector<ExpressionPtr> children, std::string name) {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->position = position;
  made->children = std::move(children);
  made->name = std::move(name);
  return Finish(std::move(made));
}

bool ExpressionParser::AtTupleEnd() const {
  return Current().kind == Kind::kVariableEnd || Current().kind == Kind::kBlockEnd ||
         IsOperator(")") || IsOperator("=") || IsName("in") || IsName("if");
}

ExpressionPtr ExpressionParser::ParseTuple(bool conditional) {
  const SourcePosition position = Current().position;
  std::vector<ExpressionPtr> items;
  bool tuple = false;
  while (!failed() && !AtTupleEnd()) {
    items.push_back(ParseExpression(conditional));
    if (!TakeOperator(",")) break;
    tuple = true;
  }
  if (failed()) return nullptr;
  if (items.empty()) return Fail("expected an expression");
  if (!tuple) return std::move(items[0]);
  return Make(Op::kTuple, position, std::move(items));
}

ExpressionPtr ExpressionParser::ParseExpression(bool conditional) {
  if (failed() || !EnterNesting()) return nullptr;
  ExpressionPtr result = ParseOr();
  while (conditional && !failed() && IsName("if")) {
    const SourcePosition position = Current().position;
    Advance();
    ExpressionPtr condition = ParseOr();
    ExpressionPtr otherwise;
    if (TakeName("else")) otherwise = ParseExpression();
    result = Combine(Op::kConditional, position, "", std::move(condition), std::move(result),
                     std::move(otherwise));
  }
  LeaveNesting();
  return result;
}

ExpressionPtr ExpressionParser::ParseOr() {
  const SourcePosition position = Current().position;
  ExpressionPtr first = ParseAnd();
  if (failed() || !IsName("or")) return first;
  std::vector<ExpressionPtr> items;
  items.push_back(std::move(first));
  while (TakeName("or")) items.push_back(ParseAnd());
  return failed() ? nullptr : Make(Op::kOr, position, std::move(items));
}

ExpressionPtr ExpressionParser::ParseAnd() {
  const SourcePosition position = Current().position;
  ExpressionPtr first = ParseNot();
  if (failed() || !IsName("and")) return first;
  std::vector<ExpressionPtr> items;
  items.push_back(std::move(first));
  while (TakeName("and")) items.push_back(ParseNot());
  return failed() ? nullptr : Make(Op::kAnd, position, std::move(items));
}

ExpressionPtr ExpressionParser::ParseNot() {
  const SourcePosition position = Current().position;
  if (!TakeName("not")) return ParseCompare();
  if (!EnterNesting()) return nullptr;
  ExpressionPtr operand = ParseNot();
  LeaveNesting();
  return Combine(Op::kNot, position, "", std::move(operand));
}

ExpressionPtr ExpressionParser::ParseCompare() {
  const SourcePosition position = Current().position;
  std::vector<ExpressionPtr> items;
  std::vector<std::string> operators;
  items.push_back(ParseSum());
  while (!failed()) {
    std::string op;
    if (IsName("not") && Ahead().kind == Kind::kName && Ahead().text == "in") {
      Advance();
      op = "not in";
    } else if (IsName("in") || IsOperator("==") || IsOperator("!=") || IsOperator("<") ||
               IsOperator("<=") || IsOperator(">") || IsOperator(">=")) {
      op = Current().text;
    } else {
      break;
    }
    Advance();
    operators.push_back(op);
    items.push_back(ParseSum());
  }
  if (failed() || operators.empty()) return failed() ? nullptr : std::move(items[0]);
  ExpressionPtr compare = Make(Op::kCompare, position, std::move(items));
  if (compare != nullptr) compare->operators = std::move(operators);
  return compare;
}

ExpressionPtr ExpressionParser::ParseSum() {
  ExpressionPtr left = ParseConcat();
  while (!failed() && (IsOperator("+") || IsOperator("-"))) {
    const TemplateToken op = Current();
    Advance();
    ExpressionPtr right = ParseConcat();
    left = Combine(Op::kArithmetic, op.position, op.text, std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::ParseConcat() {
  const SourcePosition position = Current().position;
  ExpressionPtr first = ParseProduct();
  if (failed() || !IsOperator("~")) return first;
  std::vector<ExpressionPtr> items;
  items.push_back(std::move(first));
  while (TakeOperator("~")) items.push_back(ParseProduct());
  return failed() ? nullptr : Make(Op::kConcat, position, std::move(items));
}

ExpressionPtr ExpressionParser::ParseProduct() {
  ExpressionPtr left = ParsePower();
  while (!failed() && (IsOperator("*") || IsOperator("/") || IsOperator("//") || IsOperator("%"))) {
    const TemplateToken op = Current();
    Advance();
    ExpressionPtr right = ParsePower();
    left = Combine(Op::kArithmetic, op.position, op.text, std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::ParsePower() {
  ExpressionPtr left = ParseUnary(true);
  while (!failed() && IsOperator("**")) {
    const TemplateToken op = Current();
    Advance();
    ExpressionPtr right = ParseUnary(true);
    left = Combine(Op::kArithmetic, op.position, op.text, std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::ParseUnary(bool with_filter) {
  if (failed() || !EnterNesting()) return nullptr;
  const TemplateToken token = Current();
  ExpressionPtr result;
  if (TakeOperator("-")) {
    ExpressionPtr operand = ParseUnary(false);
    result = Combine(Op::kNegate, token.position, "", std::move(operand));
  } else if (TakeOperator("+")) {
    ExpressionPtr operand = ParseUnary(false);
    result = Combine(Op::kPlus, token.position, "", std::move(operand));
  } else {
    result = ParsePrimary();
  }
  result = ParsePostfix(std::move(result));
  while (with_filter && !failed()) {
    if (IsOperator("|")) {
      result = ParseFilters(std::move(result), false);
    } else if (IsName("is")) {
      result = ParseTest(std::move(result));
    } else if (IsOperator("(")) {
      result = ParsePostfix(std::move(result));
    } else {
      break;
    }
  }
  LeaveNesting();
  return result;
}

ExpressionPtr ExpressionParser::ParseTarget(bool attributes) {
  const SourcePosition position = Current().position;
  std::vector<ExpressionPtr> names;
  bool tuple = false;
  while (!failed()) {
    const SourcePosition here = Current().position;
    if (TakeOperator("(")) {
      if (!EnterNesting()) return nullptr;
      names.push_back(ParseTarget(false));
      LeaveNesting();
      ExpectOperator(")");
    } else {
      std::string name = ExpectIdentifier();
      ExpressionPtr target = Combine(Op::kName, here, std::move(name));
      if (attributes && TakeOperator(".")) {
        std::string attribute = ExpectIdentifier();
        target = Combine(Op::kAttribute, here, std::move(attribute), std::move(target));
      }
      names.push_back(std::move(target));
    }
    if (!TakeOperator(",")) break;
    tuple = true;
    if (AtTupleEnd()) break;
  }
  if (failed()) return nullptr;
  if (!tuple) return std::move(names[0]);
  return Make(Op::kTuple, position, std::move(names));
}

}  // namespace hexad
