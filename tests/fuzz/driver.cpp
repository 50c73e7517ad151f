// tests/fuzz/driver.cpp -- a target without libFuzzer: its corpus, then mutations of it.
//
//   TARGET --runs N CORPUS...        TAP; each CORPUS is a file or a folder
//   TARGET FILE                      that one input
//
// The same seed gives the same inputs on every machine (DIBS_SEED, printed). DIBS_FUZZ_RUNS sets
// their number. An input that kills the process is left in the file that the last line names.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/bytes.hpp"

namespace {

using Input = std::vector<uint8_t>;
constexpr size_t kSizeMax = 4096;

// What dies is written out by a signal handler: plain memory, a path and system calls.
const Input* running = nullptr;
char left_at[4096];

void leave(int signal) {
    const int file = open(left_at, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file >= 0 && running != nullptr) {
        (void)!write(file, running->data(), running->size());
        (void)!write(STDOUT_FILENO, "# died of ", 10);
        (void)!write(STDOUT_FILENO, left_at, std::strlen(left_at));
        (void)!write(STDOUT_FILENO, "\n", 1);
    }
    struct sigaction standard = {};
    standard.sa_handler = SIG_DFL;
    sigaction(signal, &standard, nullptr);
    raise(signal);
}

void run(const Input& input) {
    running = &input;
    static const uint8_t kNothing = 0;
    LLVMFuzzerTestOneInput(input.empty() ? &kNothing : input.data(), input.size());
    running = nullptr;
}

Input read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Input> read_corpus(const std::vector<std::string>& places) {
    std::vector<std::filesystem::path> paths;
    for (const std::string& place : places) {
        if (!std::filesystem::is_directory(place)) {
            paths.emplace_back(place);
            continue;
        }
        for (const auto& entry : std::filesystem::directory_iterator(place))
            paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());  // a folder's own order is the file system's
    std::vector<Input> inputs;
    for (const auto& path : paths)
        inputs.push_back(read(path));
    return inputs;
}

class Mutator {
  public:
    Mutator(const std::vector<Input>& corpus, uint64_t seed) : corpus_(corpus), random_(seed) {}

    Input next() {
        Input input;
        if (!corpus_.empty() && below(16) != 0) input = any();
        // Any change at any place leaves little that is understood: some keep every size, and of a
        // text some keep its lines whole.
        const size_t way = below(3);
        const bool lines = way == 1 && is_text(input);
        for (size_t count = 1 + below(6); count > 0; --count) {
            if (lines) {
                change_lines(input);
            } else {
                change(input, way == 0 ? below(3) : below(8));
            }
        }
        if (input.size() > kSizeMax) input.resize(kSizeMax);
        return input;
    }

  private:
    size_t below(size_t bound) { return bound == 0 ? 0 : random_() % bound; }
    const Input& any() { return corpus_[below(corpus_.size())]; }

    static bool is_text(const Input& input) {
        return !input.empty() && std::all_of(input.begin(), input.end(), [](uint8_t byte) {
            return byte >= ' ' ? byte != 0x7f : byte == '\n' || byte == '\t';
        });
    }

    // Where a line begins: any but the last.
    size_t line_of(const Input& input) {
        const auto place = input.begin() + static_cast<ptrdiff_t>(below(input.size()));
        const auto before = std::find(std::make_reverse_iterator(place), input.rend(), '\n');
        return static_cast<size_t>(before.base() - input.begin());
    }
    static size_t end_of(const Input& input, size_t line) {
        const auto end = std::find(input.begin() + static_cast<ptrdiff_t>(line), input.end(), '\n');
        return static_cast<size_t>(end - input.begin()) + (end == input.end() ? 0 : 1);
    }

    // Takes a line away, or puts one of this or another text before one, or changes a digit or
    // letter.
    void change_lines(Input& input) {
        if (input.empty()) return;
        const size_t line = line_of(input);
        const auto begin = input.begin() + static_cast<ptrdiff_t>(line);
        switch (below(4)) {
            case 0:
                input.erase(begin, input.begin() + static_cast<ptrdiff_t>(end_of(input, line)));
                return;
            case 1: {
                const Input from = below(2) == 0 ? input : any();
                if (!is_text(from)) return;
                const size_t other = line_of(from);
                input.insert(begin,
                             from.begin() + static_cast<ptrdiff_t>(other),
                             from.begin() + static_cast<ptrdiff_t>(end_of(from, other)));
                return;
            }
            default: {
                uint8_t& byte = input[line + below(end_of(input, line) - line)];
                if (byte >= '0' && byte <= '9') byte = static_cast<uint8_t>('0' + below(10));
                if (byte >= 'a' && byte <= 'z' && below(8) == 0)
                    byte = static_cast<uint8_t>('a' + below(26));
                return;
            }
        }
    }

    void change(Input& input, size_t how) {
        const size_t at = below(input.size() + 1);
        const auto place = input.begin() + static_cast<ptrdiff_t>(at);
        const size_t left = input.size() - at;
        switch (how) {
            case 0:
                if (left != 0) input[at] ^= static_cast<uint8_t>(1U << below(8));
                return;
            case 1:
                if (left != 0) input[at] = static_cast<uint8_t>(random_());
                return;
            case 2: {  // a number that is a limit somewhere
                constexpr std::array<uint64_t, 12> kFamousNumbers = {0,
                                                                     1,
                                                                     2,
                                                                     63,
                                                                     64,
                                                                     0x7f,
                                                                     0x100,
                                                                     0xfff,
                                                                     0xffff,
                                                                     0x7fffffff,
                                                                     0xffffffff,
                                                                     0xffffffffffffffff};
                const uint64_t limit = kFamousNumbers[below(kFamousNumbers.size())];
                const size_t width = std::min(left, size_t{1} << below(4));
                if (width != 0) std::memcpy(input.data() + at, &limit, width);
                return;
            }
            case 3:
                input.insert(place, 1 + below(64), static_cast<uint8_t>(random_()));
                return;
            case 4:
                for (size_t count = 1 + below(64); count > 0; --count)
                    input.push_back(static_cast<uint8_t>(random_()));
                return;
            case 5:
                input.erase(place,
                            place + static_cast<ptrdiff_t>(below(std::min<size_t>(left, 64) + 1)));
                return;
            case 6: {  // a piece of itself again
                const Input piece(
                    place, place + static_cast<ptrdiff_t>(below(std::min<size_t>(left, 128) + 1)));
                input.insert(input.begin() + static_cast<ptrdiff_t>(below(input.size() + 1)),
                             piece.begin(),
                             piece.end());
                return;
            }
            default: {  // the end of another
                if (corpus_.empty()) return;
                const Input& other = any();
                input.erase(place, input.end());
                const size_t from = below(other.size() + 1);
                input.insert(
                    input.end(), other.begin() + static_cast<ptrdiff_t>(from), other.end());
                return;
            }
        }
    }

    const std::vector<Input>& corpus_;
    std::mt19937_64 random_;
};

uint64_t number(const char* name, uint64_t otherwise) {
    const char* given = std::getenv(name);
    return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

}  // namespace

int main(int count, char** arguments) {
    uint64_t runs = 0;
    std::vector<std::string> places;
    for (int i = 1; i < count; ++i) {
        if (std::string_view(arguments[i]) == "--runs" && i + 1 < count) {
            runs = std::strtoull(arguments[++i], nullptr, 10);
        } else {
            places.emplace_back(arguments[i]);
        }
    }
    runs = number("DIBS_FUZZ_RUNS", runs);
    // What an input has had is there for the next, and not given back to the kernel between them.
    mallopt(M_MMAP_THRESHOLD, 1 << 28);
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
    const std::string name = std::filesystem::path(arguments[0]).filename().string();
    std::snprintf(left_at, sizeof left_at, "%s.died", arguments[0]);
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
        ::signal(signal, leave);

    const std::vector<Input> corpus = read_corpus(places);
    for (const Input& input : corpus)
        run(input);
    std::printf("1..2\nok 1 - %s replays %zu inputs of its corpus\n", name.c_str(), corpus.size());
    std::fflush(stdout);
    const uint64_t seed = number("DIBS_SEED", 1);
    Mutator mutator(corpus, seed);
    dibs::fuzz::understood = 0;
    for (uint64_t i = 0; i < runs; ++i)
        run(mutator.next());
    // Of inputs that all end at the first check nothing behind it was tried.
    const bool tried = runs == 0 || dibs::fuzz::understood != 0;
    std::printf(
        "%s 2 - %s survives %llu mutations of them, %llu past the first check, DIBS_SEED=%llu\n",
        tried ? "ok" : "not ok",
        name.c_str(),
        static_cast<unsigned long long>(runs),
        static_cast<unsigned long long>(dibs::fuzz::understood),
        static_cast<unsigned long long>(seed));
    return tried ? 0 : 1;
}
