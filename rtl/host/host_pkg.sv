// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Types between the ordered writer (host_dma_write) and responder_atomic.
`default_nettype none

package host_pkg;

  // A word of the bus by its address, as the DMA domains of functions name it.
  typedef struct packed {
    roci_pkg::fn_t fn;
    logic [63:roci_pkg::LANE_BITS] word;
  } bus_word_t;

  // Every word that leaves for memory, in the order of the bus, one cycle behind its place in that
  // order (host_dma_write). Writes of functions in reset do not leave.
  typedef struct packed {
    logic valid;
    bus_word_t place;
    logic [roci_pkg::DATA_BYTES-1:0] strobe;
    logic [roci_pkg::DATA_BITS-1:0] data;
  } written_t;

  // What comes back to the engine with its tokens.
  localparam int unsigned ATOMIC_SLOT_BITS = roci_config_pkg::IS_WIDE ? 4 : 2;
  typedef struct packed {
    logic executed;                  // an atomic; else all writes before `slot` was watched
    logic [ATOMIC_SLOT_BITS-1:0] slot;
  } atomic_tag_t;

  // responder_atomic -> host_dma_write: a token, or a write of 8 bytes with its token. Of a token only
  // the tag counts.
  typedef struct packed {
    logic is_token;
    roci_pkg::fn_t fn;
    logic [63:3] addr;
    logic [63:0] data;
    atomic_tag_t tag;
  } atomic_write_t;

endpackage

`default_nettype wire
