// tests/abi/document_listing.cpp -- reads the byte tables out of docs/shm-layout.md.
//
// Only headings and table rows of the forms in listing.hpp count; everything else is prose. A row
// whose first cells are not such a row is taken for the head of a table, so a mistyped number shows
// as a field that the document lacks.
// SPDX-License-Identifier: Apache-2.0
#include <regex>
#include <sstream>

#include "tests/abi/listing.hpp"

namespace dibs::abi {

Listing listing_of_document(std::string_view markdown) {
    static const std::regex kStructHeading(R"(### `(\w+)`, (\d+) bytes.*)");
    static const std::regex kScopeHeading(R"(### `(\w+)`.*)");
    static const std::regex kFieldRow(R"(\| *(\d+) *\| *(\d+) *\| *`(\w+)` *\|.*)");
    static const std::regex kValueRow(R"(\| *(-?\d+) *\| *`(\w+)` *\|.*)");
    enum class Inside { kProse, kStruct, kScope };

    Listing listing;
    Inside inside = Inside::kProse;
    std::string scope;
    std::istringstream lines{std::string(markdown)};
    std::smatch cells;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('#')) {
            inside = Inside::kProse;
            if (std::regex_match(line, cells, kStructHeading)) {
                inside = Inside::kStruct;
                listing.structs.push_back({cells[1], std::stoull(cells[2]), {}});
            } else if (std::regex_match(line, cells, kScopeHeading)) {
                inside = Inside::kScope;
                scope = cells[1] == "constants" ? "" : cells[1].str();
            }
        } else if (inside == Inside::kStruct && std::regex_match(line, cells, kFieldRow)) {
            listing.structs.back().fields.push_back(
                {cells[3], std::stoull(cells[1]), std::stoull(cells[2])});
        } else if (inside == Inside::kScope && std::regex_match(line, cells, kValueRow)) {
            listing.values.push_back({scope, cells[2], cells[1]});
        }
    }
    return listing;
}

}  // namespace dibs::abi
