// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "sysfs.hpp"

#include "../core/address.hpp"
#include "../transport/socket.hpp"
#include "devices.hpp"

#include <roci/error.hpp>
#include <roci/log.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace roci::preload {
namespace {

constexpr char CLASS[] = "/sys/class/infiniband";
constexpr char VERBS_CLASS[] = "/sys/class/infiniband_verbs";
constexpr char DEV[] = "/dev/infiniband";

struct File {
  std::string path;
  std::string text;
};

// System calls, not functions of the C library: those are interposed, by us and maybe by others.
int raw_lstat(const char* path, struct stat* to) {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW));
}

int raw_fstat(int fd, struct stat* to) {
  return static_cast<int>(syscall(SYS_newfstatat, fd, "", to, AT_EMPTY_PATH));
}

std::string guid_text(const hwif::ByteArray<8>& g) {
  return format("%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1], g[2], g[3], g[4], g[5], g[6],
                g[7]);
}

std::string rate_text(uint32_t mbps) {
  if (mbps >= 100000) return "100 Gb/sec (4X EDR)";
  if (mbps >= 40000) return "40 Gb/sec (4X QDR)";
  if (mbps >= 10000) return "10 Gb/sec (1X QDR)";
  return "2.5 Gb/sec (1X SDR)";
}

// The files of one device. Names and formats are those of the Linux kernel (drivers/infiniband/core).
void describe(const DeviceEntry& entry, std::vector<File>& files) {
  const NicInfo& nic = entry.nic;
  const std::string device = std::string(CLASS) + "/" + nic.name;
  const auto add = [&](const std::string& name, const std::string& text) {
    files.push_back({device + "/" + name, text});
  };
  add("node_type", "1: CA");
  add("node_guid", guid_text(nic.node_guid));
  add("sys_image_guid", guid_text(nic.node_guid));
  add("node_desc", nic.name);
  add("fw_ver", "");
  add("hca_type", "Rocinante");
  add("hw_rev", "0");
  add("board_id", "ROCI0000001");
  add("device/vendor", format("0x%04x", hwif::PCI_VENDOR_ID));
  add("device/device", format("0x%04x", hwif::PCI_DEVICE_ID));
  add("device/numa_node", "-1");
  const std::string port = "ports/1/";
  add(port + "state", nic.link_up ? "4: ACTIVE" : "1: DOWN");
  add(port + "phys_state", nic.link_up ? "5: LinkUp" : "3: Disabled");
  add(port + "rate", rate_text(nic.speed_mbps));
  add(port + "link_layer", "Ethernet");
  add(port + "cap_mask", "0x04000000");
  add(port + "lid", "0x0");
  add(port + "lid_mask_count", "0");
  add(port + "sm_lid", "0x0");
  add(port + "sm_sl", "0");
  for (unsigned i = 0; i < nic.gid_table_length; ++i) {
    Gid gid{};
    for (const PublishedGid& used : nic.gids) {
      if (used.index == i) gid = used.gid;
    }
    add(port + format("gids/%u", i), gid_text(gid));
    // Also for empty entries: programs give up when one cannot be read (NCCL).
    add(port + format("gid_attrs/types/%u", i), "IB/RoCE v1");
    add(port + format("gid_attrs/ndevs/%u", i), "");
  }
  for (size_t i = 0; i < nic.pkeys.size(); ++i) {
    add(port + format("pkeys/%zu", i), format("0x%04x", nic.pkeys[i]));
  }
  const std::string verbs = std::string(VERBS_CLASS) + "/" + entry.device.dev_name;
  files.push_back({verbs + "/ibdev", nic.name});
  files.push_back({verbs + "/abi_version", "1"});
  files.push_back({verbs + "/dev", format("231:%u", 192 + entry.uverbs)});
}

std::vector<File> describe_all(const std::vector<DeviceEntry*>& entries) {
  std::vector<File> files;
  for (const DeviceEntry* entry : entries) describe(*entry, files);
  if (!entries.empty()) files.push_back({std::string(VERBS_CLASS) + "/abi_version", "6"});
  return files;
}

// ---- the tree -----------------------------------------------------------------------------------

struct Tree {
  std::mutex mutex;
  // Process that made it: a child makes its own.
  pid_t owner = 0;
  // Empty if there is none.
  std::string root;
  // Of the root, while its process lives.
  UniqueFd lock;
};

Tree& tree() {
  static Tree& instance = *new Tree;
  return instance;
}

void make_directories(std::string path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    path[at] = 0;
    mkdir(path.c_str(), 0700);
    path[at] = '/';
  }
}

// A directory of ours in `parent`; empty if it is none, belongs to somebody else, or is a link: the
// temporary files are everybody's, and a name there says nothing.
UniqueFd own_directory(int parent, const char* name) {
  UniqueFd directory(static_cast<int>(
      syscall(SYS_openat, parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
  struct stat status {};
  if (directory && (raw_fstat(directory.get(), &status) != 0 || status.st_uid != geteuid())) {
    directory.reset();
  }
  return directory;
}

// Removes `name` in `parent` and all in it, never by a path that somebody else could bend.
void remove_tree(int parent, const char* name, UniqueFd directory) {
  const int fd = directory.release();
  DIR* listing = fdopendir(fd);
  if (listing == nullptr) {
    close(fd);
    return;
  }
  while (const dirent* entry = readdir(listing)) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (unlinkat(fd, entry->d_name, 0) == 0) continue;
    if (UniqueFd inner = own_directory(fd, entry->d_name)) {
      remove_tree(fd, entry->d_name, std::move(inner));
    }
  }
  closedir(listing);
  unlinkat(parent, name, AT_REMOVEDIR);
}

std::string temporary_directory() {
  const char* directory = getenv("TMPDIR");
  return directory != nullptr && *directory == '/' ? directory : "/tmp";
}

// Trees of processes that were killed: nobody has that number, and nobody holds the tree's lock (a
// process of another PID namespace has a number that says nothing here).
void sweep(const std::string& directory, const std::string& prefix) {
  DIR* listing = opendir(directory.c_str());
  if (listing == nullptr) return;
  while (const dirent* entry = readdir(listing)) {
    int pid = 0;
    char rest = 0;
    if (sscanf(entry->d_name, (prefix + "%d-%c").c_str(), &pid, &rest) != 2 || pid <= 0) continue;
    if (kill(pid, 0) == 0 || errno != ESRCH) continue;
    UniqueFd tree = own_directory(dirfd(listing), entry->d_name);
    if (tree && flock(tree.get(), LOCK_EX | LOCK_NB) == 0) {
      remove_tree(dirfd(listing), entry->d_name, std::move(tree));
    }
  }
  closedir(listing);
}

// Makes the root and locks it; it gets the name that sweep() looks for only then.
// @return its path, or empty with a line in the log
std::string make_root(const std::string& directory, const std::string& prefix, UniqueFd& lock) {
  std::string root = directory + "/roci-new-XXXXXX";
  if (mkdtemp(root.data()) != nullptr) {
    lock = own_directory(AT_FDCWD, root.c_str());
    const std::string made = root;
    root = directory + "/" + prefix + format("%d-", getpid()) + made.substr(made.size() - 6);
    if (lock && flock(lock.get(), LOCK_EX | LOCK_NB) == 0 &&
        rename(made.c_str(), root.c_str()) == 0) {
      return root;
    }
    const int error = errno;
    rmdir(made.c_str());
    errno = error;
  }
  log(LogLevel::WARN, "%s: %s; programs find no /sys/class/infiniband", root.c_str(),
      errno_text(errno).c_str());
  lock.reset();
  return {};
}

// Real entries of a class directory appear beside ours.
void link_real_entries(const std::string& root, const char* directory) {
  DIR* listing = opendir(directory);
  if (listing == nullptr) return;
  while (const dirent* entry = readdir(listing)) {
    if (entry->d_name[0] == '.') continue;
    const std::string real = std::string(directory) + "/" + entry->d_name;
    // Ours are there already, and stay.
    [[maybe_unused]] const int result =
        symlink(real.c_str(), (root + directory + "/" + entry->d_name).c_str());
  }
  closedir(listing);
}

void build(Tree& t) {
  t.owner = getpid();
  t.root.clear();
  t.lock.reset();  // the parent has its own
  const auto entries = our_devices();
  if (entries.empty()) return;
  const std::string directory = temporary_directory();
  const std::string prefix = format("roci-sysfs-%u-", getuid());
  sweep(directory, prefix);
  const std::string root = make_root(directory, prefix, t.lock);
  if (root.empty()) return;
  for (const File& file : describe_all(entries)) {
    const std::string path = root + file.path;
    make_directories(path);
    FILE* to = fopen(path.c_str(), "we");
    if (to == nullptr) continue;
    fprintf(to, "%s\n", file.text.c_str());
    fclose(to);
  }
  make_directories(root + DEV + "/");
  for (const DeviceEntry* entry : entries) {
    // A character device that everybody may read and write.
    [[maybe_unused]] const int result =
        symlink("/dev/null", (root + DEV + "/" + entry->device.dev_name).c_str());
  }
  link_real_entries(root, CLASS);
  link_real_entries(root, VERBS_CLASS);
  link_real_entries(root, DEV);
  t.root = root;
}

[[gnu::destructor]] void remove_own_tree() {
  Tree& t = tree();
  if (t.root.empty() || t.owner != getpid()) return;
  if (UniqueFd root = own_directory(AT_FDCWD, t.root.c_str())) {
    remove_tree(AT_FDCWD, t.root.c_str(), std::move(root));
  }
}

bool starts_with(const char* path, const char* prefix) {
  return strncmp(path, prefix, strlen(prefix)) == 0;
}

// While the tree is built, paths mean what they say.
thread_local bool building = false;

}  // namespace

void lock_tree() noexcept { tree().mutex.lock(); }
void unlock_tree() noexcept { tree().mutex.unlock(); }
void renew_tree_lock() noexcept { new (&tree().mutex) std::mutex; }

bool has_real_devices() noexcept {
  struct stat status {};
  return raw_lstat(CLASS, &status) == 0;
}

int read_pretended_file(const char* directory, const char* file, char* text, size_t size) noexcept {
  if (!starts_with(directory, CLASS)) return -1;
  try {
    const std::string path = std::string(directory) + "/" + file;
    for (const File& known : describe_all(our_devices())) {
      if (known.path != path) continue;
      const size_t n = std::min(known.text.size(), size - (size != 0 ? 1 : 0));
      std::memcpy(text, known.text.data(), n);
      if (size != 0) text[n] = 0;
      return static_cast<int>(n);
    }
  } catch (const std::exception&) {
    // As if it were not there.
  }
  return -1;
}

const char* translate(const char* path, char* space) noexcept {
  if (path == nullptr || path[0] != '/' || (path[1] != 's' && path[1] != 'd')) return path;
  if (!starts_with(path, CLASS) && !starts_with(path, DEV)) return path;
  if (building || getenv("ROCI_SIM") == nullptr) return path;
  const int saved = errno;
  const char* answer = path;
  try {
    handle_fork();
    Tree& t = tree();
    const std::lock_guard lock(t.mutex);
    if (t.owner != getpid()) {
      building = true;
      build(t);
      building = false;
    }
    struct stat status {};
    if (!t.root.empty() && t.root.size() + strlen(path) < PATH_MAX) {
      snprintf(space, PATH_MAX, "%s%s", t.root.c_str(), path);
      if (raw_lstat(space, &status) == 0) answer = space;
    }
  } catch (const std::exception&) {
    building = false;
  }
  errno = saved;
  return answer;
}

}  // namespace roci::preload
