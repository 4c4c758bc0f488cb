#include "server/models/download.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "server/models/digest.h"
#include "server/models/file_io.h"
#include "server/models/redirects.h"

namespace hexad {
namespace {

constexpr auto kMaxRetryDelay = std::chrono::milliseconds(30000);

void Pause(std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);  // cppcheck-suppress localMutex
  never.wait_for(lock, time, [] { return false; });
}

// What the bytes in the part file belong to; one value a line.
struct PartInfo {
  std::string url;          // its digest: an address may hold a signature
  std::string etag;         // strong, with its quotes, for If-Range
  std::string linked_etag;  // the hub's name of the content
};

std::string InfoPath(const DownloadRequest& request) { return request.destination + ".part.info"; }
std::string PartPath(const DownloadRequest& request) { return request.destination + ".part"; }

std::string UrlDigest(const std::string& url) {
  Sha256 digest;
  digest.Update(url);
  return digest.Hex();
}

std::optional<PartInfo> ReadPartInfo(const DownloadRequest& request) {
  absl::StatusOr<std::string> text = ReadSmallFile(InfoPath(request), 64 << 10);
  if (!text.ok()) return std::nullopt;
  PartInfo info;
  size_t begin = 0;
  for (std::string* field : {&info.url, &info.etag, &info.linked_etag}) {
    const size_t end = text->find('\n', begin);
    if (end == std::string::npos) return std::nullopt;
    *field = text->substr(begin, end - begin);
    begin = end + 1;
  }
  return info;
}

absl::Status WritePartInfo(const DownloadRequest& request, const PartInfo& info) {
  absl::StatusOr<WritableFile> file = WritableFile::Open(InfoPath(request), /*append=*/false);
  if (!file.ok()) return file.status();
  const std::string text = info.url + "\n" + info.etag + "\n" + info.linked_etag + "\n";
  return file->Append(text);
}

void RemovePart(const DownloadRequest& request) {
  ::unlink(PartPath(request).c_str());
  ::unlink(InfoPath(request).c_str());
}

std::string HeaderOr(const HttpGetResponse& response, const char* name) {
  const auto it = response.headers.find(name);
  return it == response.headers.end() ? "" : it->second;
}

// "bytes 5-9/10": the first byte and the whole size, when all is well formed.
bool ParseContentRange(std::string_view text, int64_t* first, int64_t* total) {
  if (text.substr(0, 6) != "bytes ") return false;
  text.remove_prefix(6);
  const auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), *first);
  const size_t slash = text.find('/');
  if (error != std::errc() || *after != '-' || slash == std::string_view::npos) return false;
  const auto [end, total_error] =
      std::from_chars(text.data() + slash + 1, text.data() + text.size(), *total);
  return total_error == std::errc() && end == text.data() + text.size() && *first >= 0;
}

// One try: opens the part file, asks for what is missing, appends.
class Attempt final {
 public:
  Attempt(const DownloadRequest& request, const DownloadLimits& limits, Progress& progress)
      : request_(request), limits_(limits), progress_(progress) {}

  absl::Status Run();
  const std::string& linked_etag() const { return linked_etag_; }
  int retry_after_seconds() const { return retry_after_seconds_; }
  WritableFile& file() { return *file_; }

 private:
  absl::Status Start(const FollowedResponse& followed);
  absl::Status Bytes(std::span<const char> bytes);

  const DownloadRequest& request_;
  const DownloadLimits& limits_;
  Progress& progress_;
  std::optional<WritableFile> file_;
  std::optional<PartInfo> before_;
  std::string linked_etag_;
  int64_t total_ = -1;
  int retry_after_seconds_ = 0;
};

absl::Status Attempt::Start(const FollowedResponse& followed) {
  const HttpGetResponse& response = followed.response;
  linked_etag_ = followed.linked_etag;
  const std::string etag = HeaderOr(response, "etag");
  const int64_t length = response.ContentLength();
  bool resumed = false;
  if (response.status == 206) {
    int64_t first = -1;
    int64_t total = -1;
    const bool same = before_.has_value() && before_->linked_etag == linked_etag_ &&
                      (etag.empty() || etag == before_->etag);
    if (!ParseContentRange(HeaderOr(response, "content-range"), &first, &total) ||
        first != file_->size() || !same) {
      // The rest of something else: begin again.
      RemovePart(request_);
      return absl::UnavailableError("the server continued with another file or place");
    }
    resumed = true;
    total_ = total;
  } else {
    absl::Status status = file_->Truncate();
    if (!status.ok()) return status;
    total_ = length;
  }
  if (total_ < 0) total_ = followed.linked_size;
  if (total_ < 0) total_ = request_.size;
  if (request_.size >= 0 && total_ != request_.size) {
    return absl::DataLossError("the server offers " + HumanBytes(total_) + " (" +
                               std::to_string(total_) + " bytes), pinned are " +
                               std::to_string(request_.size));
  }
  if (total_ > limits_.max_bytes) {
    return absl::OutOfRangeError("the file is " + HumanBytes(total_) + ", the limit " +
                                 HumanBytes(limits_.max_bytes));
  }
  if (total_ > 0) {
    const std::string folder = request_.destination.substr(0, request_.destination.rfind('/') + 1);
    absl::Status space = CheckFreeSpace(folder, total_ - file_->size());
    if (!space.ok()) return space;
  }
  if (resumed) {
    progress_.Line("continuing at " + HumanBytes(file_->size()));
  } else {
    // A weak tag promises no equal bytes, so that nothing can be resumed by it.
    PartInfo info{UrlDigest(request_.url), etag.substr(0, 2) == "W/" ? "" : etag, linked_etag_};
    absl::Status status = WritePartInfo(request_, info);
    if (!status.ok()) return status;
  }
  progress_.Begin(request_.label, std::max<int64_t>(total_, 0), file_->size());
  return absl::OkStatus();
}

absl::Status Attempt::Bytes(std::span<const char> bytes) {
  const int64_t limit = request_.size >= 0 ? request_.size : limits_.max_bytes;
  if (file_->size() + static_cast<int64_t>(bytes.size()) > limit) {
    return absl::OutOfRangeError("the server sent more than " + HumanBytes(limit));
  }
  absl::Status status = file_->Append(bytes);
  progress_.Update(file_->size());
  return status;
}

absl::Status Attempt::Run() {
  before_ = ReadPartInfo(request_);
  if (before_.has_value() && (before_->url != UrlDigest(request_.url) || before_->etag.empty())) {
    before_.reset();
  }
  absl::StatusOr<WritableFile> file =
      WritableFile::Open(PartPath(request_), /*append=*/before_.has_value());
  if (!file.ok()) return file.status();
  file_.emplace(*std::move(file));
  FollowedRequest get{request_.url, request_.token, {}};
  const bool asks_for_rest = before_.has_value() && file_->size() > 0;
  if (asks_for_rest) {
    get.headers = {"Range: bytes=" + std::to_string(file_->size()) + "-",
                   "If-Range: " + before_->etag};
  }
  FollowedHandlers handlers;
  handlers.on_start = [this](const FollowedResponse& followed) { return Start(followed); };
  handlers.on_bytes = [this](std::span<const char> bytes) { return Bytes(bytes); };
  absl::StatusOr<FollowedResponse> followed = GetFollowing(get, handlers, limits_);
  progress_.End();
  if (!followed.ok()) return followed.status();
  const HttpGetResponse& response = followed->response;
  if (response.status == 416 && asks_for_rest) {
    RemovePart(request_);  // whole already, or not what it was: the next try begins again
    return absl::UnavailableError("the server has no more of what was begun");
  }
  if (response.status / 100 != 2) {
    const std::string retry_after = HeaderOr(response, "retry-after");
    std::from_chars(retry_after.data(), retry_after.data() + retry_after.size(),
                    retry_after_seconds_);
    return HttpStatusError(*followed);
  }
  if (total_ >= 0 && file_->size() != total_) {
    return absl::UnavailableError("the transfer ended at " + std::to_string(file_->size()) +
                                  " of " + std::to_string(total_) + " bytes");
  }
  return absl::OkStatus();
}

absl::StatusOr<DownloadResult> Finish(const DownloadRequest& request, Attempt& attempt) {
  DownloadResult result;
  result.size = attempt.file().size();
  absl::StatusOr<std::string> sha256 = Sha256OfFile(PartPath(request));
  if (!sha256.ok()) return sha256.status();
  result.sha256 = *sha256;
  std::string expected = request.sha256;
  if (expected.empty() && IsSha256(attempt.linked_etag())) expected = attempt.linked_etag();
  if (!expected.empty()) {
    absl::Status status = CompareSha256(request.label, expected, result.sha256);
    if (!status.ok()) return status;
    result.verified = true;
  }
  absl::Status status = attempt.file().Publish(request.destination);
  if (!status.ok()) return status;
  ::unlink(InfoPath(request).c_str());
  return result;
}

}  // namespace

absl::StatusOr<DownloadResult> Download(const DownloadRequest& request,
                                        const DownloadLimits& limits, Progress& progress) {
  std::chrono::milliseconds delay = limits.first_retry_delay;
  for (int number = 1;; ++number) {
    Attempt attempt(request, limits, progress);
    absl::Status status = attempt.Run();
    if (status.ok()) {
      absl::StatusOr<DownloadResult> result = Finish(request, attempt);
      if (absl::IsDataLoss(result.status())) RemovePart(request);
      return result;
    }
    if (absl::IsDataLoss(status) || absl::IsResourceExhausted(status) ||
        absl::IsOutOfRange(status)) {
      RemovePart(request);
    }
    if (!absl::IsUnavailable(status) || number >= limits.max_attempts) return status;
    std::chrono::milliseconds wait = delay;
    if (attempt.retry_after_seconds() > 0) {
      wait = std::max<std::chrono::milliseconds>(
          wait, std::chrono::seconds(std::min(attempt.retry_after_seconds(), 30)));
    }
    progress.Line(std::string(status.message()) + "; try " + std::to_string(number + 1) + " of " +
                  std::to_string(limits.max_attempts));
    Pause(std::min(wait, kMaxRetryDelay));
    delay *= 2;
  }
}

absl::StatusOr<std::string> FetchText(const std::string& url, const std::string& token,
                                      size_t max_bytes, const DownloadLimits& limits) {
  std::chrono::milliseconds delay = limits.first_retry_delay;
  for (int number = 1;; ++number) {
    std::string text;
    FollowedHandlers handlers;
    handlers.on_bytes = [&](std::span<const char> bytes) {
      if (text.size() + bytes.size() > max_bytes) {
        return absl::OutOfRangeError(ShownUrl(url) + " sent more than " +
                                     HumanBytes(static_cast<int64_t>(max_bytes)));
      }
      text.append(bytes.data(), bytes.size());
      return absl::OkStatus();
    };
    absl::StatusOr<FollowedResponse> followed = GetFollowing({url, token, {}}, handlers, limits);
    absl::Status status = followed.status();
    if (status.ok() && followed->response.status / 100 != 2) status = HttpStatusError(*followed);
    if (status.ok()) return text;
    if (!absl::IsUnavailable(status) || number >= limits.max_attempts) return status;
    Pause(std::min(delay, kMaxRetryDelay));
    delay *= 2;
  }
}

}  // namespace hexad
