#pragma once

// Jinja's expression grammar by recursive descent. The first error sticks; after it every call
// returns null or does nothing.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/chat_template/ast.h"
#include "server/chat_template/lexer.h"

namespace hexad {

inline constexpr int kMaxExpressionDepth = 200;
inline constexpr int kMaxParseNesting = 100;

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<TemplateToken> tokens) : tokens_(std::move(tokens)) {}

 protected:
  using Kind = TemplateToken::Kind;

  bool failed() const { return !status_.ok(); }
  const absl::Status& status() const { return status_; }
  // Fails at the current token.
  std::nullptr_t Fail(const std::string& message);

  const TemplateToken& Current() const { return tokens_[at_]; }
  const TemplateToken& Ahead() const;
  void Advance() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool IsOperator(std::string_view text) const;
  bool IsName(std::string_view text) const;
  bool TakeOperator(std::string_view text);
  bool TakeName(std::string_view text);
  void ExpectOperator(std::string_view text);
  std::string ExpectIdentifier();

  // A comma-separated tuple without brackets, or one expression. `conditional` false leaves an
  // "if" for the caller, as in a for loop's iterable.
  ExpressionPtr ParseTuple(bool conditional = true);
  ExpressionPtr ParseExpression(bool conditional = true);
  // "name | filter | filter(...)" applied to `base`, which is null for a filter block.
  ExpressionPtr ParseFilters(ExpressionPtr base, bool first_named);
  // Names to assign to: a, (a, b), ns.a.
  ExpressionPtr ParseTarget(bool attributes);

  // Counts nested constructs; false, with an error, when there are too many.
  bool EnterNesting();
  void LeaveNesting() { --nesting_; }

 private:
  ExpressionPtr Make(Expression::Kind kind, SourcePosition position,
                     std::vector<ExpressionPtr> children = {}, std::string name = {});
  ExpressionPtr Finish(ExpressionPtr expression);
  template <typename... Children>
  ExpressionPtr Combine(Expression::Kind kind, SourcePosition position, std::string name,
                        Children... children);

  ExpressionPtr ParseOr();
  ExpressionPtr ParseAnd();
  ExpressionPtr ParseNot();
  ExpressionPtr ParseCompare();
  ExpressionPtr ParseSum();
  ExpressionPtr ParseConcat();
  ExpressionPtr ParseProduct();
  ExpressionPtr ParsePower();
  ExpressionPtr ParseUnary(bool with_filter);
  ExpressionPtr ParsePrimary();
  ExpressionPtr ParseNumber();
  ExpressionPtr ParseParenthesis();
  ExpressionPtr ParseList();
  ExpressionPtr ParseDict();
  ExpressionPtr ParsePostfix(ExpressionPtr base);
  ExpressionPtr ParseSubscript(ExpressionPtr base);
  ExpressionPtr ParseTest(ExpressionPtr base);
  void ParseArguments(Expression& call);
  bool AtTestArgument() const;
  bool AtTupleEnd() const;

  std::vector<TemplateToken> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
  absl::Status status_;
};

template <typename... Children>
ExpressionPtr ExpressionParser::Combine(Expression::Kind kind, SourcePosition position,
                                        std::string name, Children... children) {
  if (failed()) return nullptr;
  std::vector<ExpressionPtr> list;
  (list.push_back(std::move(children)), ...);
  return Make(kind, position, std::move(list), std::move(name));
}

}  // namespace hexad
