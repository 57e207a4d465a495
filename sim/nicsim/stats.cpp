// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// nicsim stats: asks a running nicsim for its statistics.
#include <roci/error.hpp>

#include <transport/simulator.hpp>
#include <transport/socket.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "nicsim/run.hpp"
#include "server/socket_files.hpp"

namespace roci::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPatience{10000};

// To the upper left corner, and nothing behind it.
constexpr const char* kClear = "\x1b[H\x1b[J";

// Folders of the sockets of `nicsim run` that are ours and served.
std::vector<std::string> running() {
  std::vector<std::string> out;
  for (const std::string& base : private_folder_places()) {
    std::error_code error;
    for (fs::directory_iterator entry(base, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string path = entry->path();
      const bool named = entry->path().filename().string().starts_with(kPrivateFolderPrefix);
      if (named && vfio_user::connect_to(path + "/" + socket_name(0))) out.push_back(path);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// The folder of the simulation that is meant.
std::string folder_of(const Options& options) {
  if (!options.folder.empty()) return options.folder;
  if (const char* given = getenv("ROCI_SIM"); given != nullptr && *given != 0) return given;
  std::vector<std::string> found = running();
  const std::string serving = default_folder();
  if (vfio_user::connect_to(serving + "/" + socket_name(0))) found.push_back(serving);
  if (found.empty()) {
    fail(ENOENT, "no nicsim runs: none serves in %s, and there is no nicsim run; or use --dir",
         serving.c_str());
  }
  if (found.size() > 1) {
    std::string list;
    for (const std::string& folder : found) list += " " + folder;
    fail(EINVAL, "several nicsims run, choose with --dir:%s", list.c_str());
  }
  return found.front();
}

// One connection that takes no function.
UniqueFd ask_at(const std::string& folder) {
  const std::string path = folder + "/" + socket_name(0);
  UniqueFd fd = vfio_user::connect_to(path);
  if (!fd) fail(errno, "no nicsim at %s: %s", path.c_str(), errno_text(errno).c_str());
  negotiate(fd.get(), "query", kPatience);
  return fd;
}

// @return nothing if the simulation has ended
std::optional<std::string> text_from(int socket, bool json) {
  std::string out;
  uint32_t total = 1;
  while (out.size() < total) {
    const vfio_user::Statistics ask{
        json ? vfio_user::STATISTICS_JSON : vfio_user::STATISTICS_TABLE,
        static_cast<uint32_t>(out.size())};
    const std::span<const uint8_t> parts[] = {vfio_user::bytes_of(ask)};
    const vfio_user::Header header{3, static_cast<uint16_t>(vfio_user::Command::ROCI_STATISTICS),
                                   sizeof(vfio_user::Header) + sizeof ask, 0, 0};
    vfio_user::Message reply;
    if (!vfio_user::send_message(socket, header, parts, {}) ||
        !vfio_user::receive_message(socket, reply)) {
      return std::nullopt;
    }
    vfio_user::StatisticsReply answer{};
    if ((reply.header.flags & vfio_user::FLAG_ERROR) != 0 || reply.body.size() <= sizeof answer) {
      fail(EPROTO, "the nicsim there has no statistics: is it of the same build?");
    }
    std::memcpy(&answer, reply.body.data(), sizeof answer);
    total = answer.total;
    out.append(reply.body.begin() + sizeof answer, reply.body.end());
  }
  return out;
}

}  // namespace

int stats(const Options& options) {
  const UniqueFd socket = ask_at(folder_of(options));
  const bool clear = options.watch_s && !options.json && isatty(STDOUT_FILENO) == 1;
  for (bool first = true;; first = false) {
    const auto text = text_from(socket.get(), options.json);
    if (!text) {
      if (first) fail(ECONNRESET, "the nicsim there does not answer");
      say("the simulation has ended");
      return 0;
    }
    // whoever reads this may have gone: that is the end, too
    if (std::fputs(((clear ? kClear : "") + *text).c_str(), stdout) < 0 ||
        std::fflush(stdout) != 0 || !options.watch_s) {
      return 0;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(*options.watch_s));
  }
}

}  // namespace roci::sim
