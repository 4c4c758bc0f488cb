#include "server/chat_template/parser.h"

#include <algorithm>
#include <initializer_list>

#include "absl/strings/str_format.h"
#include "server/chat_template/expression_parser.h"

namespace hexad {
namespace {

using Node = TemplateNode::Kind;

constexpr size_t kMaxSourceBytes = size_t{1} << 20;

class Parser final : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  absl::StatusOr<TemplateNodePtr> Run() {
    TemplateNodePtr root = Make(Node::kSequence);
    root->body = ParseBody({});
    if (failed()) return status();
    return root;
  }

 private:
  TemplateNodePtr Make(Node kind) const {
    auto node = std::make_unique<TemplateNode>();
    node->kind = kind;
    node->position = Current().position;
    return node;
  }

  void ExpectBlockEnd() {
    if (Current().kind != Kind::kBlockEnd) {
      Fail("expected the end of the statement");
      return;
    }
    Advance();
  }

  // At "{%" before one of `ends`.
  bool AtEnd(std::initializer_list<std::string_view> ends) const {
    return Current().kind == Kind::kBlockBegin && Ahead().kind == Kind::kName &&
           std::find(ends.begin(), ends.end(), Ahead().text) != ends.end();
  }

  // Statements and text up to a tag that begins with one of `ends`, which stays.
  std::vector<TemplateNodePtr> ParseBody(std::initializer_list<std::string_view> ends) {
    std::vector<TemplateNodePtr> body;
    if (!EnterNesting()) return body;
    while (!failed() && !AtEnd(ends)) {
      if (Current().kind == Kind::kEnd) {
        if (ends.size() > 0) {
          Fail(absl::StrFormat("expected {%% %s %%}", *(ends.end() - 1)));
        }
        break;
      }
      if (TemplateNodePtr node = ParseNode()) body.push_back(std::move(node));
    }
    LeaveNesting();
    return body;
  }

  // A body and its end tag.
  std::vector<TemplateNodePtr> ParseBlock(std::string_view end) {
    auto body = ParseBody({end});
    if (failed()) return body;
    Advance();
    Advance();
    ExpectBlockEnd();
    return body;
  }

  TemplateNodePtr ParseNode() {
    TemplateNodePtr node = Make(Node::kText);
    switch (Current().kind) {
      case Kind::kText:
        node->text = Current().text;
        Advance();
        return node;
      case Kind::kVariableBegin:
        Advance();
        node->kind = Node::kOutput;
        node->expression = ParseTuple();
        if (failed()) return nullptr;
        if (Current().kind != Kind::kVariableEnd) return Fail("expected the end of the expression");
        Advance();
        return node;
      case Kind::kBlockBegin:
        Advance();
        return ParseStatement();
      default:
        return Fail("expected text or a tag");
    }
  }

  TemplateNodePtr ParseStatement() {
    if (TakeName("if")) return ParseIf();
    if (TakeName("for")) return ParseFor();
    if (TakeName("set")) return ParseSet();
    if (TakeName("macro")) return ParseMacro();
    if (TakeName("call")) return ParseCall();
    if (TakeName("filter")) return ParseFilterBlock();
    if (TakeName("with")) return ParseWith();
    if (IsName("break") || IsName("continue")) {
      TemplateNodePtr node = Make(IsName("break") ? Node::kBreak : Node::kContinue);
      if (loops_ == 0) return Fail("expected a loop around this");
      Advance();
      ExpectBlockEnd();
      return node;
    }
    if (TakeName("generation")) {  // only marks what the model wrote
      TemplateNodePtr node = Make(Node::kSequence);
      ExpectBlockEnd();
      node->body = ParseBlock("endgeneration");
      return node;
    }
    return Fail("expected a statement that chat templates have");
  }

  TemplateNodePtr ParseIf() {
    TemplateNodePtr node = Make(Node::kIf);
    bool more = true;
    while (more && !failed()) {
      TemplateNode::Branch branch;
      branch.condition = ParseTuple(true);
      ExpectBlockEnd();
      branch.body = Make(Node::kSequence);
      branch.body->body = ParseBody({"elif", "else", "endif"});
      node->branches.push_back(std::move(branch));
      if (failed()) return nullptr;
      Advance();
      more = TakeName("elif");
    }
    if (TakeName("else")) {
      ExpectBlockEnd();
      TemplateNode::Branch branch;
      branch.body = Make(Node::kSequence);
      branch.body->body = ParseBody({"endif"});
      node->branches.push_back(std::move(branch));
      if (failed()) return nullptr;
      Advance();
    }
    if (!TakeName("endif")) Fail("expected endif");
    ExpectBlockEnd();
    return node;
  }

  TemplateNodePtr ParseFor() {
    TemplateNodePtr node = Make(Node::kFor);
    node->target = ParseTarget(false);
    if (!TakeName("in")) return Fail("expected \"in\"");
    node->expression = ParseTuple(false);
    if (TakeName("if")) node->condition = ParseExpression();
    node->recursive = TakeName("recursive");
    ExpectBlockEnd();
    ++loops_;
    node->body = ParseBody({"else", "endfor"});
    --loops_;
    if (failed()) return nullptr;
    Advance();
    if (TakeName("else")) {
      ExpectBlockEnd();
      node->else_body = ParseBlock("endfor");
    } else {
      Advance();
      ExpectBlockEnd();
    }
    return node;
  }

  TemplateNodePtr ParseSet() {
    TemplateNodePtr node = Make(Node::kSet);
    node->target = ParseTarget(true);
    if (TakeOperator("=")) {
      node->expression = ParseTuple();
      ExpectBlockEnd();
      return node;
    }
    node->kind = Node::kSetBlock;
    if (IsOperator("|")) node->expression = ParseFilters(nullptr, false);
    ExpectBlockEnd();
    node->body = ParseApart("endset");
    return node;
  }

  std::vector<TemplateNode::Parameter> ParseParameters() {
    std::vector<TemplateNode::Parameter> parameters;
    ExpectOperator("(");
    while (!failed() && !IsOperator(")")) {
      TemplateNode::Parameter parameter;
      parameter.name = ExpectIdentifier();
      if (TakeOperator("=")) {
        parameter.value = ParseExpression();
      } else if (!parameters.empty() && parameters.back().value != nullptr) {
        Fail("expected a default after a parameter with a default");
      }
      parameters.push_back(std::move(parameter));
      if (!TakeOperator(",")) break;
    }
    ExpectOperator(")");
    return parameters;
  }

  // The body of what is not part of a loop around it, so that break cannot leave it.
  std::vector<TemplateNodePtr> ParseApart(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    auto body = ParseBlock(end);
    loops_ = loops;
    return body;
  }

  TemplateNodePtr ParseMacro() {
    TemplateNodePtr node = Make(Node::kMacro);
    node->text = ExpectIdentifier();
    node->parameters = ParseParameters();
    ExpectBlockEnd();
    node->body = ParseApart("endmacro");
    return node;
  }

  TemplateNodePtr ParseCall() {
    TemplateNodePtr node = Make(Node::kCallBlock);
    if (IsOperator("(")) node->parameters = ParseParameters();
    node->expression = ParseExpression();
    if (failed()) return nullptr;
    if (node->expression->kind != Expression::Kind::kCall) return Fail("expected a call");
    ExpectBlockEnd();
    node->body = ParseApart("endcall");
    return node;
  }

  TemplateNodePtr ParseFilterBlock() {
    TemplateNodePtr node = Make(Node::kFilterBlock);
    node->expression = ParseFilters(nullptr, true);
    ExpectBlockEnd();
    node->body = ParseApart("endfilter");
    return node;
  }

  TemplateNodePtr ParseWith() {
    TemplateNodePtr node = Make(Node::kWith);
    while (!failed() && Current().kind != Kind::kBlockEnd) {
      TemplateNode::Parameter parameter;
      parameter.name = ExpectIdentifier();
      ExpectOperator("=");
      parameter.value = ParseExpression();
      node->parameters.push_back(std::move(parameter));
      if (!TakeOperator(",")) break;
    }
    ExpectBlockEnd();
    node->body = ParseBlock("endwith");
    return node;
  }

  int loops_ = 0;
};

}  // namespace

absl::StatusOr<TemplateNodePtr> ParseTemplate(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    return TemplateError({},
                         absl::StrFormat("%d bytes are too many for a template", source.size()));
  }
  auto tokens = LexTemplate(source);
  if (!tokens.ok()) return tokens.status();
  return Parser(*std::move(tokens)).Run();
}

}  // namespace hexad
