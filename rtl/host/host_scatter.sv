// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_scatter: places the payload of received packets: dense beats in, bus-aligned writes out.
//
// Commands come in frame order. PIECE: the next `length` payload bytes go to `addr` (within 4 KB).
// DROP: the rest of the packet's payload is thrown away, 1 beat per cycle. TOKEN: goes behind all
// writes before it. A PIECE or DROP with has_token brings its token along: a PIECE in the very
// request of its write. ATOMIC: the packet's 16 payload bytes go to responder_atomic, then its token
// as behind other payload. They go when all words of earlier frames have left, so that the atomic is
// behind these in the order of the bus: the earlier writes of its QP are done when it executes
// (wire.md 2.10). That waits for the bus alone; the engine has room for all that can be accepted.
// One word per cycle through pieces of any alignment; a packet of one unaligned 64-byte piece takes
// 2 cycles (`wide`).
//
// The data of a request follows without waiting for anything but data_ready_i: payload is stored
// whole in packet_rx_buffer before its commands come (host_dma_write relies on that).
// Neighbours: packet_rx_commit (commands), packet_rx_buffer (payload), host_dma_write level 0,
// responder_atomic.
`default_nettype none

module host_scatter (
  input  wire                              clk_i,
  input  wire                              rst_i,

  input  wire                              cmd_valid_i,
  output logic                             cmd_ready_o,
  input  wire roci_pkg::scatter_cmd_t      cmd_i,

  input  wire                              payload_valid_i,
  output logic                             payload_ready_o,
  input  wire roci_pkg::beat_t             payload_i,

  output logic                             req_valid_o,
  input  wire                              req_ready_i,
  output roci_pkg::dma_write_req_t         req_o,
  output logic                             data_valid_o,
  input  wire                              data_ready_i,
  output roci_pkg::write_beat_t            data_o,

  output logic                             atomic_valid_o,
  input  wire                              atomic_ready_i,
  output roci_pkg::atomic_req_t            atomic_o
);

  localparam int unsigned LANE_BITS = roci_pkg::LANE_BITS;

  typedef logic [LANE_BITS-1:0] lane_t;
  typedef logic [LANE_BITS:0] count_t;

  logic inside_q;                          // the command's request has left (PIECE)
  lane_t from_q;                           // bytes of the payload beat that are used up
  lane_t to_q;                             // PIECE, inside: lane of its next byte
  roci_pkg::packet_len_t left_q;           // PIECE, inside: bytes to come

  logic given_q;                           // ATOMIC: the engine has it, its token is to come
  logic [2:0] writes_q;                    // requests made whose last word has not left

  logic piece, drop, atomic, token_now;
  lane_t to;
  roci_pkg::packet_len_t left;
  count_t available, count;
  logic ends, uses_up, run_valid, run_ready, take;
  logic req_wanted, req_valid, req_ready, asked, left_all, operands_valid;
  roci_pkg::respond_event_t respond;
  logic [127:0] operands;
  roci_pkg::dma_write_req_t req;

  always_comb begin
    piece = cmd_i.kind == roci_pkg::SCATTER_PIECE;
    drop = cmd_i.kind == roci_pkg::SCATTER_DROP;
    atomic = cmd_i.kind == roci_pkg::SCATTER_ATOMIC;

    to = inside_q ? to_q : cmd_i.addr[LANE_BITS-1:0];
    left = inside_q ? left_q : cmd_i.length;
    available = payload_i.bytes - count_t'(from_q);
    ends = left <= roci_pkg::packet_len_t'(available);
    count = ends ? count_t'(left) : available;
    uses_up = count == available;
  end

  // A request leaves with the first run of a piece, with the last dropped beat, or alone.
  assign token_now = atomic ? given_q
                   : !piece && (!drop || (payload_valid_i && payload_i.last && cmd_i.has_token));
  assign req_wanted = piece ? !inside_q : token_now;

  assign req = '{is_token: !piece, has_token: piece && cmd_i.has_token, fn: cmd_i.fn, qp: cmd_i.qp,
                 length: cmd_i.length, addr: cmd_i.addr, token: cmd_i.token};
  assign req_valid = cmd_valid_i && req_wanted && (!piece || (payload_valid_i && run_ready));
  assign run_valid = cmd_valid_i && piece && payload_valid_i && (!req_wanted || req_ready);
  assign take = run_valid && run_ready;

  assign payload_ready_o = cmd_valid_i
      && (piece ? take && uses_up
        : atomic ? !payload_i.last || (given_q && req_ready) : drop && (!req_wanted || req_ready));
  assign cmd_ready_o = piece ? take && ends
                     : drop ? payload_valid_i && payload_i.last && (!req_wanted || req_ready)
                     : req_ready && (!atomic || given_q);

  // ------------------------------------------------------------------------------------ atomics
  if (roci_pkg::DATA_BYTES >= 16) begin : gen_operands
    assign operands = payload_i.data[127:0];
  end else begin : gen_operands
    logic [63:0] first_q;                  // the beat before the last
    always_ff @(posedge clk_i) begin
      if (payload_valid_i && payload_ready_o) first_q <= payload_i.data[63:0];
    end
    assign operands = {payload_i.data[63:0], first_q};
  end

  assign operands_valid = payload_valid_i && payload_i.last;
  assign respond = roci_pkg::respond_event_t'(cmd_i.token.body[$bits(roci_pkg::respond_event_t)-1:0]);
  assign atomic_valid_o = cmd_valid_i && atomic && operands_valid && writes_q == '0 && !given_q;
  assign atomic_o = '{fn: cmd_i.fn, qp: cmd_i.qp, colour: cmd_i.token.colour, addr: cmd_i.addr[63:3],
                      is_swap: cmd_i.addr[0], slot: roci_pkg::replay_slot_t'(cmd_i.length),
                      ordinal: respond.entry[7:0], psn: respond.psn, operands: operands};

  assign asked = req_valid && req_ready && piece;
  assign left_all = data_valid_o && data_ready_i && data_o.last;
  always_ff @(posedge clk_i) begin
    given_q <= atomic_valid_o && atomic_ready_i || (given_q && !req_ready);
    writes_q <= writes_q + 3'(asked) - 3'(left_all);
    if (rst_i) begin
      given_q <= 1'b0;
      writes_q <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      inside_q <= !ends;
      to_q <= to + lane_t'(count);
      left_q <= left - roci_pkg::packet_len_t'(count);
    end
    if (payload_valid_i && payload_ready_o) from_q <= '0;
    else if (take) from_q <= from_q + lane_t'(count);
    if (rst_i) begin
      inside_q <= 1'b0;
      from_q <= '0;
    end
  end

  common_skid #(.WIDTH($bits(roci_pkg::dma_write_req_t))) u_req (
    .clk_i, .rst_i, .in_valid_i(req_valid), .in_ready_o(req_ready), .in_i(req),
    .out_valid_o(req_valid_o), .out_ready_i(req_ready_i), .out_o(req_o)
  );

  host_realign #(.USER_BITS(1)) u_realign (
    .clk_i, .rst_i,
    .in_valid_i(run_valid), .in_ready_o(run_ready), .in_data_i(payload_i.data), .in_from_i(from_q),
    .in_to_i(to), .in_count_i(count), .in_flush_i(ends), .in_user_i(1'b0),
    .out_valid_o(data_valid_o), .out_ready_i(data_ready_i), .out_data_o(data_o.data),
    .out_strobe_o(data_o.strobe), .out_stop_o(), .out_last_o(data_o.last), .out_user_o()
  );

  // payload_i.err never comes: only good frames are stored (rule 3).
  wire unused_err = &{1'b0, payload_i.err};

  always_ff @(posedge clk_i) begin
    if (!rst_i) begin
      assert (!(writes_q == '0 && left_all) && !(writes_q == '1 && asked))
      else $error("host_scatter: count of writes");
      if (atomic_valid_o) begin
        assert (32'(payload_i.bytes) == (roci_pkg::DATA_BYTES >= 16 ? 16 : 8) && cmd_i.has_token
                && cmd_i.addr[2:1] == 2'b00)
        else $error("host_scatter: an atomic has 16 bytes of operands, a token and an aligned word");
      end
    end
    if (!rst_i && take && ends) begin
      assert (cmd_i.packet_last == (uses_up && payload_i.last))
      else $error("host_scatter: pieces and payload of a packet differ in length");
    end
    if (!rst_i && take && !ends) begin
      assert (!(uses_up && payload_i.last)) else $error("host_scatter: payload too short");
    end
  end

endmodule

`default_nettype wire
