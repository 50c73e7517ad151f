// broker/core/store/ordered_rows.hpp -- keeps many ordered sets of rows over one array of nodes.
//
// The sets are derived from the rows. Each is a treap: a search tree by the caller's order that is
// a heap by a hash of the row, so it is as deep as a random tree whatever the order of insertion. A
// row stands in at most one set of its family; a set is the root that its owner keeps. Nothing is
// allocated after construction.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "shm/layout.hpp"

namespace dibs::core {

class OrderedRows {
  public:
    explicit OrderedRows(uint32_t rows) : nodes_(rows) {}

    // `less(a, b)` orders rows and is the same in every call for one set.
    template <class Less>
    void insert(uint32_t* root, uint32_t row, const Less& less) {
        uint32_t* at = root;
        while (*at != shm::kNoRow && weight(*at) >= weight(row)) {
            at = less(row, *at) ? &nodes_[*at].left : &nodes_[*at].right;
        }
        const uint32_t below = *at;
        *at = row;
        split(below, row, less, &nodes_[row].left, &nodes_[row].right);
    }

    template <class Less>
    void remove(uint32_t* root, uint32_t row, const Less& less) {
        uint32_t* at = root;
        while (*at != row) {
            assert(*at != shm::kNoRow);
            at = less(row, *at) ? &nodes_[*at].left : &nodes_[*at].right;
        }
        merge(nodes_[row].left, nodes_[row].right, at);
    }

    [[nodiscard]] uint32_t first(uint32_t root) const {
        if (root == shm::kNoRow) return root;
        while (nodes_[root].left != shm::kNoRow)
            root = nodes_[root].left;
        return root;
    }

    // In order.
    template <class Visit>
    void each(uint32_t root, const Visit& visit) const {
        if (root == shm::kNoRow) return;
        each(nodes_[root].left, visit);
        visit(root);
        each(nodes_[root].right, visit);
    }

  private:
    struct Node {
        uint32_t left = shm::kNoRow;
        uint32_t right = shm::kNoRow;
    };

    static uint32_t weight(uint32_t row) {
        uint32_t hash = (row + 1) * 0x9e3779b1U;
        hash = (hash ^ (hash >> 15U)) * 0x85ebca77U;
        return hash ^ (hash >> 13U);
    }

    // What is below `root`, before and after `row`.
    template <class Less>
    void split(uint32_t root, uint32_t row, const Less& less, uint32_t* before, uint32_t* after) {
        while (root != shm::kNoRow) {
            if (less(row, root)) {
                *after = root;
                after = &nodes_[root].left;
                root = *after;
            } else {
                *before = root;
                before = &nodes_[root].right;
                root = *before;
            }
        }
        *before = shm::kNoRow;
        *after = shm::kNoRow;
    }

    void merge(uint32_t left, uint32_t right, uint32_t* into) {
        while (left != shm::kNoRow && right != shm::kNoRow) {
            if (weight(left) >= weight(right)) {
                *into = left;
                into = &nodes_[left].right;
                left = *into;
            } else {
                *into = right;
                into = &nodes_[right].left;
                right = *into;
            }
        }
        *into = left != shm::kNoRow ? left : right;
    }

    std::vector<Node> nodes_;
};

}  // namespace dibs::core
