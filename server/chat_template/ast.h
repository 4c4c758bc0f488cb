#pragma once

// The parsed template. Positions count lines and columns from 1.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/chat_template/value.h"

namespace hexad {

struct SourcePosition {
  int line = 1;
  int column = 1;
};

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  enum class Kind : uint8_t {
    kLiteral,      // value
    kName,         // name
    kList,         // children
    kTuple,        // children
    kDict,         // children: key, value, key, value, ...
    kAttribute,    // children[0], name
    kSubscript,    // children[0], children[1]
    kSlice,        // children[0], then start, stop, step; a missing one is null
    kCall,         // children[0], then arguments; named
    kFilter,       // children[0] (null in a filter block), then arguments; name, named
    kTest,         // children[0], then arguments; name, named
    kNot,          // children[0]
    kNegate,       // children[0]
    kPlus,         // children[0]
    kAnd,          // children
    kOr,           // children
    kConcat,       // children
    kArithmetic,   // children[0], children[1]; name is the operator
    kCompare,      // children; operators between them
    kConditional,  // children: condition, then, else (or null)
  };
  Kind kind = Kind::kLiteral;
  SourcePosition position;
  int depth = 1;  // of the tree below
  std::string name;
  TemplateValue value;
  std::vector<ExpressionPtr> children;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  std::vector<std::string> operators;
};

struct TemplateNode;
using TemplateNodePtr = std::unique_ptr<TemplateNode>;

struct TemplateNode {
  enum class Kind : uint8_t {
    kSequence,     // body
    kText,         // text
    kOutput,       // expression
    kIf,           // branches; the last one's condition is null for else
    kFor,          // target in expression if condition: body, else_body; recursive
    kSet,          // target = expression
    kSetBlock,     // target = body, through the filters of expression if there are any
    kMacro,        // text(parameters): body
    kCallBlock,    // expression (a call) with caller(parameters): body
    kFilterBlock,  // expression (filters) over body
    kWith,         // parameters: body
    kBreak,
    kContinue,
  };
  struct Parameter {
    std::string name;
    ExpressionPtr value;  // default, or null
  };
  struct Branch {
    ExpressionPtr condition;
    TemplateNodePtr body;
  };
  Kind kind = Kind::kSequence;
  SourcePosition position;
  std::string text;
  ExpressionPtr target;  // kName, kTuple of names, or kAttribute of a name
  ExpressionPtr expression;
  ExpressionPtr condition;
  bool recursive = false;
  std::vector<Parameter> parameters;
  std::vector<Branch> branches;
  std::vector<TemplateNodePtr> body;
  std::vector<TemplateNodePtr> else_body;
};

}  // namespace hexad
