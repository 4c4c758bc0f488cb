#include "server/http/chunked_decoder.h"

#include <algorithm>

namespace hexad {
namespace {

constexpr size_t kMaxSkippedBytes = 16 * 1024;
constexpr int kMaxSizeDigits = 15;  // 60 bits: no overflow, whatever the digits

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

ChunkedDecoder::State ChunkedDecoder::Feed(std::string_view input, size_t* consumed,
                                           std::string* body) {
  *consumed = 0;
  while (*consumed < input.size()) {
    if (part_ == Part::kData) {
      const size_t take = static_cast<size_t>(std::min<uint64_t>(size_, input.size() - *consumed));
      body->append(input.substr(*consumed, take));
      *consumed += take;
      size_ -= take;
      if (size_ == 0) part_ = Part::kDataEnd;
      continue;
    }
    const State state = OnByte(input[(*consumed)++]);
    if (state != State::kNeedMore) return state;
  }
  return State::kNeedMore;
}

ChunkedDecoder::State ChunkedDecoder::OnByte(char byte) {
  const auto expect = [&](char wanted, Part next) {
    part_ = next;
    return byte == wanted ? State::kNeedMore : State::kMalformed;
  };
  switch (part_) {
    case Part::kSize: {
      const int digit = HexValue(byte);
      if (digit >= 0) {
        if (++size_digits_ > kMaxSizeDigits) return State::kMalformed;
        size_ = size_ * 16 + static_cast<uint64_t>(digit);
        return State::kNeedMore;
      }
      if (size_digits_ == 0) return State::kMalformed;
      if (size_ > max_body_bytes_ - body_bytes_) return State::kTooLarge;
      body_bytes_ += static_cast<size_t>(size_);
      if (byte == ';') {
        part_ = Part::kExtension;
        return State::kNeedMore;
      }
      return expect('\r', Part::kSizeEnd);
    }
    case Part::kExtension:
      if (byte == '\r') {
        part_ = Part::kSizeEnd;
      } else if (byte == '\n' || ++skipped_bytes_ > kMaxSkippedBytes) {
        return State::kMalformed;
      }
      return State::kNeedMore;
    case Part::kSizeEnd:
      size_digits_ = 0;
      return expect('\n', size_ == 0 ? Part::kTrailerStart : Part::kData);
    case Part::kData:
      return State::kMalformed;  // taken by Feed
    case Part::kDataEnd:
      return expect('\r', Part::kDataLineFeed);
    case Part::kDataLineFeed:
      return expect('\n', Part::kSize);
    case Part::kTrailerStart:
      if (byte == '\r') {
        part_ = Part::kLastLineFeed;
        return State::kNeedMore;
      }
      part_ = Part::kTrailer;
      [[fallthrough]];
    case Part::kTrailer:
      if (byte == '\r') {
        part_ = Part::kTrailerLineFeed;
      } else if (byte == '\n' || ++skipped_bytes_ > kMaxSkippedBytes) {
        return State::kMalformed;
      }
      return State::kNeedMore;
    case Part::kTrailerLineFeed:
      return expect('\n', Part::kTrailerStart);
    case Part::kLastLineFeed:
      return byte == '\n' ? State::kDone : State::kMalformed;
  }
  return State::kMalformed;
}

}  // namespace hexad
