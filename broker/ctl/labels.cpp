// broker/ctl/labels.cpp -- applies the rules of dibs/dibs.h for labels and names.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/labels.hpp"

#include <algorithm>

#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"
#include "dibs/dibs.h"

namespace dibs::ctl {

namespace {

constexpr size_t kShown = 16;  // bytes of what is too long

void check(const std::string& where, const std::string& what, const std::string& text) {
    if (text.empty()) throw Failure(kExitUsage, where + ": " + what + " is empty");
    if (text.size() <= DIBS_NAME_MAX) return;
    throw Failure(kExitUsage,
                  where + ": " + what + ", \"" + text.substr(0, kShown) + "...\", has " +
                      std::to_string(text.size()) + " bytes; " + std::to_string(DIBS_NAME_MAX) +
                      " is the most");
}

}  // namespace

void check_count(const std::string& where, size_t count, size_t most) {
    if (count <= most) return;
    throw Failure(kExitUsage,
                  where + ": " + std::to_string(count) + " are too many; " + std::to_string(most) +
                      " is the most");
}

void check_labels(const std::string& where, const std::vector<std::string>& labels) {
    check_count(where, labels.size(), DIBS_LABELS_MAX);
    for (size_t i = 0; i < labels.size(); ++i)
        check(where, "label " + std::to_string(i + 1), labels[i]);
}

void check_name(const std::string& where, const std::string& name) {
    check(where, "the name", name);
    const auto obeyed = [](char letter) {
        return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
    };
    if (std::none_of(name.begin(), name.end(), obeyed)) return;
    throw Failure(kExitUsage, where + ": \"" + name + "\" has control characters");
}

}  // namespace dibs::ctl
