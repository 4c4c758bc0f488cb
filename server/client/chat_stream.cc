#include "server/client/chat_stream.h"

#include <simdjson.h>

#include "server/client/json_text.h"

namespace hexad {
namespace {

using simdjson::SUCCESS;
using Element = simdjson::dom::element;

std::string TextAt(simdjson::simdjson_result<Element> element) {
  std::string_view text;
  return element.get_string().get(text) == SUCCESS ? std::string(text) : std::string();
}

int64_t NumberAt(simdjson::simdjson_result<Element> element) {
  int64_t number = 0;
  return element.get_int64().get(number) == SUCCESS && number > 0 ? number : 0;
}

// "error" may be an object, a string, or (flat forms) the document itself.
std::string MessageOf(const Element& document) {
  Element error;
  if (document["error"].get(error) == SUCCESS) {
    const std::string nested = TextAt(error["message"]);
    if (!nested.empty()) return Printable(nested);
    std::string_view text;
    if (error.get_string().get(text) == SUCCESS) return Printable(text);
    return "an error without a message";
  }
  for (const char* key : {"message", "detail"}) {
    const std::string flat = TextAt(document[key]);
    if (!flat.empty()) return Printable(flat);
  }
  return "";
}

}  // namespace

struct ChatDecoder::Parser {
  simdjson::dom::parser dom;
};

ChatDecoder::ChatDecoder() : parser_(std::make_unique<Parser>()) {}
ChatDecoder::~ChatDecoder() = default;

ChatPiece ChatDecoder::Decode(std::string_view json, const char* choice_key) {
  ChatPiece piece;
  Element document;
  const simdjson::padded_string padded(json);
  if (parser_->dom.parse(padded).get(document) != SUCCESS || !document.is_object()) {
    piece.kind = ChatPiece::Kind::kMalformed;
    piece.message = "not a JSON object: " + Printable(json.substr(0, 100));
    return piece;
  }
  Element error;
  if (document["error"].get(error) == SUCCESS && !error.is_null()) {
    piece.kind = ChatPiece::Kind::kError;
    piece.message = MessageOf(document);
    return piece;
  }
  simdjson::dom::array choices;
  if (document["choices"].get_array().get(choices) == SUCCESS && choices.size() > 0) {
    const auto choice = choices.at(0);
    const auto content = choice[choice_key];
    piece.text = TextAt(content["content"]);
    if (piece.text.empty()) piece.text = TextAt(choice["text"]);  // completions
    piece.reasoning = TextAt(content["reasoning_content"]);
    piece.finish_reason = TextAt(choice["finish_reason"]);
  }
  simdjson::dom::object usage;
  if (document["usage"].get_object().get(usage) == SUCCESS) {
    piece.usage = TokenUsage{NumberAt(usage["prompt_tokens"]), NumberAt(usage["completion_tokens"]),
                             NumberAt(usage["prompt_tokens_details"]["cached_tokens"])};
  }
  return piece;
}

ChatPiece ChatDecoder::Event(std::string_view data) {
  if (data == "[DONE]") {
    ChatPiece piece;
    piece.kind = ChatPiece::Kind::kDone;
    return piece;
  }
  return Decode(data, "delta");
}

ChatPiece ChatDecoder::Answer(std::string_view body) { return Decode(body, "message"); }

std::string ErrorMessageOf(std::string_view body) {
  simdjson::dom::parser parser;
  Element document;
  const simdjson::padded_string padded(body);
  if (parser.parse(padded).get(document) == SUCCESS) {
    const std::string message = MessageOf(document);
    if (!message.empty()) return message.substr(0, 1000);
  }
  std::string text = Printable(body.substr(0, 200));
  return text.empty() ? "(no message)" : text;
}

absl::StatusOr<std::string> FirstModelOf(std::string_view body) {
  simdjson::dom::parser parser;
  Element document;
  const simdjson::padded_string padded(body);
  if (parser.parse(padded).get(document) == SUCCESS) {
    const std::string id = TextAt(document["data"].at(0)["id"]);
    if (!id.empty()) return id;
  }
  return absl::NotFoundError("the server lists no model");
}

}  // namespace hexad
