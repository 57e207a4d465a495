// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// context_pkg: types between the parts of the translation cache (context_mtt_*), where in a page an
// address is, what a failed address check is in a completion, and what context_timer hears of rewinds.
`default_nettype none

package context_pkg;

  localparam int unsigned INDEX_BITS = roci_config_pkg::MTT_CACHE_BITS - 3;   // lines of the cache
  localparam int unsigned PAGE_BITS = 52;              // page address without its 12 low bits

  typedef logic [INDEX_BITS-1:0] mtt_index_t;
  typedef logic [48:0] mtt_line_number_t;              // page index / 8

  // What makes a cached line the right one. The incarnation changes with every registration.
  typedef struct packed {
    roci_pkg::mr_t mr;
    logic [7:0] incarnation;
    mtt_line_number_t line;
  } mtt_tag_t;

  typedef enum logic [1:0] {LINE_EMPTY = 2'd0, LINE_PENDING = 2'd1, LINE_VALID = 2'd2} mtt_state_e;

  typedef struct packed {
    mtt_state_e state;
    mtt_tag_t tag;
  } mtt_key_t;

  // Page addresses that come in one beat and make one word of the cache: 8 in wide, 1 in narrow.
  localparam int unsigned WORD_PAGES = roci_config_pkg::DATA_BYTES / 8;
  typedef logic [WORD_PAGES-1:0][PAGE_BITS-1:0] mtt_pages_t;

  // A part of a request that lies in one 4 KB page of host memory.
  typedef struct packed {
    roci_pkg::xlat_status_e status;
    logic last;                                        // last part of its request
    logic paged;                                       // needs the cache; else addr is the answer
    roci_pkg::fn_t fn;
    roci_pkg::packet_len_t length;
    roci_pkg::addr_t addr;                             // DMA address, or position if paged
    logic [4:0] page_shift;
    mtt_tag_t tag;
    logic [2:0] page;                                  // which of the line
    roci_pkg::addr_t line_address;                     // DMA address of the line
  } mtt_part_t;

  // A part that was looked up and waits for its turn.
  typedef struct packed {
    roci_pkg::xlat_status_e status;
    logic last;
    logic fetched;                                     // its page comes from the bus
    roci_pkg::packet_len_t length;
    roci_pkg::addr_t addr;                             // the answer; position if fetched
    logic [4:0] page_shift;
  } mtt_looked_t;

  // The DMA address of a position in a page of 2^page_shift bytes, at least 4 KB, that begins there.
  function automatic roci_pkg::addr_t page_position(input logic [PAGE_BITS-1:0] page,
                                                    input roci_pkg::addr_t position,
                                                    input logic [4:0] page_shift);
    roci_pkg::addr_t addr;
    addr = position;
    for (int unsigned b = 12; b < 64; b++) begin
      if (b >= 32'(page_shift)) addr[b] = page[b-12];
    end
    return addr;
  endfunction

  // {status, vendor status} of a completion whose local key or address failed.
  function automatic logic [14:0] xlat_failure(input roci_pkg::xlat_status_e status);
    unique case (status)
      roci_pkg::XLAT_BAD_PD: return {7'(roci_hwif_pkg::CQE_STATUS_LOC_PROT_ERR),
                                     8'(roci_hwif_pkg::VENDOR_STATUS_KEY_PD)};
      roci_pkg::XLAT_BAD_RIGHTS: return {7'(roci_hwif_pkg::CQE_STATUS_LOC_PROT_ERR),
                                         8'(roci_hwif_pkg::VENDOR_STATUS_KEY_RIGHTS)};
      roci_pkg::XLAT_BAD_BOUNDS: return {7'(roci_hwif_pkg::CQE_STATUS_LOC_PROT_ERR),
                                         8'(roci_hwif_pkg::VENDOR_STATUS_KEY_BOUNDS)};
      roci_pkg::XLAT_BUS_ERROR: return {7'(roci_hwif_pkg::CQE_STATUS_LOC_QP_OP_ERR),
                                        8'(roci_hwif_pkg::VENDOR_STATUS_TABLE_BUS)};
      default: return {7'(roci_hwif_pkg::CQE_STATUS_LOC_PROT_ERR),
                       8'(roci_hwif_pkg::VENDOR_STATUS_KEY_INVALID)};
    endcase
  endfunction

  // requester_retry -> context_timer: the QP went back, and has sent nothing since. Always accepted,
  // never in the cycle of a sent_t, after the last packet that was `current` before.
  typedef struct packed {
    logic valid;
    roci_pkg::qp_t qp;
  } rewound_t;

endpackage

`default_nettype wire
