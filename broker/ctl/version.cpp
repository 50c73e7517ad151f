// broker/ctl/version.cpp -- `dibs version`.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "broker/ctl/subcommand.hpp"
#include "shm/layout.hpp"

namespace dibs::ctl {

int run_version(int /*argc*/, char** /*argv*/) {
    std::printf("dibs %s, layout %u\n", DIBS_VERSION, shm::kLayoutVersion);
    return kExitOk;
}

}  // namespace dibs::ctl
