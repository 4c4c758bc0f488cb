#include "server/openai/json_check.h"

#include "engine/tokenizer/utf8.h"

namespace hexad {
namespace {

class Checker final {
 public:
  Checker(std::string_view text, int max_depth) : text_(text), depth_left_(max_depth) {}

  std::optional<JsonError> Run() {
    if (Value()) {
      SkipSpace();
      if (at_ < text_.size()) Fail("text after the end of the JSON value");
    }
    return error_;
  }

 private:
  bool Fail(std::string what) {
    if (!error_.has_value()) {
      error_ = JsonError{at_, at_ >= text_.size() ? "the text ends too early" : std::move(what)};
    }
    return false;
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Take(char wanted) {
    if (Peek() != wanted) return false;
    ++at_;
    return true;
  }
  void SkipSpace() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }

  // Recursion is bounded by depth_left_.
  bool Value() {
    SkipSpace();
    switch (Peek()) {
      case '{':
        return Nested(&Checker::Members, '}');
      case '[':
        return Nested(&Checker::Elements, ']');
      case '"':
        return String();
      case 't':
        return Literal("true");
      case 'f':
        return Literal("false");
      case 'n':
        return Literal("null");
      default:
        return Number();
    }
  }

  bool Nested(bool (Checker::*content)(), char close) {
    if (depth_left_ == 0) return Fail("arrays and objects are nested too deep");
    --depth_left_;
    ++at_;
    SkipSpace();
    if (!Take(close)) {
      if (!(this->*content)()) return false;
      if (!Take(close)) return Fail(std::string("',' or '") + close + "' expected");
    }
    ++depth_left_;
    return true;
  }

  bool Members() {
    do {
      SkipSpace();
      if (Peek() != '"') return Fail("a string expected as the name of a member");
      if (!String()) return false;
      SkipSpace();
      if (!Take(':')) return Fail("':' expected");
      if (!Value()) return false;
      SkipSpace();
    } while (Take(','));
    return true;
  }

  bool Elements() {
    do {
      if (!Value()) return false;
      SkipSpace();
    } while (Take(','));
    return true;
  }

  bool Literal(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return Fail("a value expected");
    at_ += word.size();
    return true;
  }

  bool Digits() {
    const size_t start = at_;
    while (Peek() >= '0' && Peek() <= '9') ++at_;
    return at_ > start;
  }

  bool Number() {
    Take('-');
    if (!Take('0') && !Digits()) return Fail("a value expected");
    if (Take('.') && !Digits()) return Fail("a digit expected after '.'");
    if (Take('e') || Take('E')) {
      if (!Take('+')) Take('-');
      if (!Digits()) return Fail("a digit expected in the exponent");
    }
    return true;
  }

  // -1: not four hexadecimal digits.
  int HexUnit() {
    int unit = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = Peek();
      int digit = -1;
      if (c >= '0' && c <= '9') digit = c - '0';
      if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
      if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
      if (digit < 0) return -1;
      unit = unit * 16 + digit;
      ++at_;
    }
    return unit;
  }

  bool Escape() {
    const char c = Peek();
    if (std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos && c != '\0') {
      ++at_;
      return true;
    }
    if (!Take('u')) return Fail("unknown escape");
    const int unit = HexUnit();
    if (unit < 0) return Fail("four hexadecimal digits expected after \\u");
    const bool low = unit >= 0xDC00 && unit <= 0xDFFF;
    if (low) return Fail("unpaired surrogate");
    if (unit < 0xD800 || unit > 0xDBFF) return true;
    if (!Take('\\') || !Take('u')) return Fail("unpaired surrogate");
    const int second = HexUnit();
    return second >= 0xDC00 && second <= 0xDFFF ? true : Fail("unpaired surrogate");
  }

  bool String() {
    ++at_;
    while (at_ < text_.size()) {
      const auto byte = static_cast<unsigned char>(text_[at_]);
      if (byte == '"') {
        ++at_;
        return true;
      }
      if (byte == '\\') {
        ++at_;
        if (!Escape()) return false;
      } else if (byte < 0x20) {
        return Fail("control characters must be escaped in strings");
      } else {
        const size_t size = ValidUtf8Length(text_, at_);
        if (size == 0) return Fail("invalid UTF-8");
        at_ += size;
      }
    }
    return Fail("");
  }

  const std::string_view text_;
  size_t at_ = 0;
  int depth_left_;
  std::optional<JsonError> error_;
};

}  // namespace

std::optional<JsonError> FindJsonError(std::string_view text, int max_depth) {
  return Checker(text, max_depth).Run();
}

}  // namespace hexad
