#pragma once

#include <cstdint>

#include "kernels/cpu/packed_layout.h"
#include "kernels/types.h"

namespace hexad::cpu {

PackedFormat FormatOf(DType type);
PanelLayout LayoutOf(const PackedFormat& format, int64_t in);

// Writes one panel, which is zeroed; rows: its first row in the file, of `count` <= kPanelRows.
void PackPanel(DType type, const uint8_t* rows, int count, int64_t in, uint8_t* panel);

}  // namespace hexad::cpu
