// benchmarks/peers/library.hpp -- a library that is loaded if it is installed, and not linked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace dibs::bench {

class Library {
  public:
    explicit Library(const char* name) : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}
    [[nodiscard]] bool found() const { return handle_ != nullptr; }
    // Assigns the function of this name.
    template <typename Function>
    void load(Function*& function, const char* name) const {
        function = reinterpret_cast<Function*>(dlsym(handle_, name));
        if (function == nullptr) throw std::runtime_error(std::string(name) + " is not there");
    }

  private:
    void* handle_;  // never closed
};

}  // namespace dibs::bench
