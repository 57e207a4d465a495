// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Build limits of the configuration `wide`: 512-bit data path, 250 MHz class, 100 GbE on AMD
// UltraScale+ cards; the simulator's default. Same names as roci_config_narrow.sv: a build
// compiles exactly one of the two. Why these: architecture.md 7.
`default_nettype none

package roci_config_pkg;
  localparam bit IS_WIDE = 1'b1;
  localparam int unsigned DATA_BYTES = 64;         // data path, AXI and Ethernet stream width
  localparam int unsigned CLOCK_KHZ = 250000;      // core clock class; timers count in it
  localparam int unsigned TICK_CYCLES = 1024;      // cycles per 4.096 us (IBTA 9.7.6.1.3)

  localparam int unsigned FN_BITS = 4;             // 16 functions, 0 = management
  localparam int unsigned QP_BITS = 10;            // 1024 queue pairs
  localparam int unsigned CQ_BITS = 10;            // 1024 completion queues
  localparam int unsigned EQ_BITS = 6;             // 64 event queues
  localparam int unsigned SRQ_BITS = 8;            // 256 shared receive queues
  localparam int unsigned MR_BITS = 14;            // 16 K memory regions and windows
  localparam int unsigned PD_BITS = 10;            // 1024 protection domains
  localparam int unsigned GID_BITS = 4;            // 16 GIDs of the port
  localparam int unsigned VECTOR_BITS = 3;         // 8 interrupt vectors per function

  localparam int unsigned INFLIGHT_BITS = 14;      // 16 K in-flight records in all
  localparam int unsigned REPLAY_BITS = 12;        // 4 K READ/ATOMIC replay entries in all
  localparam int unsigned READ_BITS = 12;          // 4 K outstanding-READ records in all
  localparam int unsigned SLOT_BITS = 12;          // 4 K receive slots of 64 B units in all
  localparam int unsigned MAX_SGE_RD = 4;          // SGEs of one READ work request

  localparam int unsigned DMA_READS = 256;         // outstanding AXI reads
  localparam int unsigned DMA_WRITES = 128;        // outstanding AXI writes
  localparam int unsigned WQE_LANDING_BLOCKS = 128;  // fetched SQ blocks on their way
  localparam int unsigned TX_DESCRIPTORS = 256;    // decided packets waiting for payload
  localparam int unsigned PAYLOAD_LANDING_BYTES = 32768;
  localparam int unsigned MTT_MISSES = 128;        // outstanding translation fetches
  localparam int unsigned MTT_CACHE_BITS = 12;     // 4 K cached page addresses
  localparam int unsigned RX_BUFFER_BYTES = 65536;
  localparam int unsigned QUANTUM_PACKETS = 16;    // packets of a QP before another one's turn
endpackage

`default_nettype wire
