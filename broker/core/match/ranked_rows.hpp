// broker/core/match/ranked_rows.hpp -- keeps ordered sets of rows in which each row's rank is
// known.
//
// As store/ordered_rows.hpp, a treap over one array of nodes, and each node counts what is below
// it: "how many stand before this row" is one way down. A row stands in at most one set.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "shm/layout.hpp"

namespace dibs::core {

class RankedRows {
  public:
    RankedRows(uint32_t sets, uint32_t rows) : roots_(sets, shm::kNoRow), nodes_(rows) {}

    // `less(a, b)` orders rows and is the same in every call for one set.
    template <class Less>
    void insert(uint32_t set, uint32_t row, const Less& less) {
        assert(set < roots_.size() && row < nodes_.size());
        uint32_t* at = &roots_[set];
        for (; *at != shm::kNoRow && weight(*at) >= weight(row); at = below(*at, row, less))
            ++nodes_[*at].size;
        const uint32_t rest = std::exchange(*at, row);
        std::tie(nodes_[row].left, nodes_[row].right) = split(rest, row, less);
        count(row);
    }

    template <class Less>
    void remove(uint32_t set, uint32_t row, const Less& less) {
        uint32_t* at = &roots_[set];
        for (; *at != row; at = below(*at, row, less)) {
            assert(*at != shm::kNoRow);
            --nodes_[*at].size;
        }
        *at = merge(nodes_[row].left, nodes_[row].right);
    }

    [[nodiscard]] uint32_t first(uint32_t set) const {
        uint32_t row = roots_[set];
        while (row != shm::kNoRow && nodes_[row].left != shm::kNoRow)
            row = nodes_[row].left;
        return row;
    }

    // The first behind `row`, which need not stand in the set.
    template <class Less>
    [[nodiscard]] uint32_t after(uint32_t set, uint32_t row, const Less& less) const {
        uint32_t found = shm::kNoRow;
        for (uint32_t at = roots_[set]; at != shm::kNoRow;) {
            const bool behind = less(row, at);
            if (behind) found = at;
            at = behind ? nodes_[at].left : nodes_[at].right;
        }
        return found;
    }

    [[nodiscard]] uint32_t size(uint32_t set) const { return size_of(roots_[set]); }

    // The one before which so many stand, fewer than there are.
    [[nodiscard]] uint32_t at(uint32_t set, uint32_t before) const {
        uint32_t row = roots_[set];
        for (;;) {
            assert(row != shm::kNoRow);
            const uint32_t left = size_of(nodes_[row].left);
            if (before == left) return row;
            const bool is_left = before < left;
            row = is_left ? nodes_[row].left : nodes_[row].right;
            before -= is_left ? 0 : left + 1;
        }
    }

    // How many stand before `row`, which need not stand in the set.
    template <class Less>
    [[nodiscard]] uint32_t rank(uint32_t set, uint32_t row, const Less& less) const {
        uint32_t before = 0;
        for (uint32_t at = roots_[set]; at != shm::kNoRow;) {
            const bool behind = less(at, row);
            if (behind) before += size_of(nodes_[at].left) + 1;
            at = behind ? nodes_[at].right : nodes_[at].left;
        }
        return before;
    }

  private:
    struct Node {
        uint32_t left = shm::kNoRow;
        uint32_t right = shm::kNoRow;
        uint32_t size = 0;
    };

    static uint32_t weight(uint32_t row) {
        uint32_t hash = (row + 1) * 0x9e3779b1U;
        hash = (hash ^ (hash >> 15U)) * 0x85ebca77U;
        return hash ^ (hash >> 13U);
    }

    [[nodiscard]] uint32_t size_of(uint32_t row) const {
        return row == shm::kNoRow ? 0 : nodes_[row].size;
    }
    void count(uint32_t row) {
        nodes_[row].size = size_of(nodes_[row].left) + size_of(nodes_[row].right) + 1;
    }
    template <class Less>
    uint32_t* below(uint32_t at, uint32_t row, const Less& less) {
        return less(row, at) ? &nodes_[at].left : &nodes_[at].right;
    }

    // What is below `root`, before and behind `row`.
    template <class Less>
    std::pair<uint32_t, uint32_t> split(uint32_t root, uint32_t row, const Less& less) {
        if (root == shm::kNoRow) return {root, root};
        Node& node = nodes_[root];
        std::pair<uint32_t, uint32_t> parts;
        if (less(row, root)) {
            parts = split(node.left, row, less);
            node.left = std::exchange(parts.second, root);
        } else {
            parts = split(node.right, row, less);
            node.right = std::exchange(parts.first, root);
        }
        count(root);
        return parts;
    }

    uint32_t merge(uint32_t left, uint32_t right) {
        if (left == shm::kNoRow) return right;
        if (right == shm::kNoRow) return left;
        const bool on_top = weight(left) >= weight(right);
        const uint32_t top = on_top ? left : right;
        uint32_t& inner = on_top ? nodes_[left].right : nodes_[right].left;
        inner = on_top ? merge(inner, right) : merge(left, inner);
        count(top);
        return top;
    }

    std::vector<uint32_t> roots_;
    std::vector<Node> nodes_;
};

}  // namespace dibs::core
