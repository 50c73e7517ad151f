// broker/log.cpp -- text for people, on standard error.
// SPDX-License-Identifier: Apache-2.0
#include "broker/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace dibs::log {

namespace {

spdlog::logger& logger() {
    static const std::shared_ptr<spdlog::logger> one = [] {
        auto made = std::make_shared<spdlog::logger>(
            "dibsd", std::make_shared<spdlog::sinks::stderr_sink_mt>());
        made->set_pattern("%Y-%m-%dT%H:%M:%S.%f %n[%P] %l: %v");
        made->flush_on(spdlog::level::info);
        return made;
    }();
    return *one;
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

}  // namespace dibs::log
