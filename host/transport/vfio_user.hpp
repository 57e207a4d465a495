// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Messages of the simulator's socket: vfio-user as its specification has it, and our own commands.
// The rules of their use: README.md. Host byte order, no padding.
#pragma once

#include <cstddef>
#include <cstdint>

namespace roci::vfio_user {

/// Commands. Names and numbers of the specification; those from 0x5201 on are ours.
enum class Command : uint16_t {
  VERSION = 1,
  DMA_MAP = 2,
  DMA_UNMAP = 3,
  DEVICE_GET_INFO = 4,
  DEVICE_GET_REGION_INFO = 5,
  DEVICE_GET_IRQ_INFO = 7,
  DEVICE_SET_IRQS = 8,
  REGION_READ = 9,
  REGION_WRITE = 10,
  DMA_READ = 11,
  DMA_WRITE = 12,
  DEVICE_RESET = 13,
  ROCI_NIC_INFO = 0x5201,
  ROCI_RESOLVE = 0x5202,
  ROCI_MEMORY = 0x5203,
  ROCI_STATISTICS = 0x5204,
};

/// Before every message.
struct Header {
  uint16_t id;
  uint16_t command;
  /// Whole message, this header included.
  uint32_t size;
  uint32_t flags;
  /// errno value of a reply with FLAG_ERROR.
  uint32_t error;
};
static_assert(sizeof(Header) == 16);

inline constexpr uint32_t FLAG_REPLY = 0x1;
inline constexpr uint32_t FLAG_NO_REPLY = 0x10;
inline constexpr uint32_t FLAG_ERROR = 0x20;

inline constexpr uint16_t VERSION_MAJOR = 0;
inline constexpr uint16_t VERSION_MINOR = 1;
/// Version of our own commands, in the capabilities.
inline constexpr unsigned ROCI_PROTOCOL = 1;

/// VERSION, both directions; JSON with the capabilities follows, with its terminating zero.
struct Version {
  uint16_t major;
  uint16_t minor;
};
static_assert(sizeof(Version) == 4);

/// DMA_MAP. With a file descriptor: `offset` bytes into it. Without: `offset` is the address of the
/// memory in the client, 0 if the client does not tell (then only messages reach it).
struct DmaMap {
  uint32_t argsz;
  uint32_t flags;
  uint64_t offset;
  uint64_t address;
  uint64_t size;
};
static_assert(sizeof(DmaMap) == 32);
inline constexpr uint32_t DMA_MAP_READ = 1;
inline constexpr uint32_t DMA_MAP_WRITE = 2;

/// DMA_UNMAP and its reply.
struct DmaUnmap {
  uint32_t argsz;
  uint32_t flags;
  uint64_t address;
  uint64_t size;
};
static_assert(sizeof(DmaUnmap) == 24);
/// Everything; address and size are 0.
inline constexpr uint32_t DMA_UNMAP_ALL = 2;

/// DEVICE_GET_INFO and its reply.
struct DeviceInfo {
  uint32_t argsz;
  uint32_t flags;
  uint32_t num_regions;
  uint32_t num_irqs;
};
static_assert(sizeof(DeviceInfo) == 16);
inline constexpr uint32_t DEVICE_RESETTABLE = 1;
inline constexpr uint32_t DEVICE_PCI = 2;

/// DEVICE_GET_REGION_INFO and its reply.
struct RegionInfo {
  uint32_t argsz;
  uint32_t flags;
  uint32_t index;
  uint32_t cap_offset;
  uint64_t size;
  uint64_t offset;
};
static_assert(sizeof(RegionInfo) == 32);
inline constexpr uint32_t REGION_READABLE = 1;
inline constexpr uint32_t REGION_WRITABLE = 2;

/// DEVICE_GET_IRQ_INFO and its reply.
struct IrqInfo {
  uint32_t argsz;
  uint32_t flags;
  uint32_t index;
  uint32_t count;
};
static_assert(sizeof(IrqInfo) == 16);

/// DEVICE_SET_IRQS; one file descriptor (eventfd) for each of `count` vectors comes with it.
struct IrqSet {
  uint32_t argsz;
  uint32_t flags;
  uint32_t index;
  uint32_t start;
  uint32_t count;
};
static_assert(sizeof(IrqSet) == 20);
inline constexpr uint32_t IRQ_DATA_EVENTFD = 0x04;
inline constexpr uint32_t IRQ_ACTION_TRIGGER = 0x20;
inline constexpr uint32_t IRQ_MSIX = 2;

/// REGION_READ and REGION_WRITE; data follows a write and the reply to a read.
struct RegionAccess {
  uint64_t offset;
  uint32_t region;
  uint32_t count;
};
static_assert(sizeof(RegionAccess) == 16);
inline constexpr uint32_t REGION_BAR0 = 0;

/// A doorbell as one piece: REGION_WRITE of 8 bytes without reply.
struct RegionWrite64 {
  Header header;
  RegionAccess access;
  uint64_t value;
};
static_assert(sizeof(RegionWrite64) == 40);

/// DMA_READ and DMA_WRITE, server to client; data follows a write and the reply to a read.
struct DmaAccess {
  uint64_t address;
  uint64_t count;
};
static_assert(sizeof(DmaAccess) == 16);

/// Largest data of one DMA or region message. Messages stay below what a Unix socket takes as one
/// piece (32 KB), so that doorbells, sent without a lock, never cut one in two.
inline constexpr uint32_t MAX_DATA = 16384;

/// Reply to ROCI_NIC_INFO; `gid_count` NicGid and then `pkey_count` P_Keys of 2 bytes follow.
struct NicInfo {
  uint64_t hwif_hash;
  uint8_t node_guid[8];
  uint8_t mac[6];
  uint8_t link_up;
  /// Code of `ibv_mtu`.
  uint8_t active_mtu;
  uint32_t speed_mbps;
  uint16_t functions_free;
  uint16_t gid_table_length;
  uint16_t gid_count;
  uint16_t pkey_count;
  uint32_t reserved;
};
static_assert(sizeof(NicInfo) == 40);

/// A used entry of the GID table.
struct NicGid {
  uint8_t gid[16];
  uint16_t index;
  /// `gid_type` of hwif/admin.toml.
  uint8_t type;
  uint8_t reserved[5];
};
static_assert(sizeof(NicGid) == 24);

/// ROCI_RESOLVE.
struct Resolve {
  uint8_t gid[16];
};
static_assert(sizeof(Resolve) == 16);

/// Its reply; ENOENT if the GID is unknown.
struct ResolveReply {
  uint8_t mac[6];
  uint8_t reserved[2];
};
static_assert(sizeof(ResolveReply) == 8);

/// ROCI_MEMORY: try to read `nonce` at `nonce_address` of the client's process.
struct Memory {
  uint64_t nonce_address;
  uint8_t nonce[32];
};
static_assert(sizeof(Memory) == 40);

/// Its reply: how memory mapped without a file descriptor is reached.
struct MemoryReply {
  uint32_t method;
  uint32_t reserved;
};
static_assert(sizeof(MemoryReply) == 8);
inline constexpr uint32_t MEMORY_MESSAGES = 0;
inline constexpr uint32_t MEMORY_PROCESS_VM = 1;

/// ROCI_STATISTICS: text about the whole simulation from byte `offset` on. It is drawn up when `offset`
/// is 0; the rest is asked for piece by piece.
struct Statistics {
  uint32_t format;
  uint32_t offset;
};
static_assert(sizeof(Statistics) == 8);
inline constexpr uint32_t STATISTICS_TABLE = 0;
inline constexpr uint32_t STATISTICS_JSON = 1;

/// Its reply, with at most MAX_DATA bytes of the text behind it.
struct StatisticsReply {
  /// Bytes of the whole text.
  uint32_t total;
  uint32_t reserved;
};
static_assert(sizeof(StatisticsReply) == 8);

}  // namespace roci::vfio_user
