// tests/broker/text/line_writer_test.cpp -- lines to whoever reads them, and to whoever does not.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "broker/text/line_writer.hpp"
#include "tests/process/dibsd.hpp"

namespace dibs {
namespace {

// All that lies there, which is not waited for.
std::string read_all(int fd) {
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    std::string all;
    char some[4096];
    for (ssize_t size = 0; (size = read(fd, some, sizeof some)) > 0;)
        all.append(some, static_cast<size_t>(size));
    return all;
}

// Of the lines behind the first: what was dropped, and the line that found room.
void expect_drops(const std::string& text, const std::string& line, int written) {
    const auto kept = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    EXPECT_GT(kept, 0);
    EXPECT_LT(kept, written);
    EXPECT_EQ(text.rfind(line, 0), 0U) << text.substr(0, 80);
}

void expect_count(const std::string& text, int dropped) {
    EXPECT_EQ(text,
              "dibsd: " + std::to_string(dropped) +
                  " lines were dropped before this one: there was no room\nlast\n");
}

struct Pair {
    shm::Descriptor reading;
    shm::Descriptor writing;
};

Pair new_pipe() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    return {shm::Descriptor(ends[0]), shm::Descriptor(ends[1])};
}

Pair new_sockets() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    return {shm::Descriptor(ends[0]), shm::Descriptor(ends[1])};
}

// Each would stand still at the first line that finds no room.
TEST(LineWriter, DropsAndCountsWhatNobodyReads) {
    Pair ways[] = {new_pipe(), new_sockets()};
    const std::string line(1000, 'x');
    for (Pair& way : ways) {
        const shm::Descriptor others(fcntl(way.writing.get(), F_DUPFD_CLOEXEC, 0));
        LineWriter writer(way.writing.get());
        constexpr int kLines = 4096;  // more than either holds
        for (int i = 0; i < kLines; ++i)
            writer.write(line + "\n");
        const std::string text = read_all(way.reading.get());
        expect_drops(text, line + "\n", kLines);
        const auto kept = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
        writer.write("last\n");
        expect_count(read_all(way.reading.get()), kLines - kept);
        writer.write("once more\n");
        EXPECT_EQ(read_all(way.reading.get()), "once more\n");
        EXPECT_EQ(fcntl(others.get(), F_GETFL) & O_NONBLOCK, 0);
    }
}

// A pipe that may not be opened once more is asked for room. Root may open any.
TEST(LineWriter, AsksAPipeThatItMayNotOpen) {
    if (geteuid() == 0) GTEST_SKIP() << "root may open any pipe";
    Pair way = new_pipe();
    ASSERT_EQ(fchmod(way.writing.get(), 0), 0);
    LineWriter writer(way.writing.get());
    constexpr int kLines = 4096;
    for (int i = 0; i < kLines; ++i)
        writer.write("line\n");
    const std::string text = read_all(way.reading.get());
    expect_drops(text, "line\n", kLines);
}

TEST(LineWriter, DropsWhatAStoppedTerminalDoesNotTake) {
    const shm::Descriptor master(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    ASSERT_TRUE(master.valid());
    ASSERT_EQ(grantpt(master.get()), 0);
    ASSERT_EQ(unlockpt(master.get()), 0);
    char name[64] = "";
    ASSERT_EQ(ptsname_r(master.get(), name, sizeof name), 0);
    const shm::Descriptor terminal(open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
    ASSERT_TRUE(terminal.valid());
    LineWriter writer(terminal.get());
    ASSERT_EQ(tcflow(terminal.get(), TCOOFF), 0);
    writer.write("first\n");
    writer.write("second\n");
    ASSERT_EQ(tcflow(terminal.get(), TCOON), 0);
    writer.write("last\n");
    EXPECT_EQ(read_all(master.get()),
              "dibsd: 2 lines were dropped before this one: there was no room\r\nlast\r\n");
}

// The others' offset is this writer's: nothing of theirs is written over.
TEST(LineWriter, WritesToAFileBehindWhatOthersWrite) {
    const test::Folder folder;
    const std::string path = folder.path() + "/log";
    const shm::Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    LineWriter writer(file.get());
    writer.write("one\n");
    ASSERT_EQ(write(file.get(), "two\n", 4), 4);
    writer.write("three\n");
    std::ifstream text(path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(text), {}), "one\ntwo\nthree\n");
}

TEST(LineWriter, CutsALineThatAPipeWouldTakeInParts) {
    Pair way = new_pipe();
    LineWriter writer(way.writing.get());
    writer.write(std::string(5000, 'x') + "\n");
    EXPECT_EQ(read_all(way.reading.get()), std::string(LineWriter::kLineMax - 1, 'x') + "\n");
}

}  // namespace
}  // namespace dibs
