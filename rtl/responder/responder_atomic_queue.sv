// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_atomic_queue: atomics that wait, in the order they came. As many as there are replay
// entries, and each of them has one: there is always room, RX never waits (architecture.md rule 2).
//
// Two queues with one entrance: *where* is read when the atomic's word begins to be watched, *what*
// when it is executed. So nothing of an atomic is copied in between.
// In narrow each lies in block RAM of half its width: an item enters in two cycles.
//
// Neighbours: host_scatter → here → responder_atomic_watch (where), responder_atomic_execute (what).
`default_nettype none

module responder_atomic_queue #(
  parameter int unsigned DEPTH = 2 ** roci_config_pkg::REPLAY_BITS
) (
  input  wire                                 clk_i,
  input  wire                                 rst_i,

  input  wire                                 req_valid_i,
  output logic                                req_ready_o,
  input  roci_pkg::atomic_req_t               req_i,

  output logic                                where_valid_o,
  input  wire                                 where_ready_i,
  output responder_pkg::atomic_where_t        where_o,

  output logic                                what_valid_o,
  input  wire                                 what_ready_i,
  output responder_pkg::atomic_what_t         what_o
);

  responder_pkg::atomic_where_t where_in;
  responder_pkg::atomic_what_t what_in;
  logic where_room, what_room;

  assign where_in = '{fn: req_i.fn, addr: req_i.addr};
  assign what_in = '{qp: req_i.qp, colour: req_i.colour, is_swap: req_i.is_swap, slot: req_i.slot,
                     ordinal: req_i.ordinal, psn: req_i.psn, operands: req_i.operands};
  // Both are filled alike and emptied at different times.
  assign req_ready_o = where_room && what_room;

  if (roci_config_pkg::IS_WIDE) begin : gen_whole

    common_fifo #(.WIDTH($bits(where_in)), .DEPTH(DEPTH), .STYLE("ultra")) u_where (
      .clk_i, .rst_i,
      .in_valid_i(req_valid_i && what_room), .in_ready_o(where_room), .in_i(where_in),
      .out_valid_o(where_valid_o), .out_ready_i(where_ready_i), .out_o(where_o), .usage_o()
    );
    common_fifo #(.WIDTH($bits(what_in)), .DEPTH(DEPTH), .STYLE("ultra")) u_what (
      .clk_i, .rst_i,
      .in_valid_i(req_valid_i && where_room), .in_ready_o(what_room), .in_i(what_in),
      .out_valid_o(what_valid_o), .out_ready_i(what_ready_i), .out_o(what_o), .usage_o()
    );

  end else begin : gen_folded

    // They take the halves of an item in the same cycles: neither is ever full (above).
    localparam int unsigned WHERE_BITS = ($bits(where_in) + 1) / 2 * 2;
    localparam int unsigned WHAT_BITS = ($bits(what_in) + 1) / 2 * 2;
    logic [WHERE_BITS-1:0] where_bits;
    logic [WHAT_BITS-1:0] what_bits;

    common_fold_fifo #(.WIDTH(WHERE_BITS), .DEPTH(DEPTH), .STYLE("block")) u_where (
      .clk_i, .rst_i,
      .in_valid_i(req_valid_i), .in_ready_o(where_room), .in_i(WHERE_BITS'(where_in)),
      .out_valid_o(where_valid_o), .out_ready_i(where_ready_i), .out_o(where_bits)
    );
    common_fold_fifo #(.WIDTH(WHAT_BITS), .DEPTH(DEPTH), .STYLE("block")) u_what (
      .clk_i, .rst_i,
      .in_valid_i(req_valid_i), .in_ready_o(what_room), .in_i(WHAT_BITS'(what_in)),
      .out_valid_o(what_valid_o), .out_ready_i(what_ready_i), .out_o(what_bits)
    );
    assign where_o = responder_pkg::atomic_where_t'(where_bits[$bits(where_in)-1:0]);
    assign what_o = responder_pkg::atomic_what_t'(what_bits[$bits(what_in)-1:0]);

    always_ff @(posedge clk_i) begin
      if (!rst_i && req_valid_i) begin
        assert (where_room == what_room)
        else $error("responder_atomic_queue: more atomics than replay entries");
      end
    end

  end

endmodule

`default_nettype wire
