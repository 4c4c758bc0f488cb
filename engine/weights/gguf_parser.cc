#include "engine/weights/gguf_parser.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"

namespace hexad {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF files are mapped little-endian");

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr size_t kLongestKey = 65535;    // the format's own limits
constexpr size_t kLongestTensorName = 64;
constexpr size_t kMaxDims = 4;
constexpr uint64_t kDefaultAlignment = 32;
// Far above any model known (the largest vocabularies have 262,144 entries), and low enough that
// what a hostile file makes us allocate stays small.
constexpr uint64_t kMostEntries = 1 << 16;
constexpr uint64_t kMostTensors = 1 << 20;
constexpr uint64_t kMostItems = 1 << 24;
constexpr std::string_view kDamagedRemedy =
    "the file is truncated or damaged; download or convert it again";

enum ValueType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

struct TensorType {
  uint32_t id;
  DType type;
};
constexpr TensorType kTensorTypes[] = {
    {0, DType::kF32},     {1, DType::kF16},   {2, DType::kQ4_0},  {3, DType::kQ4_1},
    {6, DType::kQ5_0},    {7, DType::kQ5_1},  {8, DType::kQ8_0},  {10, DType::kQ2_K},
    {11, DType::kQ3_K},   {12, DType::kQ4_K}, {13, DType::kQ5_K}, {14, DType::kQ6_K},
    {20, DType::kIQ4_NL}, {30, DType::kBF16},
};

// Names of types that the format knows and hexad does not read, for the message.
struct KnownType {
  uint32_t id;
  const char* name;
};
constexpr KnownType kUnreadTypes[] = {
    {9, "Q8_1"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
    {21, "IQ3_S"}, {22, "IQ2_S"}, {23, "IQ4_XS"},  {24, "I8"},     {25, "I16"},     {26, "I32"},
    {27, "I64"},   {28, "F64"},   {29, "IQ1_M"},   {34, "TQ1_0"},  {35, "TQ2_0"},   {39, "MXFP4"},
};

std::string Printable(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, kLongestTensorName)) {
    result += (c >= ' ' && c <= '~') ? c : '?';
  }
  return result;
}

bool Multiply(uint64_t a, uint64_t b, uint64_t limit, uint64_t* product) {
  if (b != 0 && a > limit / b) return false;
  *product = a * b;
  return true;
}

}  // namespace

absl::Status GgufParser::Damaged(size_t offset, std::string_view field, std::string_view value,
                                 std::string_view why) const {
  return absl::InvalidArgumentError(absl::StrFormat("%s: at byte %d: %s is %s: %s; %s", file_.path_,
                                                    offset, field, value, why, kDamagedRemedy));
}

absl::Status GgufParser::Unsupported(size_t offset, std::string_view field, std::string_view value,
                                     std::string_view remedy) const {
  return absl::UnimplementedError(
      absl::StrFormat("%s: at byte %d: %s is %s: %s", file_.path_, offset, field, value, remedy));
}

template <typename T>
absl::StatusOr<T> GgufParser::Read(std::string_view field) {
  if (left() < sizeof(T)) {
    return Damaged(
        offset_, field, "missing",
        absl::StrFormat("it takes %d bytes and the file has %d left", sizeof(T), left()));
  }
  T value;
  std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
  offset_ += sizeof(T);
  return value;
}

absl::StatusOr<bool> GgufParser::ReadBool(std::string_view field) {
  const size_t at = offset_;
  const absl::StatusOr<uint8_t> value = Read<uint8_t>(field);
  if (!value.ok()) return value.status();
  if (*value > 1) return Damaged(at, field, absl::StrFormat("%d", *value), "a bool is 0 or 1");
  return *value == 1;
}

absl::StatusOr<std::string> GgufParser::ReadString(std::string_view field, size_t longest) {
  const size_t at = offset_;
  const absl::StatusOr<uint64_t> length = Read<uint64_t>(field);
  if (!length.ok()) return length.status();
  if (*length > left()) {
    return Damaged(at, absl::StrFormat("the length of %s", field), absl::StrFormat("%d", *length),
                   absl::StrFormat("the file has %d bytes left", left()));
  }
  if (*length > longest) {
    return Damaged(at, absl::StrFormat("the length of %s", field), absl::StrFormat("%d", *length),
                   absl::StrFormat("the format allows %d bytes", longest));
  }
  std::string text(reinterpret_cast<const char*>(bytes_.data() + offset_), *length);
  offset_ += *length;
  return text;
}

absl::Status GgufParser::CheckCount(uint64_t count, size_t least_bytes_each, uint64_t most,
                                    std::string_view field) const {
  if (count > most) {
    return Damaged(offset_, field, absl::StrFormat("%d", count),
                   absl::StrFormat("hexad reads at most %d", most));
  }
  if (count > left() / least_bytes_each) {
    return Damaged(offset_, field, absl::StrFormat("%d", count),
                   absl::StrFormat("each takes %d bytes or more and the file has %d left",
                                   least_bytes_each, left()));
  }
  return absl::OkStatus();
}

absl::StatusOr<GgufParser::Header> GgufParser::ReadHeader() {
  const absl::StatusOr<uint32_t> magic = Read<uint32_t>("the magic number");
  if (!magic.ok()) return magic.status();
  if (*magic != kMagic) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: at byte 0: the magic number is 0x%08x and not \"GGUF\": this is no "
                        "GGUF file; name one, or convert the model to GGUF",
                        file_.path_, *magic));
  }
  const absl::StatusOr<uint32_t> version = Read<uint32_t>("the version");
  if (!version.ok()) return version.status();
  if (*version != 2 && *version != 3) {
    const uint32_t swapped = __builtin_bswap32(*version);
    if (swapped >= 1 && swapped <= 3) {
      return Unsupported(4, "the version", absl::StrFormat("0x%08x", *version),
                         "the file is big-endian; convert the model for little-endian machines");
    }
    return Unsupported(4, "the version", absl::StrFormat("%d", *version),
                       "hexad reads versions 2 and 3; convert the model again");
  }
  Header header;
  const absl::StatusOr<uint64_t> tensors = Read<uint64_t>("the number of tensors");
  if (!tensors.ok()) return tensors.status();
  const absl::StatusOr<uint64_t> entries = Read<uint64_t>("the number of metadata entries");
  if (!entries.ok()) return entries.status();
  header.tensors = *tensors;
  header.entries = *entries;
  // A tensor: name length, one byte of name, dims count, one dim, type, offset. An entry: key
  // length, type, one byte of value.
  absl::Status status = CheckCount(header.tensors, 33, kMostTensors, "the number of tensors");
  if (status.ok()) {
    status = CheckCount(header.entries, 13, kMostEntries, "the number of metadata entries");
  }
  if (!status.ok()) return status;
  return header;
}

template <typename Stored, typename Widened>
absl::StatusOr<GgufValue> GgufParser::ReadNumbers(uint64_t count, const std::string& key) {
  absl::Status status = CheckCount(count, sizeof(Stored), kMostItems, key + "'s length");
  if (!status.ok()) return status;
  auto array = std::make_unique<GgufArray>();
  std::vector<Widened>& items = array->items.emplace<std::vector<Widened>>();
  items.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    Stored value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(Stored));
    offset_ += sizeof(Stored);
    items.push_back(static_cast<Widened>(value));
  }
  return GgufValue(std::move(array));
}

absl::StatusOr<GgufValue> GgufParser::ReadStrings(uint64_t count, const std::string& key) {
  absl::Status status = CheckCount(count, sizeof(uint64_t), kMostItems, key + "'s length");
  if (!status.ok()) return status;
  auto array = std::make_unique<GgufArray>();
  std::vector<std::string>& items = array->items.emplace<std::vector<std::string>>();
  items.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    absl::StatusOr<std::string> text = ReadString(key, std::numeric_limits<uint32_t>::max());
    if (!text.ok()) return text.status();
    items.push_back(*std::move(text));
  }
  return GgufValue(std::move(array));
}

absl::StatusOr<GgufValue> GgufParser::ReadBools(uint64_t count, const std::string& key) {
  absl::Status status = CheckCount(count, 1, kMostItems, key + "'s length");
  if (!status.ok()) return status;
  auto array = std::make_unique<GgufArray>();
  std::vector<bool>& items = array->items.emplace<std::vector<bool>>();
  items.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const absl::StatusOr<bool> value = ReadBool(key);
    if (!value.ok()) return value.status();
    items.push_back(*value);
  }
  return GgufValue(std::move(array));
}

absl::StatusOr<GgufValue> GgufParser::ReadArray(const std::string& key) {
  const size_t at = offset_;
  const absl::StatusOr<uint32_t> type = Read<uint32_t>(key + "'s item type");
  if (!type.ok()) return type.status();
  const absl::StatusOr<uint64_t> count = Read<uint64_t>(key + "'s length");
  if (!count.ok()) return count.status();
  switch (*type) {
    case kU8:
      return ReadNumbers<uint8_t, uint64_t>(*count, key);
    case kI8:
      return ReadNumbers<int8_t, int64_t>(*count, key);
    case kU16:
      return ReadNumbers<uint16_t, uint64_t>(*count, key);
    case kI16:
      return ReadNumbers<int16_t, int64_t>(*count, key);
    case kU32:
      return ReadNumbers<uint32_t, uint64_t>(*count, key);
    case kI32:
      return ReadNumbers<int32_t, int64_t>(*count, key);
    case kU64:
      return ReadNumbers<uint64_t, uint64_t>(*count, key);
    case kI64:
      return ReadNumbers<int64_t, int64_t>(*count, key);
    case kF32:
      return ReadNumbers<float, double>(*count, key);
    case kF64:
      return ReadNumbers<double, double>(*count, key);
    case kBool:
      return ReadBools(*count, key);
    case kString:
      return ReadStrings(*count, key);
    case kArray:
      return Unsupported(at, key + "'s item type", "array",
                         "arrays of arrays are not read; convert the model without this entry");
    default:
      return Damaged(at, key + "'s item type", absl::StrFormat("%d", *type),
                     "the format has types 0 to 12");
  }
}

absl::StatusOr<GgufValue> GgufParser::ReadValue(uint32_t type, const std::string& key) {
  const auto widened = [](auto value, auto wide) -> absl::StatusOr<GgufValue> {
    if (!value.ok()) return value.status();
    return GgufValue(static_cast<decltype(wide)>(*value));
  };
  switch (type) {
    case kU8:
      return widened(Read<uint8_t>(key), uint64_t{});
    case kI8:
      return widened(Read<int8_t>(key), int64_t{});
    case kU16:
      return widened(Read<uint16_t>(key), uint64_t{});
    case kI16:
      return widened(Read<int16_t>(key), int64_t{});
    case kU32:
      return widened(Read<uint32_t>(key), uint64_t{});
    case kI32:
      return widened(Read<int32_t>(key), int64_t{});
    case kU64:
      return widened(Read<uint64_t>(key), uint64_t{});
    case kI64:
      return widened(Read<int64_t>(key), int64_t{});
    case kF32:
      return widened(Read<float>(key), double{});
    case kF64:
      return widened(Read<double>(key), double{});
    case kBool:
      return widened(ReadBool(key), bool{});
    case kString: {
      absl::StatusOr<std::string> text = ReadString(key, std::numeric_limits<uint32_t>::max());
      if (!text.ok()) return text.status();
      return GgufValue(*std::move(text));
    }
    case kArray:
      return ReadArray(key);
    default:
      return Damaged(offset_ - sizeof(uint32_t), key + "'s type", absl::StrFormat("%d", type),
                     "the format has types 0 to 12");
  }
}

absl::Status GgufParser::ReadEntry(uint64_t index) {
  const size_t at = offset_;
  absl::StatusOr<std::string> key =
      ReadString(absl::StrFormat("metadata key %d", index), kLongestKey);
  if (!key.ok()) return key.status();
  const std::string shown = absl::StrFormat("metadata \"%s\"", Printable(*key));
  const absl::StatusOr<uint32_t> type = Read<uint32_t>(shown + "'s type");
  if (!type.ok()) return type.status();
  absl::StatusOr<GgufValue> value = ReadValue(*type, shown);
  if (!value.ok()) return value.status();
  if (!file_.metadata_.emplace(*std::move(key), *std::move(value)).second) {
    return Damaged(at, shown, "there twice", "keys are unique");
  }
  return absl::OkStatus();
}

absl::Status GgufParser::ReadTensorInfo(uint64_t index) {
  const size_t at = offset_;
  GgufTensor tensor;
  absl::StatusOr<std::string> name =
      ReadString(absl::StrFormat("the name of tensor %d", index), kLongestTensorName);
  if (!name.ok()) return name.status();
  const std::string shown = absl::StrFormat("tensor \"%s\"", Printable(*name));
  if (name->empty()) {
    return Damaged(at, absl::StrFormat("the name of tensor %d", index), "empty",
                   "tensors are found by name");
  }
  const size_t dims_at = offset_;
  const absl::StatusOr<uint32_t> num_dims = Read<uint32_t>(shown + "'s number of dimensions");
  if (!num_dims.ok()) return num_dims.status();
  if (*num_dims < 1 || *num_dims > kMaxDims) {
    return Damaged(dims_at, shown + "'s number of dimensions", absl::StrFormat("%d", *num_dims),
                   "the format allows 1 to 4");
  }
  // Values are bounded by what could fit in the file at the densest format, 2 bits a value or so:
  // 8 values a byte leaves room and keeps every later product inside 64 bits.
  const uint64_t most_values = 8 * static_cast<uint64_t>(bytes_.size());
  uint64_t values = 1;
  for (uint32_t d = 0; d < *num_dims; ++d) {
    const size_t dim_at = offset_;
    const absl::StatusOr<uint64_t> dim = Read<uint64_t>(shown + "'s dimension");
    if (!dim.ok()) return dim.status();
    if (*dim == 0 || !Multiply(values, *dim, most_values, &values)) {
      return Damaged(dim_at, absl::StrFormat("%s's dimension %d", shown, d),
                     absl::StrFormat("%d", *dim), "it is zero or more than the file can hold");
    }
    tensor.dims.push_back(static_cast<int64_t>(*dim));
  }
  const size_t type_at = offset_;
  const absl::StatusOr<uint32_t> type = Read<uint32_t>(shown + "'s type");
  if (!type.ok()) return type.status();
  const auto* known = std::find_if(std::begin(kTensorTypes), std::end(kTensorTypes),
                                   [&](const TensorType& entry) { return entry.id == *type; });
  if (known == std::end(kTensorTypes)) {
    for (const KnownType& unread : kUnreadTypes) {
      if (unread.id != *type) continue;
      return Unsupported(type_at, shown + "'s type", unread.name,
                         "hexad does not read this format; take a Q4_K_M, Q8_0 or F16 file");
    }
    return Unsupported(type_at, shown + "'s type", absl::StrFormat("%d", *type),
                       "no format has this id; take a Q4_K_M, Q8_0 or F16 file");
  }
  tensor.type = known->type;
  const DTypeInfo& info = Info(tensor.type);
  if (tensor.dims[0] % info.block_values != 0) {
    return Damaged(dims_at, shown + "'s first dimension", absl::StrFormat("%d", tensor.dims[0]),
                   absl::StrFormat("%s needs a multiple of %d", info.name, info.block_values));
  }
  const absl::StatusOr<uint64_t> data_offset = Read<uint64_t>(shown + "'s offset");
  if (!data_offset.ok()) return data_offset.status();
  if (!file_.tensor_index_.emplace(*name, file_.tensors_.size()).second) {
    return Damaged(at, shown, "there twice", "tensor names are unique");
  }
  tensor.name = *std::move(name);
  tensor_offsets_.push_back(*data_offset);
  tensor_info_positions_.push_back(at);
  file_.tensors_.push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> GgufParser::Alignment() const {
  const auto entry = file_.metadata_.find("general.alignment");
  if (entry == file_.metadata_.end()) return kDefaultAlignment;
  const uint64_t* value = std::get_if<uint64_t>(&entry->second);
  if (value == nullptr || !std::has_single_bit(*value) || *value < 8 || *value > (1u << 20)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: general.alignment is %s: it must be an unsigned power of two, 8 to 1 MiB; %s",
        file_.path_, value == nullptr ? "no unsigned number" : absl::StrFormat("%d", *value),
        kDamagedRemedy));
  }
  return *value;
}

absl::Status GgufParser::PlaceTensors() {
  const absl::StatusOr<uint64_t> alignment = Alignment();
  if (!alignment.ok()) return alignment.status();
  const size_t padding = (*alignment - offset_ % *alignment) % *alignment;
  const size_t start = std::min(offset_ + padding, bytes_.size());
  const uint64_t section_bytes = bytes_.size() - start;
  for (size_t i = 0; i < file_.tensors_.size(); ++i) {
    GgufTensor& tensor = file_.tensors_[i];
    const std::string shown = absl::StrFormat("tensor \"%s\"", Printable(tensor.name));
    const DTypeInfo& info = Info(tensor.type);
    uint64_t values = 1;
    for (const int64_t dim : tensor.dims) values *= static_cast<uint64_t>(dim);
    const uint64_t tensor_bytes = values / info.block_values * info.block_bytes;
    const uint64_t offset = tensor_offsets_[i];
    if (offset % *alignment != 0) {
      return Damaged(tensor_info_positions_[i], shown + "'s offset", absl::StrFormat("%d", offset),
                     absl::StrFormat("the file's alignment is %d", *alignment));
    }
    if (offset > section_bytes || tensor_bytes > section_bytes - offset) {
      return Damaged(tensor_info_positions_[i], shown,
                     absl::StrFormat("%d bytes at offset %d of the data", tensor_bytes, offset),
                     absl::StrFormat("the file holds %d bytes of data", section_bytes));
    }
    tensor.data = bytes_.subspan(start + offset, tensor_bytes);
  }
  return CheckNoOverlap();
}

absl::Status GgufParser::CheckNoOverlap() const {
  std::vector<size_t> order(file_.tensors_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return tensor_offsets_[a] < tensor_offsets_[b]; });
  for (size_t i = 1; i < order.size(); ++i) {
    const GgufTensor& before = file_.tensors_[order[i - 1]];
    const uint64_t end = tensor_offsets_[order[i - 1]] + before.data.size();
    if (tensor_offsets_[order[i]] < end) {
      return Damaged(
          tensor_info_positions_[order[i]],
          absl::StrFormat("tensor \"%s\"'s offset", Printable(file_.tensors_[order[i]].name)),
          absl::StrFormat("%d", tensor_offsets_[order[i]]),
          absl::StrFormat("tensor \"%s\" ends at %d", Printable(before.name), end));
    }
  }
  return absl::OkStatus();
}

absl::Status GgufParser::Parse() {
  const absl::StatusOr<Header> header = ReadHeader();
  if (!header.ok()) return header.status();
  file_.metadata_.reserve(header->entries);
  for (uint64_t i = 0; i < header->entries; ++i) {
    const absl::Status status = ReadEntry(i);
    if (!status.ok()) return status;
  }
  file_.tensors_.reserve(header->tensors);
  for (uint64_t i = 0; i < header->tensors; ++i) {
    const absl::Status status = ReadTensorInfo(i);
    if (!status.ok()) return status;
  }
  file_.header_ = bytes_.first(offset_);
  return PlaceTensors();
}

}  // namespace hexad
