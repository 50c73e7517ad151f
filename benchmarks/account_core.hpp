// benchmarks/account_core.hpp -- the core alone with a pool ordered by account.
//
// A hundred accounts of five classes, eight wishes for labels; from the command to the grant, turn
// by turn with commit. Slots are reported workers with labels, so that a grant needs nobody's
// confirmation. Either there are slots to spare, and each claim is granted at once; or all are
// leased and claims wait, and each release grants the first of them while a new one comes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "benchmarks/contender.hpp"
#include "broker/core/core.hpp"

namespace dibs::bench {

struct AccountSetup {
    uint32_t accounts = 100;
    uint32_t slots = 1000;
    uint32_t waiting = 0;  // 0: slots to spare
    uint32_t batch = 64;   // commands of a kind in a turn
};

class AccountCore {
  public:
    explicit AccountCore(const AccountSetup& setup);

    void claim(uint32_t count);     // each is granted at once
    void release();                 // all that is held
    void exchange(uint32_t count);  // release one, claim one, the first that waits is granted
    void advance(uint32_t turns);   // turns in which only time passes
    [[nodiscard]] uint64_t state_bytes() const { return storage_.size() * sizeof(Line); }
    // Of the lists that are kept here and not in the core.
    [[nodiscard]] uint64_t bench_bytes() const { return free_.capacity() * sizeof(Place); }

  private:
    struct alignas(64) Line {
        std::byte bytes[64];
    };
    struct Lease {
        uint32_t session;
        uint16_t tag;
        uint64_t id;
        uint64_t fence;
    };
    struct Place {
        uint32_t session;
        uint16_t tag;
    };

    void open_pool();
    void open_accounts();
    void open_sessions();
    void report_workers();
    void claim_one();
    void release_one();
    void follow();
    template <class Commands>
    void turn(const Commands& commands);

    AccountSetup setup_;
    std::vector<Line> storage_;
    std::unique_ptr<core::Core> core_;
    uint32_t pool_ = 0;
    core::TimeNs now_ = 1;
    uint64_t claims_ = 0;
    std::vector<std::string> names_;
    std::vector<Place> free_;
    std::deque<Lease> leases_;
};

// Nanoseconds per claim, per release or per exchange, in bulks of 256; per turn of passing time.
class AccountClaim final : public Contender {
  public:
    enum class Part { kClaim, kExchange, kAdvance };
    AccountClaim(const AccountSetup& setup, Part part) : core_(setup), part_(part) {}
    void measure(uint32_t operations, Samples& out) override;

  private:
    AccountCore core_;
    Part part_;
};

// One step of a walk through memory that no cache holds.
class MissFloor final : public Contender {
  public:
    MissFloor();
    void measure(uint32_t operations, Samples& out) override;

  private:
    std::vector<uint32_t> next_;
    uint32_t at_ = 0;
};

}  // namespace dibs::bench
