// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Types between the parts of queue_cq_writer and queue_eq_writer.
`default_nettype none

package queue_cq_pkg;

  localparam int unsigned INDEX_BITS = roci_hwif_pkg::CQ_INDEX_BITS;
  typedef logic [INDEX_BITS-1:0] index_t;        // free-running index of a CQ or EQ

  // A completion from either source.
  typedef struct packed {
    roci_pkg::colour_t colour;
    logic payload_failed;                        // token of a QP with a failed payload write
    roci_pkg::qp_t qp;
    roci_pkg::completion_t completion;
  } item_t;

  // Body of TOKEN_CQE_DONE.
  typedef struct packed {
    roci_pkg::cq_t cq;
    index_t index;
    logic solicited;
    logic live;                                  // the CQ is valid
    logic placed;                                // a CQE was written, else the completion is lost
    logic overflowed;                            // this one found the ring full first
    logic payload_failed;
  } done_t;

  // Where a CQE goes and what rides along.
  typedef struct packed {
    roci_pkg::colour_t colour;
    roci_pkg::qp_t qp;
    roci_pkg::fn_t fn;
    roci_pkg::addr_t addr;
    done_t done;
    roci_hwif_pkg::cqe_t cqe;
  } placed_t;

  // Body of TOKEN_EQE_DONE.
  typedef struct packed {
    roci_pkg::eq_t eq;
    index_t index;
  } eq_done_t;

endpackage

`default_nettype wire
