// tests/abi/layout_listing.cpp -- prints the compiled layout as the frozen versions are kept.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "tests/abi/listing.hpp"

int main() {
    std::fputs(dibs::abi::to_text(dibs::abi::compiled_listing()).c_str(), stdout);
}
