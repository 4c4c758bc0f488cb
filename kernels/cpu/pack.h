#pragma once

#include <cstdint>

#include "kernels/cpu/packed_layout.h"
#include "kernels/matmul.h"
#include "kernels/types.h"

namespace hexad::cpu {

// activations: kInt8 for quantised types only.
PackedFormat FormatOf(DType type, Activations activations = Activations::kF32);
PackedFormat QuadFormatOf(DType type);  // FormatOf for kInt8
int64_t PanelBytes(const PackedFormat& format, int64_t in);
PanelLayout LayoutOf(const PackedFormat& format, int64_t in);  // of kF32 to kU4
ChunkLayout ChunkLayoutOf(const PackedFormat& format);         // of kQuad*

// Writes one panel, which is zeroed; rows: its first row in the file, of `count` <= kPanelRows.
void PackPanel(DType type, const PackedFormat& format, const uint8_t* rows, int count, int64_t in,
               uint8_t* panel);
void PackQuadPanel(DType type, const PackedFormat& format, const uint8_t* rows, int count,
                   int64_t in, uint8_t* panel);  // PackPanel of kQuad*

}  // namespace hexad::cpu
