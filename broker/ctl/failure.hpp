// broker/ctl/failure.hpp -- an error that ends a subcommand: a sentence and an exit code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace dibs::ctl {

class Failure : public std::runtime_error {
  public:
    Failure(int exit_code, const std::string& text)
        : std::runtime_error(text), exit_code_(exit_code) {}
    [[nodiscard]] int exit_code() const { return exit_code_; }

  private:
    int exit_code_;
};

// A broker that was there has ended before it answered.
class Gone : public Failure {
    using Failure::Failure;
};

}  // namespace dibs::ctl
