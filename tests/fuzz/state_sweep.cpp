// tests/fuzz/state_sweep.cpp -- each byte of a STATE's rows changed by itself, to values that are
// near it or mean something: what is served from afterwards stays sound (tests/fuzz/state.cpp).
//
//   state_sweep        TAP, a line for each base: one change of kPart, with DIBS_LONG all of them
//
// Fuzzing finds what needs several changes; of single ones it left some untried after 10^7
// executions. The last line of a run that dies names the change it died of, in the form of an
// input of fuzz_state.
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "shm/layout.hpp"
#include "tests/fuzz/bases.hpp"
#include "tests/fuzz/bytes.hpp"

namespace {

namespace shm = dibs::shm;

constexpr uint32_t kRows = 48;       // of each table: all that the bases have room for
constexpr uint32_t kLogRows = 4;     // where only the first are looked at
constexpr uint32_t kRowBytes = 256;  // of each row: an input of fuzz_state names no others
constexpr uint64_t kPart = 61;

// base, table, row, place, one byte, its value
using Change = std::array<uint8_t, 6>;

Change running = {};

void name_it(int signal) {
    char text[] = "# died of 000000000000\n";
    for (size_t i = 0; i < running.size(); ++i) {
        text[10 + 2 * i] = "0123456789abcdef"[running[i] / 16];
        text[11 + 2 * i] = "0123456789abcdef"[running[i] % 16];
    }
    (void)!write(STDOUT_FILENO, text, sizeof text - 1);
    ::signal(signal, SIG_DFL);
    raise(signal);
}

std::set<uint8_t> values_beside(uint8_t is) {
    std::set<uint8_t> values = {0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 254, 255};
    for (unsigned bit = 0; bit < 8; ++bit)
        values.insert(static_cast<uint8_t>(is ^ (1U << bit)));
    values.insert(static_cast<uint8_t>(is + 1));
    values.insert(static_cast<uint8_t>(is - 1));
    values.erase(is);
    return values;
}

class Sweep {
  public:
    Sweep(uint8_t base, uint64_t part)
        : base_(base), part_(part), left_(dibs::fuzz::make_base(base, true)) {}

    uint64_t play() {
        const auto* head = reinterpret_cast<const shm::StateHead*>(left_.bytes().data());
        constexpr auto kLog = static_cast<uint8_t>(shm::Table::kLogOffsets);
        for (uint8_t table = 0; table < static_cast<uint8_t>(shm::Table::kCount); ++table) {
            const shm::TablePlace& place = head->table[table];
            const uint32_t rows = std::min(place.rows, table < kLog ? kRows : kLogRows);
            for (uint32_t row = 0; row < rows; ++row)
                play_row(table, row, place);
        }
        return played_;
    }

  private:
    void play_row(uint8_t table, uint32_t row, const shm::TablePlace& place) {
        const std::byte* bytes = left_.bytes().data() + place.offset + row * place.row_size;
        for (uint32_t at = 0; at < std::min(place.row_size, kRowBytes); ++at) {
            for (const uint8_t value : values_beside(static_cast<uint8_t>(bytes[at]))) {
                if (next_++ % part_ != 0) continue;
                running = {
                    base_, table, static_cast<uint8_t>(row), static_cast<uint8_t>(at), 1, value};
                LLVMFuzzerTestOneInput(running.data(), running.size());
                ++played_;
            }
        }
    }

    const uint8_t base_;
    const uint64_t part_;
    const shm::Lines left_;
    uint64_t next_ = 0;
    uint64_t played_ = 0;
};

}  // namespace

int main() {
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
        ::signal(signal, name_it);
    const uint64_t part = std::getenv("DIBS_LONG") != nullptr ? 1 : kPart;
    std::printf("1..%zu\n", dibs::fuzz::kBases);
    for (size_t base = 0; base < dibs::fuzz::kBases; ++base) {
        dibs::fuzz::understood = 0;
        const uint64_t played = Sweep(static_cast<uint8_t>(base), part).play();
        const bool some = dibs::fuzz::understood != 0 && dibs::fuzz::understood != played;
        std::printf("%s %zu - base %zu: %llu changes, %llu of them are served from\n",
                    some ? "ok" : "not ok",
                    base + 1,
                    base,
                    static_cast<unsigned long long>(played),
                    static_cast<unsigned long long>(dibs::fuzz::understood));
        std::fflush(stdout);
    }
    return 0;
}
