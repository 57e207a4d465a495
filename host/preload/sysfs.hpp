// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What a kernel would show of our devices under /sys/class/infiniband*, /dev/infiniband: some programs
// (UCX, Open MPI, NCCL) look there themselves.
#pragma once

#include <cstddef>

namespace roci::preload {

/// Whether the kernel has RDMA devices of its own.
bool has_real_devices() noexcept;

/// Reads a file of one of our devices as ibv_read_sysfs_file() does: without the newline at the end.
/// @return length, or -1 if it is not ours
int read_pretended_file(const char* directory, const char* file, char* text, size_t size) noexcept;

/// Around fork: holds the tree while it is made, so that the child finds it whole or not begun.
void lock_tree() noexcept;
/// In the parent after it.
void unlock_tree() noexcept;
/// In the child after it.
void renew_tree_lock() noexcept;

/// Where a path really is: `path` itself, or for those of our devices its place in a tree that is
/// made among the temporary files at the first use and removed at the end of the process.
/// @param space  room for the answer, PATH_MAX bytes
const char* translate(const char* path, char* space) noexcept;

}  // namespace roci::preload
