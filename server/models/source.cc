#include "server/models/source.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <memory>

#include "server/models/digest.h"
#include "server/models/wheel.h"

namespace hexad {
namespace {

bool IsNameCharacter(unsigned char c, std::string_view more) {
  return std::isalnum(c) != 0 ||
         (c != 0 && more.find(static_cast<char>(c)) != std::string_view::npos);
}

// Begins with a letter or digit, so that it can never be read as an option.
bool IsPlainName(std::string_view text, std::string_view more) {
  return !text.empty() && text.size() <= 200 && std::isalnum(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return IsNameCharacter(c, more); });
}

absl::Status Malformed(std::string_view text, const char* wanted) {
  return absl::InvalidArgumentError("\"" + std::string(text) + "\" is not " + wanted);
}

absl::StatusOr<Source> ParsePypi(std::string_view text) {
  constexpr char kWanted[] = "pypi:PACKAGE[==VERSION][:FILE]";
  std::string_view rest = text.substr(5);
  PypiSource source;
  if (const size_t colon = rest.find(':'); colon != std::string_view::npos) {
    source.member = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
    if (!IsSafeMemberName(source.member)) return Malformed(text, kWanted);
  }
  if (const size_t equals = rest.find("=="); equals != std::string_view::npos) {
    source.version = rest.substr(equals + 2);
    rest = rest.substr(0, equals);
    if (!IsPlainName(source.version, ".+!_-")) return Malformed(text, kWanted);
  }
  source.package = rest;
  if (!IsPlainName(source.package, "._-")) return Malformed(text, kWanted);
  return source;
}

absl::StatusOr<Source> ParseHub(std::string_view text) {
  constexpr char kWanted[] = "hf:OWNER/REPOSITORY[@REVISION][:FILE]";
  std::string_view rest = text.substr(3);
  HubSource source;
  if (const size_t colon = rest.find(':'); colon != std::string_view::npos) {
    source.file = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
    if (!IsSafeMemberName(source.file)) return Malformed(text, kWanted);
  }
  if (const size_t at = rest.find('@'); at != std::string_view::npos) {
    source.revision = rest.substr(at + 1);
    rest = rest.substr(0, at);
    if (!IsPlainName(source.revision, "._-/")) return Malformed(text, kWanted);
  }
  const size_t slash = rest.find('/');
  if (slash == std::string_view::npos || !IsPlainName(rest.substr(0, slash), "._-") ||
      !IsPlainName(rest.substr(slash + 1), "._-")) {
    return Malformed(text, kWanted);
  }
  source.repository = rest;
  return source;
}

struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using UrlHandle = std::unique_ptr<CURLU, UrlDeleter>;

std::string UrlPart(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return "";
  std::string copy = text;
  curl_free(text);
  return copy;
}

}  // namespace

bool IsAllowedUrl(const std::string& text) {
  UrlHandle url(curl_url());
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return false;
  const std::string scheme = UrlPart(url.get(), CURLUPART_SCHEME);
  const std::string host = UrlPart(url.get(), CURLUPART_HOST);
  if (scheme == "https") return !host.empty();
  // curl normalises numeric addresses, so that "127.evil.example" is the case to tell apart.
  const bool numeric = host.find_first_not_of("0123456789.") == std::string::npos;
  return scheme == "http" &&
         (host == "localhost" || host == "[::1]" || (numeric && host.compare(0, 4, "127.") == 0));
}

absl::StatusOr<Source> ParseSource(std::string_view text) {
  if (text.empty() || text.size() > 4096) {
    return absl::InvalidArgumentError("a model's name or source is 1 to 4096 bytes long");
  }
  if (text.substr(0, 5) == "pypi:") return ParsePypi(text);
  if (text.substr(0, 3) == "hf:") return ParseHub(text);
  if (text.find("://") != std::string_view::npos) {
    const std::string url(text);
    if (!IsAllowedUrl(url)) {
      return absl::InvalidArgumentError(
          "\"" + url + "\" is not an https:// address (http:// is for this machine only)");
    }
    return UrlSource{url};
  }
  const bool is_gguf = text.size() > 5 && text.substr(text.size() - 5) == ".gguf";
  if (is_gguf || text.find('/') != std::string_view::npos) return LocalSource{std::string(text)};
  return absl::NotFoundError("\"" + std::string(text) + "\" is no source");
}

std::string ToString(const Source& source) {
  if (const auto* local = std::get_if<LocalSource>(&source)) return local->path;
  if (const auto* pypi = std::get_if<PypiSource>(&source)) {
    return "pypi:" + pypi->package + (pypi->version.empty() ? "" : "==" + pypi->version) +
           (pypi->member.empty() ? "" : ":" + pypi->member);
  }
  if (const auto* hub = std::get_if<HubSource>(&source)) {
    return "hf:" + hub->repository + (hub->revision == "main" ? "" : "@" + hub->revision) +
           (hub->file.empty() ? "" : ":" + hub->file);
  }
  UrlHandle url(curl_url());
  const std::string& text = std::get<UrlSource>(source).url;
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return "(bad address)";
  // A query may be a signature: its digest tells two apart without showing it.
  const std::string query = UrlPart(url.get(), CURLUPART_QUERY);
  for (CURLUPart part : {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT}) {
    curl_url_set(url.get(), part, nullptr, 0);
  }
  std::string shown = UrlPart(url.get(), CURLUPART_URL);
  if (!query.empty()) {
    Sha256 digest;
    digest.Update(query);
    shown += "?query-" + digest.Hex().substr(0, 8);
  }
  return shown;
}

std::string FolderName(std::string_view model_name) {
  std::string folder;
  for (char c : model_name.substr(0, 100)) {
    const char safe = IsNameCharacter(static_cast<unsigned char>(c), "._") ? c : '-';
    if (safe != '-' || (!folder.empty() && folder.back() != '-')) folder += safe;
  }
  // A plain name needs no digits; it cannot collide with one that has them, for "-" + 8 digits
  // is only added to names that hold other characters.
  if (IsPlainName(model_name, "._-") && folder == model_name) return folder;
  Sha256 digest;
  digest.Update(std::span(model_name.data(), model_name.size()));
  if (folder.empty() || folder[0] == '.') folder = "model" + folder;
  return folder + "-" + digest.Hex().substr(0, 16);
}

}  // namespace hexad
