// tests/process/storm_page.hpp -- the witness of a storm of deaths: a page that all processes share
// and that no broker knows.
//
// Whoever is granted a slot writes its own number into the slot's cell, and takes it out before it
// gives the slot back. A cell that is not empty then belongs to somebody who has died with it, or
// the slot has been granted twice.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <string>

namespace dibs::test {

struct StormPage {
    static constexpr uint32_t kSlots = 4;

    std::atomic<uint32_t> holder[kSlots];      // pid
    std::atomic<uint64_t> last_fence[kSlots];  // of the grants so far
    std::atomic<uint64_t> grants;
    std::atomic<uint64_t> assignments;
    std::atomic<uint32_t> stop;
    std::atomic<uint32_t> doubled;    // granted while another holds it
    std::atomic<uint32_t> backwards;  // a fence that did not grow
    std::atomic<uint32_t> wrong;      // an answer that cannot be

    static StormPage* make() {
        void* page = mmap(
            nullptr, sizeof(StormPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        return page == MAP_FAILED ? nullptr : static_cast<StormPage*>(page);
    }

    static bool runs(uint32_t pid) {
        std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
        std::string text;
        std::getline(stat, text);
        const size_t name_end = text.rfind(')');
        return name_end != std::string::npos && text[name_end + 2] != 'Z' &&
               text[name_end + 2] != 'X';
    }

    void take(uint32_t slot, uint64_t fence) {
        const auto own = static_cast<uint32_t>(getpid());
        const uint32_t before = holder[slot].exchange(own);
        if (before != 0 && (before == own || runs(before))) doubled.fetch_add(1);
        if (last_fence[slot].exchange(fence) >= fence) backwards.fetch_add(1);
    }
    void give_back(uint32_t slot) {
        auto own = static_cast<uint32_t>(getpid());
        if (!holder[slot].compare_exchange_strong(own, 0)) doubled.fetch_add(1);
    }
};

}  // namespace dibs::test
