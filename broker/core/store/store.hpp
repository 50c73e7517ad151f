// broker/core/store/store.hpp -- put():
// the only way in which the core stores into STATE.
//
// In the crash-test build (DIBS_STORE_HOOK) a hook runs after every store, so that a test can copy
// the memory image that a death at that point would leave behind.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace dibs::core {

#ifdef DIBS_STORE_HOOK
inline constexpr bool kStoreHook = true;
#else
inline constexpr bool kStoreHook = false;
#endif

// Set by the crash test alone; null = no hook.
inline void (*store_hook)() = nullptr;

inline void stored() {
    if constexpr (kStoreHook) {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (store_hook != nullptr) store_hook();
    }
}

template <class T, class V>
inline void put(T& place, V value) {
    place = static_cast<T>(value);
    stored();
}

}  // namespace dibs::core
