// tests/abi/differences.cpp -- compares two listings in both directions.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/abi/listing.hpp"

namespace dibs::abi {
namespace {

const Struct* find(const Listing& listing, const std::string& name) {
    const auto found = std::find_if(listing.structs.begin(),
                                    listing.structs.end(),
                                    [&](const Struct& type) { return type.name == name; });
    return found == listing.structs.end() ? nullptr : &*found;
}

std::string place(const Field& field) {
    return field.name + " at " + std::to_string(field.offset) + ", " + std::to_string(field.size) +
           " bytes";
}

void compare_fields(const Struct& header,
                    const Struct& document,
                    std::vector<std::string>& differences) {
    if (header.size != document.size) {
        differences.push_back(header.name + ": header has " + std::to_string(header.size) +
                              " bytes, document " + std::to_string(document.size));
    }
    const size_t count = std::max(header.fields.size(), document.fields.size());
    for (size_t i = 0; i < count; ++i) {
        const std::string in_header =
            i < header.fields.size() ? place(header.fields[i]) : "nothing more";
        const std::string in_document =
            i < document.fields.size() ? place(document.fields[i]) : "nothing more";
        if (in_header != in_document) {
            differences.push_back(header.name + ": header has " + in_header + "; document has " +
                                  in_document);
            return;  // what follows is shifted
        }
    }
}

std::vector<std::string> sorted_values(const Listing& listing) {
    std::vector<std::string> lines;
    for (const Value& value : listing.values)
        lines.push_back((value.scope.empty() ? "" : value.scope + "::") + value.name + " = " +
                        value.value);
    std::sort(lines.begin(), lines.end());
    return lines;
}

void only_in(const std::vector<std::string>& left,
             const std::vector<std::string>& right,
             const std::string& said,
             std::vector<std::string>& differences) {
    std::vector<std::string> extra;
    std::set_difference(
        left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(extra));
    for (const std::string& line : extra)
        differences.push_back(line + said);
}

}  // namespace

std::vector<std::string> differences(const Listing& header, const Listing& document) {
    std::vector<std::string> differences;
    for (const Struct& type : header.structs) {
        const Struct* documented = find(document, type.name);
        if (documented == nullptr) {
            differences.push_back(type.name + ": document has no table");
        } else {
            compare_fields(type, *documented, differences);
        }
    }
    for (const Struct& type : document.structs) {
        if (find(header, type.name) == nullptr)
            differences.push_back(type.name + ": header has no such struct");
    }
    const std::vector<std::string> in_header = sorted_values(header);
    const std::vector<std::string> in_document = sorted_values(document);
    only_in(in_header, in_document, ": document lacks it", differences);
    only_in(in_document, in_header, ": header lacks it", differences);
    return differences;
}

}  // namespace dibs::abi
