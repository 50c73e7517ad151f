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

#include "broker/core/recovery/check.hpp"
#include "broker/core/recovery/rebuild.hpp"
#include "broker/core/recovery/row_look.hpp"
#include "broker/core/recovery/soundness.hpp"

namespace dibs::core {

namespace {

// Of both tables; what is unsound.
std::string sound_rows(const Soundness& soundness,
                       const State& state,
                       uint32_t begin,
                       uint32_t end) {
    const uint32_t slots = state.slots.size();
    const uint32_t leases = state.leases.size();
    std::string unsound = soundness.slots(std::min(begin, slots), std::min(end, slots));
    if (!unsound.empty()) return unsound;
    return soundness.leases(std::min(begin, leases), std::min(end, leases));
}

// By the thread that attaches itself.
class RowsNow : public RowsAhead {
  public:
    explicit RowsNow(State& state) : look_(state) {}

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
        : state_(parts.state),
          soundness_(parts.state),
          rebuild_(parts),
          check_(parts),
          rows_at_once_(rows_at_once),
          ahead_(ahead) {}

    // What is unsound; then nothing may be asked of the parts.
    std::string rows() {
        std::string unsound = soundness_.tables();
        if (!unsound.empty()) return unsound;
        rebuild_.claims();
        check_.begin({.free_claims = soundness_.free_claims_sound()});
        const uint32_t rows = std::max(state_.slots.size(), state_.leases.size());
        for (uint32_t row = 0; row < rows && unsound.empty(); row += rows_at_once_)
            unsound = some(row, row + rows_at_once_);
        return unsound.empty() ? soundness_.lists() : unsound;
    }

    Wrongs wrong() {
        rebuild_.finish();
        return check_.finish(ahead_.counts());
    }

  private:
    std::string some(uint32_t begin, uint32_t end) {
        std::string unsound = ahead_.until(end);
        if (!unsound.empty()) return unsound;
        const uint32_t slots = state_.slots.size();
        const uint32_t leases = state_.leases.size();
        rebuild_.slots(std::min(begin, slots), std::min(end, slots));
        rebuild_.leases(std::min(begin, leases), std::min(end, leases));
        check_.tags(std::min(begin, leases), std::min(end, leases));
        return {};
    }

    const State& state_;
    Soundness soundness_;
    Rebuild rebuild_;
    Check check_;
    const uint32_t rows_at_once_;
    RowsAhead& ahead_;
};

}  // namespace

RowLook::RowLook(State& state)
    : state_(state),
      soundness_(state),
      check_(state, state.counters->time_ns, RowCheck::Chains::kSeen) {}

std::string RowLook::piece(uint32_t begin, uint32_t end) {
    std::string unsound = sound_rows(soundness_, state_, begin, end);
    if (unsound.empty()) check_.piece(begin, end);
    return unsound;
}

// The first of the three looks alone, as many rows at a time: each asks memory for the next ones.
std::string rows_refusal(std::span<std::byte> bytes) {
    State state{bytes};
    Soundness soundness(state);
    std::string found = soundness.log();
    if (found.empty()) found = soundness.tables();
    const auto in_pieces = [&](uint32_t rows, const auto& look) {
        for (uint32_t row = 0; row < rows && found.empty(); row += Core::kRowsAtOnce)
            found = look(row, std::min(row + Core::kRowsAtOnce, rows));
    };
    in_pieces(state.slots.size(), [&](auto... piece) { return soundness.slots(piece...); });
    in_pieces(state.leases.size(), [&](auto... piece) { return soundness.leases(piece...); });
    if (found.empty()) found = soundness.lists();
    return found;
}

std::unique_ptr<Core> Core::attach(std::span<std::byte> bytes,
                                   uint64_t hash_seed,
                                   Refusal* refusal,
                                   uint32_t rows_at_once,
                                   RowsAhead* ahead) {
    State state{bytes};
    Soundness soundness(state);
    refusal->unsound = soundness.log();
    if (refusal->unsound.empty()) refusal->unsound = soundness.counters();
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
