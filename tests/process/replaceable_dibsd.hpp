// tests/process/replaceable_dibsd.hpp -- a dibsd of the test's own, at a path of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/process/dibsd.hpp"

namespace dibs::test {

// As long as it is there, $DIBS_DIBSD names it.
class ReplaceableDibsd {
  public:
    explicit ReplaceableDibsd(const Folder& folder)
        : path_(folder.path() + "/dibsd"), before_(std::getenv("DIBS_DIBSD")) {
        std::filesystem::copy_file(before_, path_);
        setenv("DIBS_DIBSD", path_.c_str(), 1);
    }
    ~ReplaceableDibsd() { setenv("DIBS_DIBSD", before_.c_str(), 1); }
    ReplaceableDibsd(const ReplaceableDibsd&) = delete;
    ReplaceableDibsd& operator=(const ReplaceableDibsd&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }
    // By another file, which is moved to its place: as packages do.
    void replace(const std::string& other) const {
        std::filesystem::permissions(other, std::filesystem::perms::owner_all);
        std::filesystem::rename(other, path_);
    }

  private:
    std::string path_;
    std::string before_;
};

}  // namespace dibs::test
