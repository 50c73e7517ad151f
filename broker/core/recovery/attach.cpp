// broker/core/recovery/attach.cpp -- makes a core from a predecessor's rows and validates them.
//
// Each row gets three looks: whether it is sound, whether all invariants hold, and what is derived
// from it. STATE is larger than any cache, so some rows of each table have all three looks before
// the next rows come. A look relies on no row behind the ones at hand unless the look before it has
// validated that row. Another thread may make the first two looks, ahead of the third.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "broker/core/recovery/invariants.hpp"
#include "broker/core/recovery/rebuild.hpp"
#include "broker/core/recovery/soundness.hpp"

namespace dibs::core {

namespace {

// By the thread that attaches itself.
class RowsNow : public RowsAhead {
  public:
    explicit RowsNow(const State& state) : look_(state) {}

    void begin() override {}
    std::string until(uint32_t end) override { return look_.piece(std::exchange(seen_, end), end); }
    RowCounts counts() override { return std::move(look_.counts()); }

  private:
    RowLook look_;
    uint32_t seen_ = 0;
};

class Attachment {
  public:
    Attachment(Core::Parts& parts, uint32_t rows_at_once, RowsAhead& ahead)
        : parts_(parts),
          state_(parts.state),
          soundness_(parts.state),
          rebuild_(parts),
          invariants_(parts),
          rows_at_once_(rows_at_once),
          ahead_(ahead) {}

    // What is unsound; then nothing may be asked of the parts.
    std::string rows() {
        std::string unsound = soundness_.tables();
        if (!unsound.empty()) return unsound;
        rebuild_.claims();
        const uint32_t rows = std::max(state_.slots.size(), state_.leases.size());
        for (uint32_t row = 0; row < rows && unsound.empty(); row += rows_at_once_)
            unsound = some(row, row + rows_at_once_);
        return unsound.empty() ? soundness_.lists() : unsound;
    }

    Wrongs wrong() {
        rebuild_.finish();
        Wrongs wrongs = invariants_.check(ahead_.counts(), soundness_.free_claims_sound());
        if (wrongs.empty()) parts_.check_gangs(&wrongs);
        return wrongs;
    }

  private:
    std::string some(uint32_t begin, uint32_t end) {
        std::string unsound = ahead_.until(end);
        if (!unsound.empty()) return unsound;
        const uint32_t slots = state_.slots.size();
        const uint32_t leases = state_.leases.size();
        rebuild_.slots(std::min(begin, slots), std::min(end, slots));
        rebuild_.leases(std::min(begin, leases), std::min(end, leases));
        invariants_.leases(std::min(begin, leases), std::min(end, leases));
        return {};
    }

    const Core::Parts& parts_;
    const State& state_;
    Soundness soundness_;
    Rebuild rebuild_;
    Invariants invariants_;
    const uint32_t rows_at_once_;
    RowsAhead& ahead_;
};

}  // namespace

std::unique_ptr<Core> Core::attach(std::span<std::byte> bytes,
                                   uint64_t hash_seed,
                                   Refusal* refusal,
                                   uint32_t rows_at_once,
                                   RowsAhead* ahead) {
    State state{bytes};
    refusal->unsound = Soundness::log(state);
    if (refusal->unsound.empty()) refusal->unsound = Soundness(state).counters();
    if (!refusal->unsound.empty()) return nullptr;
    std::optional<RowsNow> now;
    RowsAhead& rows = ahead != nullptr ? *ahead : now.emplace(state);
    rows.begin();
    std::unique_ptr<Core> core(new Core(std::make_unique<Parts>(bytes, hash_seed)));
    Attachment attachment(*core->parts_, rows_at_once, rows);
    refusal->unsound = attachment.rows();
    if (!refusal->unsound.empty()) return nullptr;
    refusal->wrong = attachment.wrong();
    if (!refusal->wrong.empty()) return nullptr;
    core->parts_->keep_owed_pledge();
    return core;
}

}  // namespace dibs::core
