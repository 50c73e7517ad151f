// benchmarks/scratch_folder.hpp -- a temporary folder, removed with its contents.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace dibs::bench {

class ScratchFolder {
  public:
    ScratchFolder();
    ~ScratchFolder();
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

}  // namespace dibs::bench
