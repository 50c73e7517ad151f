// tests/naive/journal_shrinker.cpp -- greedy, and each attempt in a process of its own, so that a
// failed assertion of a core is a disagreement like any other.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/journal_shrinker.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "tests/naive/lockstep.hpp"

namespace dibs::naive {

bool still_disagrees(const Journal& journal) {
    const pid_t child = fork();
    if (child == 0) {
        const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(nowhere, STDERR_FILENO);  // the same assertion a thousand times over
        Coverage coverage;
        _exit(play_both(journal, &coverage).has_value() ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

Journal shrink(Journal journal) {
    for (size_t run = std::max<size_t>(journal.steps.size() / 2, 1); run > 0; run /= 2) {
        bool dropped = true;
        while (dropped) {
            dropped = false;
            for (size_t from = 0; from < journal.steps.size();) {
                Journal smaller = journal;
                const size_t to = std::min(from + run, journal.steps.size());
                smaller.steps.erase(smaller.steps.begin() + static_cast<std::ptrdiff_t>(from),
                                    smaller.steps.begin() + static_cast<std::ptrdiff_t>(to));
                if (still_disagrees(smaller)) {
                    journal = std::move(smaller);
                    dropped = true;
                } else {
                    from = to;
                }
            }
        }
    }
    return journal;
}

}  // namespace dibs::naive
