// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// queue_bcast_wake: turns broadcasts that must always be accepted into a stream of wakes.
//
// A few are buffered. If more come at once than fit, none is lost: a sweep then wakes every queue
// pair once. A wake without need costs a look at the QP's flags, so the sweep is harmless and the
// buffer may be small.
//
// Does not: keep the order of wakes, nor their number (several of one QP may become one).
// Neighbours: context_qp_state, context_timer → here → queue_sq_scheduler (inside it).
`default_nettype none

module queue_bcast_wake #(
  parameter int unsigned DEPTH = 4                   // broadcasts buffered, >= 2
) (
  input  wire               clk_i,
  input  wire               rst_i,

  input  wire               bcast_valid_i,           // always accepted
  input  roci_pkg::qp_t     bcast_i,

  output logic              wake_valid_o,
  input  wire               wake_ready_i,
  output roci_pkg::qp_t     wake_o
);

  logic fifo_ready, fifo_valid;
  roci_pkg::qp_t fifo_qp;

  logic sweep_q;                       // the sweep is on
  logic again_q;                       // one was lost during the sweep: sweep once more
  roci_pkg::qp_t sweep_qp_q;           // next QP of the sweep
  logic lost;
  logic sweep_end;                     // last QP of the sweep is taken

  logic choose_sweep_q;                // whose turn it is, the sweep's or the buffer's

  assign lost = bcast_valid_i && !fifo_ready;
  assign sweep_end = choose_sweep_q && sweep_q && wake_ready_i && sweep_qp_q == '1;
  assign wake_valid_o = choose_sweep_q ? sweep_q : fifo_valid;
  assign wake_o = choose_sweep_q ? sweep_qp_q : fifo_qp;

  common_fifo #(.WIDTH($bits(roci_pkg::qp_t)), .DEPTH(DEPTH)) u_fifo (
    .clk_i, .rst_i,
    .in_valid_i(bcast_valid_i), .in_ready_o(fifo_ready), .in_i(bcast_i),
    .out_valid_o(fifo_valid), .out_ready_i(wake_ready_i && !choose_sweep_q), .out_o(fifo_qp),
    .usage_o()
  );

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      sweep_q <= 1'b0;
      again_q <= 1'b0;
      sweep_qp_q <= '0;
      choose_sweep_q <= 1'b0;
    end else begin
      if (choose_sweep_q && sweep_q && wake_ready_i) begin
        sweep_qp_q <= sweep_qp_q + 1'b1;
      end
      if (sweep_end || !sweep_q) begin
        sweep_q <= lost || again_q;
        again_q <= 1'b0;
      end else if (lost) begin
        again_q <= 1'b1;               // its number may be behind us
      end
      // Change sides only when the shown wake is taken or there is none.
      if (!wake_valid_o || wake_ready_i) begin
        choose_sweep_q <= (sweep_q || lost) && !(choose_sweep_q && fifo_valid);
      end
    end
  end

endmodule

`default_nettype wire
