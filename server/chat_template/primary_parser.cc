// Operands: literals, brackets, and what follows them: attributes, calls, filters, tests.

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "server/chat_template/expression_parser.h"

namespace hexad {

using Op = Expression::Kind;

ExpressionPtr ExpressionParser::ParsePrimary() {
  const TemplateToken token = Current();
  ExpressionPtr literal;
  switch (token.kind) {
    case Kind::kName:
      Advance();
      if (token.text == "true" || token.text == "True" || token.text == "false" ||
          token.text == "False" || token.text == "none" || token.text == "None") {
        literal = Make(Op::kLiteral, token.position);
        const char first = token.text[0] | 0x20;
        if (literal != nullptr) {
          literal->value = first == 'n' ? TemplateValue::None() : TemplateValue(first == 't');
        }
        return literal;
      }
      return Make(Op::kName, token.position, {}, token.text);
    case Kind::kString: {
      std::string text;
      for (; Current().kind == Kind::kString; Advance()) text += Current().text;
      literal = Make(Op::kLiteral, token.position);
      if (literal != nullptr) literal->value = TemplateValue(std::move(text));
      return literal;
    }
    case Kind::kInteger:
    case Kind::kFloat:
      return ParseNumber();
    default:
      break;
  }
  if (IsOperator("(")) return ParseParenthesis();
  if (IsOperator("[")) return ParseList();
  if (IsOperator("{")) return ParseDict();
  return Fail("expected an expression");
}

ExpressionPtr ExpressionParser::ParseNumber() {
  const TemplateToken token = Current();
  TemplateValue value;
  if (token.kind == Kind::kFloat) {
    double number = 0;
    if (!absl::SimpleAtod(token.text, &number)) return Fail("expected a number");
    value = number;
  } else {
    std::string digits = token.text;
    int base = 10;
    if (digits.size() > 1 && digits[0] == '0' && (digits[1] & 0x20) != 0 && digits[1] > '9') {
      base = digits[1] == 'x' ? 16 : digits[1] == 'o' ? 8 : 2;
      digits = digits.substr(2);
    } else if (digits.size() > 1 && digits[0] == '0' && digits[1] > '9') {
      base = digits[1] == 'X' ? 16 : digits[1] == 'O' ? 8 : 2;
      digits = digits.substr(2);
    }
    char* end = nullptr;
    errno = 0;
    const long long number = std::strtoll(digits.c_str(), &end, base);
    if (digits.empty() || *end != '\0' || errno != 0) {
      return Fail("expected an integer of at most 64 bits");
    }
    value = static_cast<int64_t>(number);
  }
  Advance();
  ExpressionPtr literal = Make(Op::kLiteral, token.position);
  if (literal != nullptr) literal->value = value;
  return literal;
}

ExpressionPtr ExpressionParser::ParseParenthesis() {
  const SourcePosition position = Current().position;
  ExpectOperator("(");
  if (TakeOperator(")")) return Make(Op::kTuple, position);
  ExpressionPtr inner = ParseTuple();
  ExpectOperator(")");
  return failed() ? nullptr : std::move(inner);
}

ExpressionPtr ExpressionParser::ParseList() {
  const SourcePosition position = Current().position;
  ExpectOperator("[");
  std::vector<ExpressionPtr> items;
  while (!failed() && !IsOperator("]")) {
    items.push_back(ParseExpression());
    if (!TakeOperator(",")) break;
  }
  ExpectOperator("]");
  return failed() ? nullptr : Make(Op::kList, position, std::move(items));
}

ExpressionPtr ExpressionParser::ParseDict() {
  const SourcePosition position = Current().position;
  ExpectOperator("{");
  std::vector<ExpressionPtr> items;
  while (!failed() && !IsOperator("}")) {
    items.push_back(ParseExpression());
    ExpectOperator(":");
    items.push_back(ParseExpression());
    if (!TakeOperator(",")) break;
  }
  ExpectOperator("}");
  return failed() ? nullptr : Make(Op::kDict, position, std::move(items));
}

ExpressionPtr ExpressionParser::ParsePostfix(ExpressionPtr base) {
  while (!failed()) {
    const SourcePosition position = Current().position;
    if (TakeOperator(".")) {
      const TemplateToken token = Current();
      if (token.kind == Kind::kInteger) {
        ExpressionPtr index = ParseNumber();
        base = Combine(Op::kSubscript, position, "", std::move(base), std::move(index));
      } else {
        std::string name = ExpectIdentifier();
        base = Combine(Op::kAttribute, position, std::move(name), std::move(base));
      }
    } else if (IsOperator("[")) {
      base = ParseSubscript(std::move(base));
    } else if (IsOperator("(")) {
      ExpressionPtr call = Combine(Op::kCall, position, "", std::move(base));
      if (call == nullptr) return nullptr;
      ParseArguments(*call);
      base = Finish(std::move(call));
    } else {
      break;
    }
  }
  return failed() ? nullptr : std::move(base);
}

ExpressionPtr ExpressionParser::ParseSubscript(ExpressionPtr base) {
  const SourcePosition position = Current().position;
  ExpectOperator("[");
  ExpressionPtr parts[3];
  int count = 0;
  bool slice = false;
  for (;;) {
    if (!IsOperator(":") && !IsOperator("]")) parts[count] = ParseExpression();
    if (failed()) return nullptr;
    if (count == 2 || !TakeOperator(":")) break;
    slice = true;
    ++count;
  }
  ExpectOperator("]");
  if (!slice) {
    if (!failed() && parts[0] == nullptr) return Fail("expected an index before this");
    return Combine(Op::kSubscript, position, "", std::move(base), std::move(parts[0]));
  }
  return Combine(Op::kSlice, position, "", std::move(base), std::move(parts[0]),
                 std::move(parts[1]), std::move(parts[2]));
}

void ExpressionParser::ParseArguments(Expression& call) {
  ExpectOperator("(");
  while (!failed() && !IsOperator(")")) {
    if (Current().kind == Kind::kName && Ahead().kind == Kind::kOperator && Ahead().text == "=") {
      std::string name = ExpectIdentifier();
      Advance();
      call.named.emplace_back(std::move(name), ParseExpression());
    } else {
      if (!call.named.empty()) Fail("expected a named argument after a named one");
      call.children.push_back(ParseExpression());
    }
    if (!TakeOperator(",")) break;
  }
  ExpectOperator(")");
}

ExpressionPtr ExpressionParser::ParseFilters(ExpressionPtr base, bool first_named) {
  while (!failed() && (first_named || IsOperator("|"))) {
    if (!first_named) Advance();
    first_named = false;
    const SourcePosition position = Current().position;
    std::string name = ExpectIdentifier();
    while (TakeOperator(".")) name += "." + ExpectIdentifier();
    ExpressionPtr filter = Combine(Op::kFilter, position, std::move(name), std::move(base));
    if (filter == nullptr) return nullptr;
    if (IsOperator("(")) ParseArguments(*filter);
    base = Finish(std::move(filter));
  }
  return failed() ? nullptr : std::move(base);
}

// A test's one argument may stand without brackets: "is divisibleby 3".
bool ExpressionParser::AtTestArgument() const {
  switch (Current().kind) {
    case Kind::kString:
    case Kind::kInteger:
    case Kind::kFloat:
      return true;
    case Kind::kName:
      return !IsName("else") && !IsName("or") && !IsName("and") && !IsName("if") && !IsName("is") &&
             !IsName("in") && !IsName("not");
    default:
      return IsOperator("[") || IsOperator("{");
  }
}

ExpressionPtr ExpressionParser::ParseTest(ExpressionPtr base) {
  const SourcePosition position = Current().position;
  Advance();
  const bool negated = TakeName("not");
  std::string name = ExpectIdentifier();
  ExpressionPtr test = Combine(Op::kTest, position, std::move(name), std::move(base));
  if (test == nullptr) return nullptr;
  if (IsOperator("(")) {
    ParseArguments(*test);
  } else if (AtTestArgument()) {
    test->children.push_back(ParsePostfix(ParsePrimary()));
  }
  test = Finish(std::move(test));
  return negated ? Combine(Op::kNot, position, "", std::move(test)) : std::move(test);
}

}  // namespace hexad
