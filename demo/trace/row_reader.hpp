// demo/trace/row_reader.hpp -- reads one line of a trace as a claim, or says why it cannot.
//
// A reader knows the columns of one format. It takes the fields of a line and returns a draft:
// times as the file has them, not yet relative to the first arrival.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "demo/trace/trace.hpp"

namespace dibs::ctl::demo {

struct RowDraft {
    int64_t arrival_ns = 0;
    int64_t hold_ns = 0;
    int64_t units = 1;
    std::string tenant;
};

class RowReader {
  public:
    virtual ~RowReader() = default;
    // A line that carries no row: a comment, or the header. May learn from it.
    virtual bool is_head(std::string_view line, bool first) = 0;
    // Empty if the draft is filled, else what is wrong with the line.
    virtual std::string read(std::string_view line, RowDraft* draft) = 0;
    // Units of the machine if the head of the file said so, else 0.
    [[nodiscard]] virtual uint64_t pool_units() const { return 0; }
};

std::unique_ptr<RowReader> make_row_reader(TraceFormat format);

// Column names of a CSV form in their documented order, and how many of them a row must have.
struct CsvForm {
    TraceFormat format;
    std::vector<std::string_view> columns;
    size_t needed;
};
const std::vector<CsvForm>& csv_forms();
// Whether a line is the header of the form: every needed column is named in it, in any order.
bool is_csv_header(const CsvForm& form, std::string_view line);

}  // namespace dibs::ctl::demo
