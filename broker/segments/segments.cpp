// broker/segments/segments.cpp -- makes or takes over STATE and BOARD, and maps them.
// SPDX-License-Identifier: Apache-2.0
#include "broker/segments/segments.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "broker/takeover/row_pieces.hpp"
#include "broker/text/log.hpp"
#include "shm/memfd.hpp"

namespace dibs {

namespace {

const char* const kNotServedFrom = "the STATE that was handed over cannot be served from: ";

}  // namespace

StateSegment::StateSegment(shm::Descriptor fd, const core::Limits& limits) : fd_(std::move(fd)) {
    const uint64_t size = core::state_size(limits);
    if (!fd_.valid() || shm::size_of(fd_.get()) == 0) {
        if (fd_.valid()) {
            shm::size_and_seal(fd_.get(), size, shm::Pages::kLarge);
        } else {
            fd_ = shm::make_memfd("dibs-state", size, shm::Pages::kLarge);
        }
        mapping_ = Mapping(fd_.get(), size);
        core::format_state(mapping_.bytes(), limits);
        made_ = true;
        return;
    }
    mapping_ = Mapping(fd_.get(), shm::size_of(fd_.get()));
    const std::string why = core::state_refusal(mapping_.bytes());
    if (!why.empty()) throw StateFailure(kNotServedFrom + why);
}

std::unique_ptr<core::Core> StateSegment::attach(uint64_t hash_seed) const {
    if (made_) {
        return std::make_unique<core::Core>(mapping_.bytes(), hash_seed);
    }
    core::Core::Refusal refusal;
    RowPieces pieces(mapping_.bytes());
    std::unique_ptr<core::Core> core =
        core::Core::attach(mapping_.bytes(), hash_seed, &refusal, core::Core::kRowsAtOnce, &pieces);
    if (core != nullptr) return core;
    if (!refusal.unsound.empty()) throw StateFailure(kNotServedFrom + refusal.unsound);
    for (const std::string& wrong : refusal.wrong)
        log::error("STATE: " + wrong);
    throw StateFailure(
        "STATE fails " + std::to_string(refusal.wrong.size()) +
        " of its checks and is not served from; the first: " + refusal.wrong.front());
}

BoardSegment::BoardSegment(uint32_t pools_max, uint32_t accounts_max, shm::Descriptor inherited)
    : pools_max_(pools_max),
      accounts_max_(accounts_max),
      plan_(shm::plan_board(pools_max, accounts_max)),
      fd_(std::move(inherited)) {
    if (!fd_.valid() || shm::size_of(fd_.get()) != plan_.size) {
        fd_ = shm::make_memfd("dibs-board", plan_.size);
    }
    mapping_ = Mapping(fd_.get(), plan_.size);
    read_only_ = shm::reopen_read_only(fd_.get());
    shm::BoardHead& board = head();
    board.magic = shm::kBoardMagic;
    board.pools_max = pools_max;
    board.size = plan_.size;
    // Last: a reader that sees the version sees the rest.
    board.version.store(shm::kLayoutVersion, std::memory_order_release);
}

}  // namespace dibs
