#pragma once

#include <string>
#include <string_view>

namespace hexad {

// Appends `text` as a JSON string with its quotes. Bytes that are no UTF-8 become U+FFFD.
void AppendJsonString(std::string& out, std::string_view text);
std::string JsonString(std::string_view text);

// For a terminal: without control characters (a model's answer or a server's message must not move
// the cursor or change the title), newlines and tabs kept.
std::string Printable(std::string_view text);

}  // namespace hexad
