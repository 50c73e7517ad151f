// broker/core/recovery/book_check.hpp -- recounts the lists and counts of the account book.
//
// account_check.cpp has counted the rows before and found them to agree, so every reference from
// row to row may be followed here. book_check.cpp looks at slots and leases and their lists,
// book_check_claims.cpp at claims and accounts, and at when they are to be looked at again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "broker/core/recovery/check.hpp"

namespace dibs::core {

class BookCheck {
  public:
    explicit BookCheck(const Core::Parts& parts)
        : parts_(parts), state_(parts.state), book_(*parts.book) {}

    // Where no pool is ordered by account there is nothing in the lists.
    Wrongs run(bool has_pools) {
        accounts();
        if (!has_pools) return wrongs_;
        count_slots();
        count_leases();
        stalls();
        tenants();
        watches();
        assignments();
        crowds();
        label_units();
        crossing();
        return wrongs_;
    }

  private:
    struct OfStall {
        uint32_t slots = 0;
        uint32_t idle = 0;
        uint32_t leased = 0;
        std::array<uint32_t, kClassesAndFree> candidates{};
    };
    struct OfTenant {
        std::array<uint32_t, kClassesAndFree> units{};
        std::array<uint32_t, kClassesAndFree> leases{};
    };

    template <class What>
    void expect(bool holds, const What& what) {
        core::expect(&wrongs_, holds, what);
    }

    // book_check.cpp
    void count_slots();
    void count_leases();
    void stalls();
    void stall_lists(uint32_t stall);
    void stall_bits(uint32_t pool);
    void tenants();
    void tenant_leases(uint32_t tenant);
    void watches();
    void watched(const Tenant& tenant, const std::string& who);
    void reported_worker(uint32_t slot, bool is_there);
    void assignments();
    [[nodiscard]] bool is_listed(uint32_t lease) const;

    // book_check_claims.cpp
    void crowds();
    void crowd(uint32_t place);
    void stalls_of_crowd(const Crowd& crowd, const std::string& who);
    void accounts();
    void account(uint32_t row);
    void limits_of(uint32_t row, const std::string& who);
    void label_units();
    void crossing();

    const Core::Parts& parts_;
    const State& state_;
    AccountBook& book_;  // its queries change what it caches
    Wrongs wrongs_;
    std::vector<OfStall> of_stall_;
    std::vector<OfTenant> of_tenant_;
    std::vector<uint32_t> assigned_;  // by pool: slots whose workers have not confirmed
};

}  // namespace dibs::core
