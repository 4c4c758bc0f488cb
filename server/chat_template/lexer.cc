#include "server/chat_template/lexer.h"

#include <algorithm>
#include <array>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "engine/tokenizer/utf8.h"

namespace hexad {
namespace {

using Kind = TemplateToken::Kind;

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }

// Longest first.
constexpr std::array<std::string_view, 27> kOperators = {
    "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">",
    "=",  "(",  ")",  "[",  "]",  "{",  "}", ".", ",", ":", "|", ";", "!"};

// Line ends become \n, and the last one goes, as Jinja does before it looks at anything else.
std::string Normalize(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') continue;
      text.push_back('\n');
    } else {
      text.push_back(source[i]);
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Lexer final {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  absl::StatusOr<std::vector<TemplateToken>> Run() {
    while (at_ < source_.size() && status_.ok()) LexText();
    if (!status_.ok()) return status_;
    tokens_.push_back({Kind::kEnd, "", Position(source_.size())});
    return std::move(tokens_);
  }

 private:
  // Positions are asked for in ascending order, so that counting lines is linear.
  SourcePosition Position(size_t offset) {
    while (counted_ < offset) {
      const char c = source_[counted_++];
      if (c == '\n') {
        ++here_.line;
        here_.column = 1;
      } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {
        ++here_.column;
      }
    }
    return here_;
  }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  void Fail(SourcePosition position, const std::string& message) {
    if (status_.ok()) status_ = TemplateError(position, message);
  }
  void EmitText(size_t begin, size_t end) {
    if (end > begin) {
      tokens_.push_back({Kind::kText, source_.substr(begin, end - begin), Position(begin)});
    }
  }

  // Text up to the next tag, then the tag.
  void LexText() {
    const size_t begin = at_;
    size_t tag = begin;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string::npos || tag + 1 >= source_.size()) {
        EmitText(begin, source_.size());
        at_ = source_.size();
        return;
      }
      const char next = source_[tag + 1];
      if (next == '{' || next == '%' || next == '#') break;
    }
    const char type = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    EmitText(begin, TextEnd(begin, tag, type, sign, line_starting_));
    const SourcePosition position = Position(tag);
    at_ = tag + 2;
    if (sign == '-' || sign == '+') ++at_;
    if (type == '#') {
      LexComment(position);
    } else if (type == '%' && LexRaw(position)) {
      return;
    } else {
      tokens_.push_back({type == '{' ? Kind::kVariableBegin : Kind::kBlockBegin, "", position});
      LexTag(position, type == '{');
    }
  }

  // Where the text before a tag ends: "-" takes all space away, and lstrip_blocks that of a line
  // with nothing else before the tag.
  size_t TextEnd(size_t begin, size_t tag, char type, char sign, bool line_starting) const {
    size_t end = tag;
    if (sign == '-') {
      while (end > begin && IsSpace(source_[end - 1])) --end;
      return end;
    }
    if (sign == '+' || type == '{') return end;
    while (end > begin && IsSpace(source_[end - 1]) && source_[end - 1] != '\n') --end;
    const bool line_start = end > begin ? source_[end - 1] == '\n' : line_starting;
    return line_start ? end : tag;
  }

  // After the end of a tag or comment: "-" takes all space, trim_blocks one line end.
  void FinishTag(char sign, bool trim) {
    if (sign == '-') {
      while (at_ < source_.size() && IsSpace(source_[at_])) ++at_;
    } else if (sign != '+' && trim && Peek() == '\n') {
      ++at_;
    }
    line_starting_ = source_[at_ - 1] == '\n';
  }

  void LexComment(SourcePosition tag) {
    const size_t close = source_.find("#}", at_);
    if (close == std::string::npos) return Fail(tag, "a comment has no end");
    const char sign = close > at_ ? source_[close - 1] : '\0';
    at_ = close + 2;
    FinishTag(sign, true);
  }

  void SkipSpace() {
    while (at_ < source_.size() && IsSpace(source_[at_])) ++at_;
  }

  // Reads "word -%}" at `at_`; false without moving when it is something else.
  bool LexBareTag(std::string_view word, bool trim) {
    const size_t saved = at_;
    SkipSpace();
    if (source_.compare(at_, word.size(), word) == 0 && !IsNamePart(Peek(word.size()))) {
      at_ += word.size();
      SkipSpace();
      char sign = '\0';
      if (Peek() == '-' || Peek() == '+') sign = source_[at_++];
      if (Peek() == '%' && Peek(1) == '}') {
        at_ += 2;
        FinishTag(sign, trim);
        return true;
      }
    }
    at_ = saved;
    return false;
  }

  bool LexRaw(SourcePosition tag) {
    if (!LexBareTag("raw", false)) return false;
    const size_t begin = at_;
    for (size_t close = begin;; ++close) {
      close = source_.find("{%", close);
      if (close == std::string::npos) {
        Fail(tag, "a raw block has no end");
        return true;
      }
      at_ = close + 2;
      char sign = '\0';
      if (Peek() == '-' || Peek() == '+') sign = source_[at_++];
      const bool line_starting = line_starting_;
      if (!LexBareTag("endraw", true)) continue;
      EmitText(begin, TextEnd(begin, close, '%', sign, line_starting));
      return true;
    }
  }

  void LexTag(SourcePosition tag, bool variable) {
    std::string open;  // brackets; the end of the tag counts only outside of them
    const std::string_view close = variable ? "}}" : "%}";
    while (status_.ok()) {
      SkipSpace();
      if (at_ >= source_.size()) return Fail(tag, "a tag has no end");
      const bool sign = Peek() == '-' || Peek() == '+';
      if (open.empty() && source_.compare(at_ + (sign ? 1 : 0), 2, close) == 0 &&
          !(variable && Peek() == '+')) {
        const char sign_char = sign ? Peek() : '\0';
        tokens_.push_back({variable ? Kind::kVariableEnd : Kind::kBlockEnd, "", Position(at_)});
        at_ += sign ? 3 : 2;
        return FinishTag(sign_char, !variable);
      }
      LexWord(open);
    }
  }

  void LexWord(std::string& open) {
    const char c = Peek();
    if (IsDigit(c)) return LexNumber();
    if (c == '"' || c == '\'') return LexString();
    const size_t begin = at_;
    if (IsNameStart(c)) {
      while (IsNamePart(Peek())) ++at_;
      tokens_.push_back({Kind::kName, source_.substr(begin, at_ - begin), Position(begin)});
      return;
    }
    for (std::string_view op : kOperators) {
      if (source_.compare(at_, op.size(), op) != 0) continue;
      if (c == '(' || c == '[' || c == '{') open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
      if (c == ')' || c == ']' || c == '}') {
        if (open.empty() || open.back() != c) {
          return Fail(Position(begin), absl::StrFormat("\"%c\" closes nothing", c));
        }
        open.pop_back();
      }
      at_ += op.size();
      tokens_.push_back({Kind::kOperator, std::string(op), Position(begin)});
      return;
    }
    Fail(Position(begin),
         absl::StrFormat("unexpected character \"%c\"", c >= ' ' && c < 0x7F ? c : '?'));
  }

  void LexNumber() {
    const size_t begin = at_;
    Kind kind = Kind::kInteger;
    const char base = Peek(1);
    if (Peek() == '0' &&
        (base == 'x' || base == 'X' || base == 'o' || base == 'O' || base == 'b' || base == 'B')) {
      at_ += 2;
      while (IsNamePart(Peek())) ++at_;
    } else {
      const auto digits = [this] {
        while (IsDigit(Peek()) || (Peek() == '_' && IsDigit(Peek(1)))) ++at_;
      };
      digits();
      if (Peek() == '.' && IsDigit(Peek(1))) {
        kind = Kind::kFloat;
        ++at_;
        digits();
      }
      const bool exponent = Peek() == 'e' || Peek() == 'E';
      const bool signed_exponent = Peek(1) == '+' || Peek(1) == '-';
      if (exponent && IsDigit(Peek(signed_exponent ? 2 : 1))) {
        kind = Kind::kFloat;
        at_ += signed_exponent ? 2 : 1;
        digits();
      }
    }
    std::string text = source_.substr(begin, at_ - begin);
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    tokens_.push_back({kind, std::move(text), Position(begin)});
  }

  void LexString() {
    const SourcePosition position = Position(at_);
    const char quote = source_[at_++];
    std::string text;
    while (at_ < source_.size() && source_[at_] != quote) {
      if (source_[at_] != '\\') {
        text.push_back(source_[at_++]);
      } else if (++at_ < source_.size()) {
        Unescape(text);
      }
    }
    if (at_ >= source_.size()) return Fail(position, "a string has no end");
    ++at_;
    tokens_.push_back({Kind::kString, std::move(text), position});
  }

  // Python's escapes; an unknown one stays as it is written. `at_` is behind the backslash.
  void Unescape(std::string& text) {
    static constexpr std::string_view kFrom = "ntr\\'\"abfv";
    static constexpr std::string_view kTo = "\n\t\r\\'\"\a\b\f\v";
    const char c = source_[at_++];
    if (const size_t known = kFrom.find(c); known != std::string_view::npos) {
      text.push_back(kTo[known]);
    } else if (c == '\n') {
      return;
    } else if (c >= '0' && c <= '7') {
      char32_t value = c - '0';
      for (int i = 0; i < 2 && Peek() >= '0' && Peek() <= '7'; ++i) {
        value = value * 8 + (source_[at_++] - '0');
      }
      AppendUtf8(value, text);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      UnescapeHex(c == 'x' ? 2 : c == 'u' ? 4 : 8, text);
    } else {
      text.push_back('\\');
      text.push_back(c);
    }
  }

  void UnescapeHex(int digits, std::string& text) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char c = Peek();
      const int digit = IsDigit(c)               ? c - '0'
                        : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                        : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                                 : -1;
      if (digit < 0) return Fail(Position(at_), "a string escape lacks hexadecimal digits");
      value = value * 16 + static_cast<char32_t>(digit);
      ++at_;
    }
    AppendUtf8(value, text);
  }

  const std::string source_;
  size_t at_ = 0;
  size_t counted_ = 0;
  SourcePosition here_;
  bool line_starting_ = true;
  absl::Status status_;
  std::vector<TemplateToken> tokens_;
};

}  // namespace

absl::Status TemplateError(SourcePosition position, const std::string& message) {
  return absl::InvalidArgumentError(absl::StrFormat("chat template, line %d, column %d: %s",
                                                    position.line, position.column, message));
}

absl::StatusOr<std::vector<TemplateToken>> LexTemplate(std::string_view source) {
  return Lexer(Normalize(source)).Run();
}

}  // namespace hexad
