// broker/text/log.cpp -- writes log lines for people to standard error.
// SPDX-License-Identifier: Apache-2.0
#include "broker/text/log.hpp"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "broker/text/line_writer.hpp"
#include "broker/text/log_throttle.hpp"
#include "broker/turn/clock.hpp"

namespace dibs::log {

namespace {

// Whether the service manager has connected the descriptor to the journal, which has each line's
// time and process itself.
bool is_journal(int fd) {
    const char* stream = std::getenv("JOURNAL_STREAM");
    struct stat about = {};
    if (stream == nullptr || fstat(fd, &about) != 0) return false;
    return std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino) == stream;
}

class LineSink : public spdlog::sinks::base_sink<std::mutex> {
  public:
    void say(const std::string& line) {
        const std::lock_guard<std::mutex> lock(mutex_);
        writer_.write(for_journal_ ? priority(spdlog::level::warn) + line : line);
    }
    [[nodiscard]] bool for_journal() const { return for_journal_; }

  protected:
    void sink_it_(const spdlog::details::log_msg& message) override {
        spdlog::memory_buf_t text;
        formatter_->format(message, text);
        const std::string_view line(text.data(), text.size());
        writer_.write(for_journal_ ? priority(message.level) + std::string(line) : line);
    }
    void flush_() override {}

  private:
    // As syslog(3) numbers them; sd-daemon(3) says how the journal takes them.
    static std::string priority(spdlog::level::level_enum level) {
        switch (level) {
            case spdlog::level::err:
            case spdlog::level::critical:
                return "<3>";
            case spdlog::level::warn:
                return "<4>";
            case spdlog::level::info:
                return "<6>";
            default:
                return "<7>";
        }
    }

    LineWriter writer_{STDERR_FILENO};
    const bool for_journal_ = is_journal(STDERR_FILENO);
};

const std::shared_ptr<LineSink>& sink() {
    static const auto one = std::make_shared<LineSink>();
    return one;
}

spdlog::logger& logger() {
    static const std::shared_ptr<spdlog::logger> one = [] {
        auto made = std::make_shared<spdlog::logger>("dibsd", sink());
        made->set_pattern(sink()->for_journal() ? "%v" : "%Y-%m-%dT%H:%M:%S.%f %n[%P] %l: %v");
        return made;
    }();
    return *one;
}

void say_bounded(spdlog::level::level_enum level,
                 uint32_t uid,
                 const char* place,
                 const std::string& text) {
    if (!logger().should_log(level)) return;
    static std::mutex mutex;
    static LogThrottle throttle;
    std::optional<uint64_t> left_out;
    {
        const std::lock_guard<std::mutex> lock(mutex);
        left_out = throttle.admit(uid, place, Clock::monotonic());
    }
    if (!left_out) return;
    const std::string more = *left_out == 0 ? ""
                                            : " (" + std::to_string(*left_out) +
                                                  " more lines like it of user " +
                                                  std::to_string(uid) + " were left out)";
    logger().log(level, text + more);
}

}  // namespace

void open(const std::string& level) {
    logger().set_level(spdlog::level::from_str(level));
}
void debug(const std::string& text) {
    logger().debug(text);
}
void info(const std::string& text) {
    logger().info(text);
}
void warning(const std::string& text) {
    logger().warn(text);
}
void error(const std::string& text) {
    logger().error(text);
}
void client_info(uint32_t uid, const char* place, const std::string& text) {
    say_bounded(spdlog::level::info, uid, place, text);
}
void client_warning(uint32_t uid, const char* place, const std::string& text) {
    say_bounded(spdlog::level::warn, uid, place, text);
}
void plain(const std::string& text) {
    sink()->say(text + "\n");
}

}  // namespace dibs::log
