#pragma once

// The values of IQ4_NL's 16 indices (llama.cpp, ggml-common.h: kvalues_iq4nl).
//
// Included by code that is compiled for newer CPUs: no inline functions, no library headers.

#include <stdint.h>

namespace hexad {

constexpr int8_t kIq4Codebook[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace hexad
