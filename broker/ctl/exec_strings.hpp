// broker/ctl/exec_strings.hpp -- builds the argument and environment lists of execve.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

namespace dibs::ctl {

// Ended by a null pointer; the texts must outlive it. execve writes to none of them.
inline std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (const std::string& text : texts)
        pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

// This process's, with these "NAME=value" in place of what it has under their names.
inline std::vector<std::string> environment_with(const std::vector<std::string>& added) {
    std::vector<std::string> all = added;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        const std::string name = text.substr(0, text.find('=') + 1);
        const bool replaced = std::any_of(added.begin(), added.end(), [&](const std::string& one) {
            return one.rfind(name, 0) == 0;
        });
        if (!replaced) all.push_back(text);
    }
    return all;
}

}  // namespace dibs::ctl
