// benchmarks/allocations.h -- how often this process has asked malloc for memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

uint64_t dibs_allocations(void);

#ifdef __cplusplus
}
#endif
