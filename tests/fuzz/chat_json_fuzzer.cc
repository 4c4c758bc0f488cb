// Bodies of both OpenAI endpoints and the JSON checker: any bytes are taken or refused, and the
// checker agrees with the parser about what is JSON.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/openai/json_check.h"
#include "server/openai/json_fields.h"
#include "server/openai/json_writer.h"
#include "server/openai/openai_request.h"
#include "server/status.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  const hexad::RequestLimits limits;
  for (const auto& request :
       {hexad::ParseChatRequest(body, limits), hexad::ParseCompletionRequest(body, limits)}) {
    if (request.ok()) {
      if (request->call.num_choices < 1 || request->call.num_choices > limits.max_choices) abort();
    } else {
      const hexad::HttpError error = hexad::ToHttpError(request.status());
      if (error.status != 400) abort();
    }
  }
  // What the parser takes the checker must take; the parser is stricter about numbers only.
  if (hexad::JsonDocument::Parse(body).ok() &&
      hexad::FindJsonError(body, hexad::kMaxJsonDepth).has_value()) {
    abort();
  }
  // Whatever is written is JSON.
  std::string text;
  hexad::JsonWriter(&text).String(body);
  if (hexad::FindJsonError(text, 1).has_value()) abort();
  return 0;
}
