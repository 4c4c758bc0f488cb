#include "server/models/progress.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "server/models/file_io.h"

namespace hexad {
namespace {
constexpr int kBarWidth = 24;
constexpr int64_t kUnknownTotalMark = int64_t{64} << 20;
constexpr auto kRedraw = std::chrono::milliseconds(100);
}  // namespace

void Progress::ClearBar() {
  if (drawn_) out_ << "\r\033[K";
  drawn_ = false;
}

void Progress::Line(std::string_view text) {
  ClearBar();
  out_ << text << "\n" << std::flush;
}

void Progress::Begin(std::string label, int64_t total_bytes, int64_t already) {
  label_ = std::move(label);
  total_ = total_bytes;
  already_ = done_ = already;
  started_ = last_drawn_ = std::chrono::steady_clock::now();
  next_mark_ = total_ > 0 ? std::max<int64_t>(total_ / 10, 1) : kUnknownTotalMark;
  while (next_mark_ <= already) next_mark_ += total_ > 0 ? total_ / 10 + 1 : kUnknownTotalMark;
}

void Progress::Update(int64_t done_bytes) {
  done_ = done_bytes;
  if (terminal_) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_drawn_ < kRedraw) return;
    last_drawn_ = now;
    Draw(done_bytes);
    return;
  }
  if (done_bytes < next_mark_) return;
  const int64_t step = total_ > 0 ? std::max<int64_t>(total_ / 10, 1) : kUnknownTotalMark;
  while (next_mark_ <= done_bytes) next_mark_ += step;
  out_ << label_ << ": " << HumanBytes(done_bytes);
  if (total_ > 0) out_ << " of " << HumanBytes(total_);
  out_ << "\n" << std::flush;
}

void Progress::Draw(int64_t done_bytes) {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  const double rate =
      seconds > 0 ? static_cast<double>(std::max<int64_t>(done_bytes - already_, 0)) / seconds : 0;
  std::string line = label_ + " ";
  if (total_ > 0) {
    const double part =
        std::min(1.0, static_cast<double>(done_bytes) / static_cast<double>(total_));
    const int filled = static_cast<int>(part * kBarWidth);
    char percent[8];
    std::snprintf(percent, sizeof(percent), "%3d%%", static_cast<int>(part * 100));
    line += "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "] " + percent +
            " " + HumanBytes(done_bytes) + " of " + HumanBytes(total_);
  } else {
    line += HumanBytes(done_bytes);
  }
  if (rate > 0) line += ", " + HumanBytes(static_cast<int64_t>(rate)) + "/s";
  if (rate > 0 && total_ > done_bytes) {
    line +=
        ", " +
        std::to_string(static_cast<int64_t>(static_cast<double>(total_ - done_bytes) / rate + 1)) +
        " s left";
  }
  out_ << "\r\033[K" << line << std::flush;
  drawn_ = true;
}

void Progress::End() { ClearBar(); }

}  // namespace hexad
