#pragma once

// The kernel set of any CPU: plain loops, for machines below AVX2 and as a second opinion in tests.

#include "kernels/cpu/kernel_set.h"

namespace hexad::cpu {

void PortableFloatPanels(const FloatPanelsTask& task);
void PortablePanel(const PanelTask& task);
void PortablePrepare(const PrepareTask& task);
void PortableInt8Panels(const Int8PanelTask& task);
void PortableQuantize(const QuantizeTask& task);

}  // namespace hexad::cpu
