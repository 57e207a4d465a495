// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_rx_buffer: stores received packets until they are known good, then lets them go in order
// (architecture.md rule 3: nothing acts on a packet before its FCS flag and ICRC are known).
//
// A packet is written as it comes. Three verdicts join behind it, each in order: header checks, ICRC,
// end of the frame (FCS, length). Good: the packet goes out. Bad: its beats are skipped and `fate_o`
// tells the first check that failed, in the order of wire.md 2.2. No room: the packet is dropped
// whole, whatever it was; RX never holds up the wire (rule 2).
// The last RESERVE beats and the last entries are for loopback packets only, which wait
// (`loopback_room_o`) instead of being dropped. `half_full_o` tells the responder that waiting for a
// receive is no longer free; `crowded_o` (three quarters) is counted.
//
// Input: valid-only streams of packet_rx_trim and the checkers. Output: one beat per cycle.
// Memory: common_ram_sdp, two cycles of latency behind a small FIFO (URAM in `wide`).
`default_nettype none

module packet_rx_buffer #(
  parameter int unsigned BEATS = roci_config_pkg::RX_BUFFER_BYTES / roci_pkg::DATA_BYTES,
  parameter int unsigned PACKETS = 512,          // packets held at once
  parameter int unsigned RESERVE = packet_pkg::PACKET_BYTES / roci_pkg::DATA_BYTES + 1
) (
  input  wire                 clk_i,
  input  wire                 rst_i,

  input  wire                 beat_valid_i,
  input  wire                 first_i,
  input  roci_pkg::beat_t     beat_i,
  input  roci_pkg::rx_side_t  side_i,
  input  wire                 header_valid_i,    // packet_header_check, one per packet
  input  roci_count_pkg::rx_fate_t  header_i,
  input  wire                 icrc_valid_i,      // packet_icrc_check, one per packet
  input  wire                 icrc_good_i,
  input  wire                 end_valid_i,       // packet_rx_trim, one per frame
  input  wire                 end_fcs_bad_i,
  input  wire                 end_short_i,
  input  wire                 end_long_i,

  output logic                beat_valid_o,
  input  wire                 beat_ready_i,
  output roci_pkg::beat_t     beat_o,            // good packets only, GRH to ICRC
  output roci_pkg::rx_side_t  side_o,

  output roci_count_pkg::rx_fate_t  fate_o,            // one pulse per frame
  output logic                loopback_room_o,   // a maximum packet fits
  output logic                half_full_o,
  output logic                crowded_o
);

  localparam int unsigned ADDR_BITS = $clog2(BEATS);
  localparam int unsigned OUT_DEPTH = 8;
  // a loopback packet is begun on `loopback_room_o` while beats before it are still on their way here
  localparam int unsigned SLACK = 8;
  typedef logic [ADDR_BITS:0] count_t;
  typedef logic [ADDR_BITS-1:0] address_t;

  // ---------------------------------------------------------------------------------- write side
  typedef struct packed {
    logic overflow;
    count_t beats;
    logic [roci_pkg::BYTES_BITS-1:0] last_bytes;
    roci_pkg::rx_side_t side;
  } written_t;

  count_t write_q, start_q, free_q;              // free-running pointers; free_q: oldest kept beat
  logic overflow_q, overflow;
  count_t used, limit, start;
  logic store;
  logic packet_slots;                            // room for one packet more
  written_t written;
  logic written_ready;

  assign used = write_q - free_q;
  assign limit = side_i.loopback ? count_t'(BEATS) : count_t'(BEATS - RESERVE - SLACK);
  assign start = first_i ? write_q : start_q;
  assign overflow = first_i ? (!packet_slots || used >= limit) : (overflow_q || used >= limit);
  assign store = beat_valid_i && !overflow;

  always_comb begin
    written.overflow = overflow;
    written.beats = overflow ? '0 : count_t'(write_q + 1'b1 - start);
    written.last_bytes = beat_i.bytes;
    written.side = side_i;
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      write_q <= '0;
      start_q <= '0;
      overflow_q <= 1'b0;
    end else if (beat_valid_i) begin
      start_q <= start;
      overflow_q <= overflow && !beat_i.last;
      write_q <= overflow ? start : write_q + 1'b1;
    end
  end

  // ------------------------------------------------------------------- verdicts join, in order
  logic [$bits(written_t)-1:0] joined_bits;
  written_t joined;
  logic joined_valid;
  roci_count_pkg::rx_fate_t header;
  logic [$bits(roci_count_pkg::rx_fate_t)-1:0] header_bits;
  logic header_valid, icrc_valid, icrc_good, end_valid;
  logic [2:0] end_bits;
  logic join_now;

  common_fifo #(.WIDTH($bits(written_t)), .DEPTH(16), .STYLE("distributed")) u_written (
    .clk_i, .rst_i,
    .in_valid_i(beat_valid_i && beat_i.last), .in_ready_o(written_ready), .in_i(written),
    .out_valid_o(joined_valid), .out_ready_i(join_now), .out_o(joined_bits), .usage_o()
  );
  common_fifo #(.WIDTH($bits(roci_count_pkg::rx_fate_t)), .DEPTH(16), .STYLE("distributed")) u_header (
    .clk_i, .rst_i,
    .in_valid_i(header_valid_i), .in_ready_o(), .in_i(header_i),
    .out_valid_o(header_valid), .out_ready_i(join_now), .out_o(header_bits), .usage_o()
  );
  common_fifo #(.WIDTH(1), .DEPTH(16), .STYLE("distributed")) u_icrc (
    .clk_i, .rst_i,
    .in_valid_i(icrc_valid_i), .in_ready_o(), .in_i(icrc_good_i),
    .out_valid_o(icrc_valid), .out_ready_i(join_now), .out_o(icrc_good), .usage_o()
  );
  common_fifo #(.WIDTH(3), .DEPTH(16), .STYLE("distributed")) u_end (
    .clk_i, .rst_i,
    .in_valid_i(end_valid_i), .in_ready_o(), .in_i({end_fcs_bad_i, end_long_i, end_short_i}),
    .out_valid_o(end_valid), .out_ready_i(join_now), .out_o(end_bits), .usage_o()
  );
  assign joined = written_t'(joined_bits);
  assign header = roci_count_pkg::rx_fate_t'(header_bits);
  assign join_now = joined_valid && header_valid && icrc_valid && end_valid;

  roci_count_pkg::rx_fate_t fate;
  logic good;
  always_comb begin
    fate = '0;
    fate.valid = join_now;
    fate.loopback = joined.side.loopback;
    if (joined.overflow) begin
      fate.overflow = 1'b1;
    end else if (end_bits[2]) begin
      fate.fcs = 1'b1;
    end else if (end_bits[1]) begin
      fate.oversize = 1'b1;
    end else if (header.ipver) begin
      fate.ipver = 1'b1;
    end else if (header.nxthdr) begin
      fate.nxthdr = 1'b1;
    end else if (header.paylen || end_bits[0]) begin
      fate.paylen = 1'b1;
    end else if (header.tver) begin
      fate.tver = 1'b1;
    end else if (header.gid) begin
      fate.gid = 1'b1;
    end else if (header.opcode) begin
      fate.opcode = 1'b1;
    end else if (header.dest_qp) begin
      fate.dest_qp = 1'b1;
    end else if (!icrc_good) begin
      fate.icrc = 1'b1;
    end
    good = {fate.overflow, fate.fcs, fate.oversize, fate.ipver, fate.nxthdr, fate.paylen, fate.tver,
            fate.gid, fate.opcode, fate.dest_qp, fate.icrc} == '0;
  end

  always_ff @(posedge clk_i) begin
    fate_o <= (rst_i || !join_now) ? '0 : fate;
  end

  // ----------------------------------------------------------------------- packets with a verdict
  typedef struct packed {
    logic good;
    count_t beats;
    logic [roci_pkg::BYTES_BITS-1:0] last_bytes;
    roci_pkg::rx_side_t side;
  } packet_t;
  packet_t packet_in, packet;
  logic [$bits(packet_t)-1:0] packet_bits;
  logic packet_valid, packet_take;

  assign packet_in = '{good: good, beats: joined.beats, last_bytes: joined.last_bytes,
                       side: joined.side};
  common_fifo #(.WIDTH($bits(packet_t)), .DEPTH(PACKETS)) u_packets (
    .clk_i, .rst_i,
    .in_valid_i(join_now && joined.beats != '0), .in_ready_o(), .in_i(packet_in),
    .out_valid_o(packet_valid), .out_ready_i(packet_take), .out_o(packet_bits), .usage_o()
  );
  assign packet = packet_t'(packet_bits);

  // packets from their first beat until they have left: none is begun that would have no entry
  localparam int unsigned HELD_BITS = $clog2(PACKETS + 1);
  logic [HELD_BITS-1:0] held_q;
  logic packet_begins, packet_overflows;
  // 16 are for those in the joining FIFOs, 16 more for loopback
  assign packet_slots = side_i.loopback ? held_q < HELD_BITS'(PACKETS - 16)
                                        : held_q < HELD_BITS'(PACKETS - 32);
  assign packet_begins = beat_valid_i && beat_i.last;
  assign packet_overflows = join_now && joined.beats == '0;

  // ------------------------------------------------------------------------------------ read side
  count_t read_q;                                // next beat to read
  count_t left_q;                                // beats of the packet in work still to read
  logic reading_q;
  packet_t current_q;
  logic read, read_last, skip, done;
  logic [3:0] under_way_q;                       // beats read and not yet taken at the output
  logic [1:0] pipe_valid_q, pipe_last_q;         // beats in the memory's two cycles
  roci_pkg::rx_side_t pipe_side_q[2];
  logic [roci_pkg::BYTES_BITS-1:0] pipe_bytes_q[2];
  logic [roci_pkg::DATA_BITS-1:0] read_data;

  assign read = reading_q && under_way_q < 4'(OUT_DEPTH);
  assign read_last = left_q == count_t'(1);
  assign done = read && read_last;
  assign packet_take = packet_valid && (!reading_q || done);
  assign skip = packet_take && !packet.good;

  common_ram_sdp #(
    .WIDTH(roci_pkg::DATA_BITS), .DEPTH(BEATS), .LATENCY(2), .BYPASS(1'b0),
    .STYLE(roci_config_pkg::IS_WIDE ? "ultra" : "block")
  ) u_memory (
    .clk_i,
    .we_i(store), .waddr_i(address_t'(write_q)), .wdata_i(beat_i.data),
    .re_i(read), .raddr_i(address_t'(read_q)), .rdata_o(read_data)
  );

  always_ff @(posedge clk_i) begin
    if (packet_take) begin
      current_q <= packet;
    end
    pipe_side_q[0] <= current_q.side;
    pipe_side_q[1] <= pipe_side_q[0];
    pipe_bytes_q[0] <= read_last ? current_q.last_bytes
                                 : roci_pkg::BYTES_BITS'(roci_pkg::DATA_BYTES);
    pipe_bytes_q[1] <= pipe_bytes_q[0];
    pipe_last_q <= {pipe_last_q[0], read_last};
    if (rst_i) begin
      read_q <= '0;
      free_q <= '0;
      left_q <= '0;
      reading_q <= 1'b0;
      under_way_q <= '0;
      pipe_valid_q <= '0;
      held_q <= '0;
    end else begin
      if (packet_take) begin
        reading_q <= packet.good;
        left_q <= packet.beats;
      end else if (done) begin
        reading_q <= 1'b0;
      end
      if (read && !done) begin
        left_q <= left_q - 1'b1;
      end
      read_q <= read_q + count_t'(read) + (skip ? packet.beats : '0);
      free_q <= free_q + count_t'(read) + (skip ? packet.beats : '0);
      pipe_valid_q <= {pipe_valid_q[0], read};
      under_way_q <= under_way_q + 4'(read) - 4'(beat_valid_o && beat_ready_i);
      held_q <= held_q + HELD_BITS'(packet_begins) - HELD_BITS'(packet_overflows)
                - HELD_BITS'(packet_take);

      // the joining FIFOs hold what comes within the few cycles of the slowest verdict
      assert (!(beat_valid_i && beat_i.last && !written_ready))
      else $error("packet_rx_buffer: verdicts too late");
    end
  end

  // -------------------------------------------------------------------------------- output FIFO
  typedef struct packed {
    roci_pkg::rx_side_t side;
    roci_pkg::beat_t beat;
  } out_t;
  out_t out_in, out;
  logic [$bits(out_t)-1:0] out_bits;

  assign out_in.side = pipe_side_q[1];
  assign out_in.beat = '{err: 1'b0, last: pipe_last_q[1], bytes: pipe_bytes_q[1], data: read_data};
  common_fifo #(.WIDTH($bits(out_t)), .DEPTH(OUT_DEPTH), .STYLE("distributed")) u_out (
    .clk_i, .rst_i,
    .in_valid_i(pipe_valid_q[1]), .in_ready_o(), .in_i(out_in),
    .out_valid_o(beat_valid_o), .out_ready_i(beat_ready_i), .out_o(out_bits), .usage_o()
  );
  assign out = out_t'(out_bits);
  assign beat_o = out.beat;
  assign side_o = out.side;

  // what loopback may fill without touching anybody: a whole maximum packet
  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      loopback_room_o <= 1'b0;
      half_full_o <= 1'b0;
      crowded_o <= 1'b0;
    end else begin
      loopback_room_o <= used <= count_t'(BEATS - RESERVE - SLACK / 2)
                         && held_q <= HELD_BITS'(PACKETS - 32 + SLACK / 2);
      half_full_o <= used >= count_t'(BEATS / 2) || held_q >= HELD_BITS'(PACKETS / 2);
      crowded_o <= used >= count_t'(BEATS / 4 * 3);
    end
  end

endmodule

`default_nettype wire
