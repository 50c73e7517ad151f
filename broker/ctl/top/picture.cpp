// broker/ctl/top/picture.cpp -- lays out the tables in the lines that there is room for.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/top/picture.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <sstream>

#include "broker/ctl/clock.hpp"
#include "broker/text/line_wrap.hpp"
#include "broker/text/terminal_text.hpp"
#include "shm/layout.hpp"

namespace dibs::ctl::top {

namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
        lines.push_back(line);
    return lines;
}

std::string heading(const Facts& facts, size_t width) {
    const admin::StatusT& status = *facts.status;
    uint64_t waiting = 0;
    for (const auto& pool : facts.pools)
        waiting += pool->waiting;
    std::string text = "dibs top  up " + duration_text(status.uptime_ns) + ", " +
                       counted(status.leases, "lease") + ", " + std::to_string(waiting) +
                       " waiting, " + counted(status.sessions, "client");
    if (status.stopping && status.stops_in_ns == shm::kNever) {
        text += ", stops after the last lease";
    } else if (status.stopping) {
        text += ", stops within " + duration_text(status.stops_in_ns);
    } else if (status.draining) {
        text += ", drains";
    }
    if (facts.cut) text += ", not all are shown";
    const std::string time = instant_text(facts.from.wall_ns).substr(11);
    const size_t used = width_of(text) + width_of(time);
    return text + std::string(width > used + 2 ? width - used : 2, ' ') + time;
}

// Each gets what it wants, as far as there is room; where there is not, the lines go round.
std::array<size_t, kParts> share(const std::array<size_t, kParts>& wanted, size_t room) {
    std::array<size_t, kParts> rows = {};
    for (bool more = true; more;) {
        more = false;
        for (size_t part = 0; part < kParts && room != 0; ++part) {
            if (rows[part] == wanted[part]) continue;
            ++rows[part];
            --room;
            more = true;
        }
    }
    return rows;
}

// The first row that is shown, so that the chosen one is.
size_t first_row(const Table& table, const std::string& chosen, size_t rows) {
    const auto at = std::find(table.names.begin(), table.names.end(), chosen);
    if (chosen.empty() || at == table.names.end()) return 0;
    const auto row = static_cast<size_t>(at - table.names.begin());
    return row < rows ? 0 : row + 1 - rows;
}

void add_part(
    Part part, Table table, size_t rows, const View& view, size_t width, std::vector<Line>* lines) {
    const std::string chosen = view.chosen.part == part ? view.chosen.name : "";
    const size_t first = first_row(table, chosen, rows);
    const auto from = table.sheet.rows.begin() + static_cast<ptrdiff_t>(first);
    table.sheet.rows = {from, from + static_cast<ptrdiff_t>(rows)};
    const std::vector<std::string> told = lines_of(table_text(table.sheet, width, false));
    lines->push_back({told.front(), Style::kHeading});
    for (size_t row = 0; row < rows; ++row) {
        const bool is_chosen = !chosen.empty() && table.names[first + row] == chosen;
        lines->push_back({told[row + 1],
                          is_chosen ? Style::kChosen : Style::kPlain,
                          part == Part::kPools && !is_chosen});
    }
}

}  // namespace

std::vector<Line> picture(const Facts& facts, const View& view, size_t width, size_t height) {
    std::array<Table, kParts> parts = tables(facts, view.order);
    std::vector<Line> bottom;
    if (height != 0 && !view.message.empty()) {
        for (std::string& line : lines_of(wrapped(harmless(view.message), width, 0)))
            bottom.push_back({std::move(line), Style::kMessage});
    } else if (height != 0) {
        bottom.push_back({view.keys, Style::kHeading});
    }
    std::array<size_t, kParts> wanted = {};
    for (size_t part = 0; part < kParts; ++part)
        wanted[part] = parts[part].sheet.rows.size();
    const auto shown = static_cast<size_t>(
        std::count_if(wanted.begin(), wanted.end(), [](size_t rows) { return rows != 0; }));
    const size_t all = std::accumulate(wanted.begin(), wanted.end(), size_t{0});
    const size_t fixed = 1 + shown + bottom.size();
    const bool airy = height == 0 || fixed + shown + all <= height;
    const size_t room = height == 0 ? all : height - std::min(height, fixed);
    const std::array<size_t, kParts> rows = share(wanted, room);
    std::vector<Line> lines = {{heading(facts, width), Style::kHeading}};
    for (size_t part = 0; part < kParts; ++part) {
        if (rows[part] == 0) continue;
        if (airy) lines.push_back({});
        add_part(static_cast<Part>(part), std::move(parts[part]), rows[part], view, width, &lines);
    }
    if (height == 0) return lines;
    lines.resize(height - std::min(height, bottom.size()));
    std::move(bottom.begin(), bottom.end(), std::back_inserter(lines));
    lines.resize(height);
    return lines;
}

void choose(const Facts& facts, int by, View* view) {
    const std::array<Table, kParts> parts = tables(facts, view->order);
    std::vector<RowName> names;
    ptrdiff_t at = -1;
    ptrdiff_t nearest = 0;  // where its part begins, for one that is gone
    for (size_t part = 0; part < kParts; ++part) {
        if (static_cast<Part>(part) == view->chosen.part) {
            nearest = static_cast<ptrdiff_t>(names.size());
        }
        for (const std::string& name : parts[part].names) {
            const RowName row{static_cast<Part>(part), name};
            if (name.empty()) continue;
            if (row == view->chosen) at = static_cast<ptrdiff_t>(names.size());
            names.push_back(row);
        }
    }
    if (names.empty()) {
        view->chosen = {};
        return;
    }
    const auto last = static_cast<ptrdiff_t>(names.size()) - 1;
    const ptrdiff_t next = at < 0 ? nearest : at + by;
    view->chosen = names[static_cast<size_t>(std::clamp<ptrdiff_t>(next, 0, last))];
}

}  // namespace dibs::ctl::top
