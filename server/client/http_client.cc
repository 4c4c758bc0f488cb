#include "server/client/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace hexad {
namespace {

struct Transfer {
  HttpCall call;
  HttpClient::Done done;
  CURL* curl = nullptr;
  curl_slist* headers = nullptr;
  bool aborted = false;
  char error[CURL_ERROR_SIZE] = "";

  ~Transfer() {
    if (curl != nullptr) curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
  }
};

size_t OnBody(char* bytes, size_t, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  long status = 0;
  curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &status);
  if (transfer.aborted) return 0;
  if (transfer.call.on_body && !transfer.call.on_body(status, std::string_view(bytes, count))) {
    transfer.aborted = true;
    return 0;
  }
  return count;
}

TransferEnd EndOf(CURLcode code, bool aborted) {
  if (aborted) return TransferEnd::kAborted;
  switch (code) {
    case CURLE_OK:
      return TransferEnd::kComplete;
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
      return TransferEnd::kNotConnected;
    case CURLE_OPERATION_TIMEDOUT:
      return TransferEnd::kTimedOut;
    default:
      return TransferEnd::kBroken;
  }
}

}  // namespace

struct HttpClient::Impl {
  CURLM* multi = nullptr;
  uint64_t next_id = 1;
  std::map<uint64_t, std::unique_ptr<Transfer>> transfers;
  std::vector<uint64_t> to_abort;

  void Finish(uint64_t id, CURLcode code) {
    auto it = transfers.find(id);
    if (it == transfers.end()) return;
    std::unique_ptr<Transfer> transfer = std::move(it->second);
    transfers.erase(it);
    HttpOutcome outcome;
    outcome.end = EndOf(code, transfer->aborted);
    curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &outcome.status);
    if (code != CURLE_OK) {
      outcome.detail = transfer->error[0] != 0 ? transfer->error : curl_easy_strerror(code);
    }
    curl_multi_remove_handle(multi, transfer->curl);
    if (transfer->done) transfer->done(outcome);
  }
  bool FinishAborted() {
    const bool any = !to_abort.empty();
    for (uint64_t id : std::exchange(to_abort, {})) {
      auto it = transfers.find(id);
      if (it == transfers.end()) continue;
      it->second->aborted = true;
      Finish(id, CURLE_ABORTED_BY_CALLBACK);
    }
    return any;
  }
};

HttpClient::HttpClient(long max_connections) : impl_(std::make_unique<Impl>()) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  impl_->multi = curl_multi_init();
  curl_multi_setopt(impl_->multi, CURLMOPT_MAXCONNECTS, std::max(max_connections, 1L));
  curl_multi_setopt(impl_->multi, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
}

HttpClient::~HttpClient() {
  for (auto& [id, transfer] : impl_->transfers) {
    curl_multi_remove_handle(impl_->multi, transfer->curl);
  }
  impl_->transfers.clear();
  curl_multi_cleanup(impl_->multi);
}

uint64_t HttpClient::Start(HttpCall call, Done done) {
  auto transfer = std::make_unique<Transfer>();
  transfer->call = std::move(call);
  transfer->done = std::move(done);
  transfer->curl = curl_easy_init();
  const HttpCall& kept = transfer->call;
  for (const std::string& header : kept.headers) {
    transfer->headers = curl_slist_append(transfer->headers, header.c_str());
  }
  CURL* c = transfer->curl;
  const uint64_t id = impl_->next_id++;
  curl_easy_setopt(c, CURLOPT_URL, kept.url.c_str());
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https,http");
  curl_easy_setopt(c, CURLOPT_USERAGENT, "hexad");
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, 10000L);
  curl_easy_setopt(c, CURLOPT_TIMEOUT_MS,
                   static_cast<long>(std::clamp(kept.timeout_seconds, 0.001, 1e6) * 1000));
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, OnBody);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, transfer.get());
  curl_easy_setopt(c, CURLOPT_ERRORBUFFER, transfer->error);
  curl_easy_setopt(c, CURLOPT_PRIVATE, reinterpret_cast<void*>(id));
  for (const char* local : {"http://127.", "http://localhost", "http://[::1]"}) {
    // A proxy is for the world, not for this machine.
    if (kept.url.rfind(local, 0) == 0) curl_easy_setopt(c, CURLOPT_PROXY, "");
  }
  if (!kept.body.empty()) {
    transfer->headers = curl_slist_append(transfer->headers, "Content-Type: application/json");
    transfer->headers = curl_slist_append(transfer->headers, "Expect:");  // no round trip before it
    curl_easy_setopt(c, CURLOPT_POSTFIELDS, kept.body.data());
    curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(kept.body.size()));
  }
  curl_easy_setopt(c, CURLOPT_HTTPHEADER, transfer->headers);
  curl_multi_add_handle(impl_->multi, c);
  impl_->transfers.emplace(id, std::move(transfer));
  return id;
}

void HttpClient::Abort(uint64_t id) { impl_->to_abort.push_back(id); }

size_t HttpClient::active() const { return impl_->transfers.size(); }

void HttpClient::Poll(std::chrono::milliseconds timeout, int wake_fd) {
  bool finished = impl_->FinishAborted();
  int running = 0;
  curl_multi_perform(impl_->multi, &running);
  int left = 0;
  const auto collect = [&] {
    while (CURLMsg* message = curl_multi_info_read(impl_->multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      void* id = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &id);
      const CURLcode code = message->data.result;
      impl_->Finish(reinterpret_cast<uint64_t>(id), code);
      finished = true;
    }
  };
  collect();
  if (finished || !impl_->to_abort.empty()) return;  // the caller may want to start the next
  curl_waitfd wake{wake_fd, CURL_WAIT_POLLIN, 0};
  int ready = 0;
  curl_multi_poll(impl_->multi, &wake, wake_fd >= 0 ? 1 : 0,
                  static_cast<int>(std::clamp<int64_t>(timeout.count(), 0, 1 << 30)), &ready);
  curl_multi_perform(impl_->multi, &running);
  collect();
}

FetchedBody Fetch(HttpCall call, size_t max_bytes) {
  HttpClient client(1);
  FetchedBody fetched;
  bool done = false;
  call.on_body = [&](long, std::string_view bytes) {
    if (fetched.body.size() + bytes.size() > max_bytes) return false;
    fetched.body += bytes;
    return true;
  };
  client.Start(std::move(call), [&](const HttpOutcome& outcome) {
    fetched.outcome = outcome;
    if (outcome.end == TransferEnd::kAborted) fetched.outcome.end = TransferEnd::kBroken;
    done = true;
  });
  while (!done) client.Poll(std::chrono::milliseconds(1000));
  return fetched;
}

}  // namespace hexad
