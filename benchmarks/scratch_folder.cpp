// benchmarks/scratch_folder.cpp -- a temporary folder, removed with its contents.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/scratch_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace dibs::bench {

ScratchFolder::ScratchFolder()
    : path_(std::filesystem::temp_directory_path() / "dibs-bench-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) {
        throw std::system_error(errno, std::generic_category(), path_);
    }
}

ScratchFolder::~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace dibs::bench
