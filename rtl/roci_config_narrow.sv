// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Build limits of the configuration `narrow`: 64-bit data path, 125 MHz class, 1 GbE on Lattice
// ECP5; also the fast model for long soaks. Same names as roci_config_wide.sv: a build
// compiles exactly one of the two. Why these: architecture.md 7.
`default_nettype none

package roci_config_pkg;
  localparam bit IS_WIDE = 1'b0;
  localparam int unsigned DATA_BYTES = 8;          // data path, AXI and Ethernet stream width
  localparam int unsigned CLOCK_KHZ = 125000;      // core clock class; timers count in it
  localparam int unsigned TICK_CYCLES = 512;       // cycles per 4.096 us (IBTA 9.7.6.1.3)

  localparam int unsigned FN_BITS = 3;             // 8 functions, 0 = management
  localparam int unsigned QP_BITS = 6;             // 64 queue pairs
  localparam int unsigned CQ_BITS = 6;             // 64 completion queues
  localparam int unsigned EQ_BITS = 4;             // 16 event queues
  localparam int unsigned SRQ_BITS = 4;            // 16 shared receive queues
  localparam int unsigned MR_BITS = 8;             // 256 memory regions and windows
  localparam int unsigned PD_BITS = 6;             // 64 protection domains
  localparam int unsigned GID_BITS = 3;            // 8 GIDs of the port
  localparam int unsigned VECTOR_BITS = 3;         // 8 interrupt vectors per function

  localparam int unsigned INFLIGHT_BITS = 9;       // 512 in-flight records in all
  localparam int unsigned REPLAY_BITS = 8;         // 256 READ/ATOMIC replay entries in all
  localparam int unsigned READ_BITS = 8;           // 256 outstanding-READ records in all
  localparam int unsigned SLOT_BITS = 8;           // 256 receive slots of 64 B units in all
  localparam int unsigned MAX_SGE_RD = 1;          // SGEs of one READ work request

  localparam int unsigned DMA_READS = 64;          // outstanding AXI reads
  localparam int unsigned DMA_WRITES = 32;         // outstanding AXI writes
  localparam int unsigned WQE_LANDING_BLOCKS = 32;   // fetched SQ blocks on their way
  localparam int unsigned TX_DESCRIPTORS = 16;     // decided packets waiting for payload
  localparam int unsigned PAYLOAD_LANDING_BYTES = 8192;
  localparam int unsigned MTT_MISSES = 16;         // outstanding translation fetches
  localparam int unsigned MTT_CACHE_BITS = 8;      // 256 cached page addresses
  localparam int unsigned RX_BUFFER_BYTES = 16384;
  localparam int unsigned QUANTUM_PACKETS = 16;    // packets of a QP before another one's turn
endpackage

`default_nettype wire
