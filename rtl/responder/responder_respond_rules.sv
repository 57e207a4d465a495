// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// responder_respond_rules: what an operation does to the response state of its QP, and what a walk
// sends next. Combinational; responder_respond is the pipeline around it.
//
// - Responses leave in PSN order: an ACK or NAK waits until the READs accepted before it are
//   answered (`ack_order`), and goes before later ones (architecture.md rule 7).
// - One ACK or NAK waits at most: a newer one replaces it (it acknowledges more), a duplicate's
//   ACK does not replace anything, a fatal NAK is never replaced.
// - While an ACK or NAK of the QP is on its way to the wire (`ack_leaving`) a further ACK waits, and
//   later ones replace it: coalescing. A NAK does not wait, and no ACK that a READ response is
//   behind: the READ closes it to later ones.
// - An atomic that is not done ends the walk of its QP: what is behind it waits (rule 7).
// - A response that fails in its turn (FATAL) or will fail (an atomic that could not be executed, which
//   the READs before it need not wait for): the NAK takes its place, what is behind is not sent.
// - A duplicate READ lowers the cursor. What is answered again from the middle starts with FIRST or
//   ONLY, like the response to a new request (wire.md 2.4).
// - A token that comes after a failed write of its QP becomes NAK 0x63 at the first PSN that is not
//   known to be in memory.
// - RESET: everything is ignored. ERR: nothing is sent but a fatal NAK and what comes before it.
`default_nettype none

module responder_respond_rules (
  input  responder_pkg::respond_op_t      op_i,
  input  roci_pkg::qp_state_e             state_i,
  input  responder_pkg::respond_row_t     row_i,
  input  wire                             hit_i,          // WALK: entry_packets_i is of the cursor
  input  wire [23:0]                      entry_packets_i, // response packets of that READ
  input  wire                             undone_i,       // WALK, hit_i: an atomic that is not done

  output responder_pkg::respond_row_t     row_o,
  output logic                            wake_o,         // the QP has something to send
  output responder_pkg::respond_result_t  result_o        // of a WALK
);

  logic reset, sends;
  logic ack_ready, ack_waits, read_ready;
  logic [7:0] behind;                  // cursor - ack_order: negative = READs before the ACK
  logic [7:0] behind_answered;         // cursor - answered: negative = answered before
  logic [7:0] lower_by;                // ordinal - cursor: negative = before the cursor
  logic [23:0] packet_next;
  logic is_fatal;

  always_comb begin
    reset = state_i == roci_pkg::QPS_RESET;
    sends = !reset && state_i != roci_pkg::QPS_INIT
            && (state_i != roci_pkg::QPS_ERR || row_i.closed);
    behind = row_i.cursor - row_i.ack_order;
    read_ready = row_i.cursor != row_i.allowed;
    // wire.md 2.6: syndromes of ACKs are below 0x20
    ack_waits = row_i.ack_leaving && row_i.ack_syndrome[6:5] == 2'd0 && !read_ready;
    behind_answered = row_i.cursor - row_i.answered;
    ack_ready = row_i.ack_valid && !behind[7] && !ack_waits;
    lower_by = op_i.ordinal - row_i.cursor;
    packet_next = row_i.packet + 24'd1;
    is_fatal = op_i.info.syndrome[6:0] >= 7'h61;

    row_o = row_i;
    wake_o = 1'b0;
    result_o = '0;

    if (!reset) begin
      unique case (op_i.kind)
        responder_pkg::RESPOND_OP_EVENT: begin
          if (row_i.closed || (op_i.error && state_i == roci_pkg::QPS_ERR)) begin
            // nothing more is told
          end else if (op_i.error) begin
            row_o.ack_valid = 1'b1;
            row_o.ack_order = row_i.allowed;
            row_o.ack_psn = row_i.good_psn + 24'd1;
            row_o.ack_msn = op_i.info.msn;
            row_o.ack_syndrome = responder_pkg::NAK_REMOTE_OPERATIONAL;
            row_o.closed = 1'b1;
            row_o.error_pending = 1'b1;
            row_o.error_access = 1'b0;
            wake_o = 1'b1;
          end else if (op_i.info.kind == roci_pkg::RESPOND_READ) begin
            row_o.allowed = op_i.info.entry[7:0] + 8'd1;
            row_o.good_psn = op_i.info.psn;
            wake_o = 1'b1;
          end else if (op_i.info.kind != roci_pkg::RESPOND_DUP_ACK || !row_i.ack_valid) begin
            row_o.ack_valid = 1'b1;
            row_o.ack_order = op_i.info.entry[7:0];
            row_o.ack_psn = op_i.info.psn;
            row_o.ack_msn = op_i.info.msn;
            row_o.ack_syndrome = op_i.info.syndrome;
            if (op_i.info.kind == roci_pkg::RESPOND_ACK) row_o.good_psn = op_i.info.psn;
            if (op_i.info.kind == roci_pkg::RESPOND_NAK) row_o.closed = is_fatal;
            wake_o = 1'b1;
          end
        end

        responder_pkg::RESPOND_OP_LOWER: begin
          if (!row_i.closed && (lower_by[7] || (lower_by == 8'd0 && op_i.packet < row_i.packet)))
          begin
            row_o.cursor = op_i.ordinal;
            row_o.packet = op_i.packet;
            row_o.restart = 1'b1;
            wake_o = 1'b1;
          end
        end

        responder_pkg::RESPOND_OP_FATAL: begin
          if (!row_i.closed || row_i.ack_valid) begin
            // what is behind the failed packet is not sent any more, not even another NAK
            if (!lower_by[7] && lower_by != 8'd0) begin
              row_o.allowed = op_i.ordinal;
            end else begin
              row_o.cursor = row_i.allowed;
              row_o.packet = '0;
            end
            row_o.ack_valid = 1'b1;
            row_o.ack_order = row_o.allowed;
            row_o.ack_psn = op_i.info.psn;
            row_o.ack_msn = op_i.info.msn;
            row_o.ack_syndrome = op_i.info.syndrome;
            row_o.closed = 1'b1;
            row_o.error_pending = 1'b1;
            row_o.error_access = op_i.by_access;
            wake_o = 1'b1;
          end
        end

        responder_pkg::RESPOND_OP_SKIP: begin
          if (row_i.cursor == op_i.ordinal && read_ready) begin
            row_o.cursor = row_i.cursor + 8'd1;
            row_o.packet = '0;
            row_o.restart = 1'b0;
          end
        end

        responder_pkg::RESPOND_OP_WALK: begin
          if (sends) begin
            result_o.error = row_i.error_pending;
            row_o.error_pending = 1'b0;
            if (ack_ready) begin
              result_o.emit = 1'b1;
              result_o.more = read_ready;
              row_o.ack_valid = 1'b0;
              row_o.ack_leaving = 1'b1;
            end else if (read_ready && !hit_i) begin
              result_o.miss = 1'b1;
              result_o.more = 1'b1;
            end else if (read_ready && undone_i) begin
              // RESPOND_OP_ATOMIC brings the QP back
            end else if (read_ready) begin
              result_o.emit = 1'b1;
              result_o.is_read = 1'b1;
              result_o.first = row_i.packet == 24'd0 || row_i.restart;
              result_o.last = packet_next >= entry_packets_i;
              result_o.again = behind_answered[7];
              row_o.restart = 1'b0;
              row_o.packet = packet_next;
              if (result_o.last) begin
                row_o.packet = '0;
                row_o.cursor = row_i.cursor + 8'd1;
                // not again for a duplicate
                if (row_i.cursor == row_i.answered) row_o.answered = row_o.cursor;
              end
              result_o.more = row_o.cursor != row_i.allowed || row_i.ack_valid;
            end
          end
        end

        responder_pkg::RESPOND_OP_LEFT: wake_o = row_i.ack_valid;

        responder_pkg::RESPOND_OP_ATOMIC: wake_o = 1'b1;

        default: ;                     // CTX: the pipeline's
      endcase
    end

    if (op_i.kind == responder_pkg::RESPOND_OP_LEFT) row_o.ack_leaving = 1'b0;
  end

endmodule

`default_nettype wire
