// broker/core/attach.cpp -- a takeover's way to a core: rows that nobody has looked at yet.
//
// Whether they are sound, what is derived from them and whether all invariants hold are three
// looks at every row, and STATE is larger than any cache: so some rows of each table have all
// three before the next ones come. Each look asks nothing of rows behind the ones at hand that the
// look before it has not made sure of.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/check.hpp"
#include "broker/core/rebuild.hpp"
#include "broker/core/soundness.hpp"

namespace dibs::core {

namespace {

class Attachment {
  public:
    Attachment(Core::Parts& parts, uint32_t rows_at_once)
        : state_(parts.state),
          soundness_(parts.state),
          rebuild_(parts),
          check_(parts),
          rows_at_once_(rows_at_once) {}

    // What is unsound; then nothing may be asked of the parts.
    std::string rows() {
        std::string unsound = soundness_.tables();
        if (!unsound.empty()) return unsound;
        rebuild_.claims();
        check_.begin({.free_claims = soundness_.free_claims_sound(), .lease_chains = true});
        for (uint32_t row = 0; row < check_.rows() && unsound.empty(); row += rows_at_once_)
            unsound = some(row, row + rows_at_once_);
        return unsound.empty() ? soundness_.lists() : unsound;
    }

    Wrongs wrong() {
        rebuild_.finish();
        return check_.finish();
    }

  private:
    std::string some(uint32_t begin, uint32_t end) {
        const uint32_t slots = state_.slots.size();
        const uint32_t leases = state_.leases.size();
        std::string unsound = soundness_.slots(std::min(begin, slots), std::min(end, slots));
        if (unsound.empty()) {
            unsound = soundness_.leases(std::min(begin, leases), std::min(end, leases));
        }
        if (!unsound.empty()) return unsound;
        rebuild_.slots(std::min(begin, slots), std::min(end, slots));
        rebuild_.leases(std::min(begin, leases), std::min(end, leases));
        check_.slots_and_leases(begin, end);
        return {};
    }

    const State& state_;
    Soundness soundness_;
    Rebuild rebuild_;
    Check check_;
    const uint32_t rows_at_once_;
};

}  // namespace

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
                                   uint32_t rows_at_once) {
    State state{bytes};
    refusal->unsound = Soundness(state).log();
    if (!refusal->unsound.empty()) return nullptr;
    std::unique_ptr<Core> core(new Core(std::make_unique<Parts>(bytes, hash_seed)));
    Attachment attachment(*core->parts_, rows_at_once);
    refusal->unsound = attachment.rows();
    if (!refusal->unsound.empty()) return nullptr;
    refusal->wrong = attachment.wrong();
    if (!refusal->wrong.empty()) return nullptr;
    core->parts_->keep_owed_pledge();
    return core;
}

}  // namespace dibs::core
