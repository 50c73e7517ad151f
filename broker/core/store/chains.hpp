// broker/core/store/chains.hpp -- keeps derived lists of rows beside STATE.
//
// They hold waiting claims of a pool by number, live leases of a pool by age, and slots of a
// session: one node per row in two arrays; a row stands in at most one list of its family.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shm/layout.hpp"

namespace dibs::core {

class Chains {
  public:
    Chains(uint32_t lists, uint32_t rows) : ends_(lists), links_(rows) {}

    [[nodiscard]] uint32_t head(uint32_t list) const { return ends_[list].head; }
    [[nodiscard]] uint32_t tail(uint32_t list) const { return ends_[list].tail; }
    [[nodiscard]] uint32_t next(uint32_t row) const { return links_[row].next; }
    [[nodiscard]] uint32_t previous(uint32_t row) const { return links_[row].previous; }

    void push_back(uint32_t list, uint32_t row) { insert_before(list, row, shm::kNoRow); }

    // Before `at`; at the end if that is kNoRow.
    void insert_before(uint32_t list, uint32_t row, uint32_t at) {
        Ends& ends = ends_[list];
        const uint32_t previous = at == shm::kNoRow ? ends.tail : links_[at].previous;
        links_[row] = {at, previous};
        (previous == shm::kNoRow ? ends.head : links_[previous].next) = row;
        (at == shm::kNoRow ? ends.tail : links_[at].previous) = row;
    }

    void remove(uint32_t list, uint32_t row) {
        Ends& ends = ends_[list];
        const Link link = links_[row];
        (link.previous == shm::kNoRow ? ends.head : links_[link.previous].next) = link.next;
        (link.next == shm::kNoRow ? ends.tail : links_[link.next].previous) = link.previous;
    }

  private:
    struct Ends {
        uint32_t head = shm::kNoRow;
        uint32_t tail = shm::kNoRow;
    };
    struct Link {
        uint32_t next = shm::kNoRow;
        uint32_t previous = shm::kNoRow;
    };
    std::vector<Ends> ends_;
    std::vector<Link> links_;
};

}  // namespace dibs::core
