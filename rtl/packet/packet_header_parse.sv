// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_header_parse: takes a good packet apart into its headers, as named fields, and its payload,
// moved down to byte 0, without pad and ICRC.
//
// The headers leave as soon as their last byte is there, of one packet in two cycles at most; the
// payload follows on its own stream (no beats if it is empty). One input beat per cycle; a payload
// whose end is pushed into a beat of its own takes one cycle more. The payload stream needs a FIFO
// behind it of as many beats as come while the packet's destination is looked up, else packets wait
// for each other.
//
// Three kinds of packets have another payload than the wire's:
// - UD: the 40 bytes of the GRH go in front of the message (wire.md 2.12);
// - atomic request: the two operands, 16 bytes as on the wire;
// - ATOMIC_ACK: the original value, 8 bytes turned to the host's order.
// The DETH lies where RETH has its address: Q_Key in va[63:32], source QP in va[23:0].
//
// Does not: judge (that was done). Neighbours: packet_rx_buffer → here → packet_rx_dispatch (headers),
// host_scatter (payload).
`default_nettype none

module packet_header_parse (
  input  wire                     clk_i,
  input  wire                     rst_i,

  input  wire                     beat_valid_i,
  output logic                    beat_ready_o,
  input  roci_pkg::beat_t         beat_i,
  input  roci_pkg::rx_side_t      side_i,

  output logic                    headers_valid_o,
  input  wire                     headers_ready_i,
  output roci_pkg::rx_headers_t   headers_o,

  output logic                    payload_valid_o,
  input  wire                     payload_ready_i,
  output roci_pkg::beat_t         payload_o
);

  localparam int unsigned BYTES = roci_pkg::DATA_BYTES;
  localparam int unsigned HEADER_BYTES = roci_pkg::HEADER_BYTES;
  localparam int unsigned BEATS = (HEADER_BYTES + BYTES - 1) / BYTES;     // 2 wide, 10 narrow
  localparam int unsigned INDEX_BITS = $clog2(BEATS + 1) + 1;
  typedef logic [INDEX_BITS-1:0] index_t;
  typedef logic [6:0] header_len_t;
  // A beat that is longer than the GRH takes it and the first bytes of the message: the payload counts
  // from 40 bytes before the message, and they are overwritten. Else the GRH has beats of its own.
  localparam bit MERGED = BYTES > packet_pkg::GRH_BYTES;
  localparam int unsigned GRH_BITS = 8 * packet_pkg::GRH_BYTES;

  // -------------------------------------------------------------------- header bytes, beat by beat
  index_t index_q;                                   // of the beat in front, stops at BEATS
  logic [8*BEATS*BYTES-1:0] header_q, header;        // byte 0 at bits 7:0
  packet_pkg::opcode_info_t info;
  header_len_t header_len, payload_at;               // payload_at: byte of the packet with payload byte 0
  roci_pkg::packet_len_t payload_len;
  logic [15:0] pay_len;
  logic [1:0] pad_count;
  roci_pkg::packet_len_t prefix_len;                 // bytes of the GRH in front of the message
  logic complete;                                    // the last header byte is in the beat in front
  index_t whole;                                     // beats in front of the one with payload byte 0
  logic [roci_pkg::LANE_BITS-1:0] offset;            // of payload byte 0 in that beat

  always_comb begin
    header = header_q;
    for (int unsigned i = 0; i < BEATS; i++) begin
      if (index_q == index_t'(i)) begin
        header[8*BYTES*i+:8*BYTES] = beat_i.data;
      end
    end
    pay_len = {header[8*4+:8], header[8*5+:8]};
    pad_count = header[8*41+4+:2];
    info = packet_pkg::opcode_info(header[8*40+:8]);
    header_len = header_len_t'(packet_pkg::GRH_BYTES + packet_pkg::BTH_BYTES)
                 + header_len_t'(info.parsed_bytes);
    payload_len = roci_pkg::packet_len_t'(pay_len - 16'(header_len)
                  + 16'(packet_pkg::GRH_BYTES - packet_pkg::ICRC_BYTES) - 16'(pad_count));
    prefix_len = info.deth ? roci_pkg::packet_len_t'(packet_pkg::GRH_BYTES) : '0;
    // the opcode is at byte 40: its beat, or a later one, decides
    complete = (8'(BYTES) * 8'(index_q) + 8'(BYTES) >= 8'(header_len)
                || index_q == index_t'(BEATS - 1))
               && 8'(BYTES) * 8'(index_q) + 8'(BYTES) > 8'd40 && index_q < index_t'(BEATS);
    payload_at = MERGED ? header_len - header_len_t'(prefix_len) : header_len;
    whole = index_t'(payload_at >> roci_pkg::LANE_BITS);
    offset = payload_at[roci_pkg::LANE_BITS-1:0];
  end

  // --------------------------------------------------------------- the headers leave, once a packet
  logic headers_valid, headers_ready, headers_sent_q;
  roci_pkg::rx_headers_t headers;
  logic [$bits(roci_pkg::rx_headers_t)-1:0] headers_bits;
  logic [8*20-1:0] extension;                        // first byte behind the BTH at the top

  always_comb begin
    for (int unsigned b = 0; b < 20; b++) begin
      extension[8*(19-b)+:8] = header[8*(52+b)+:8];
    end
    headers = '0;
    headers.loopback = side_i.loopback;
    headers.smac = side_i.ethernet.smac;
    headers.vlan_valid = side_i.ethernet.vlan_valid;
    headers.tci = side_i.ethernet.tci;
    for (int unsigned b = 0; b < 16; b++) begin
      headers.sgid[8*(15-b)+:8] = header[8*(8+b)+:8];
      headers.dgid[8*(15-b)+:8] = header[8*(24+b)+:8];
    end
    headers.opcode = header[8*40+:8];
    headers.solicited = header[8*41+7];
    headers.pad_count = pad_count;
    headers.ecn_marked = header[8*44+6+:2] != 2'd0;
    headers.pkey = {header[8*42+:8], header[8*43+:8]};
    headers.dest_qpn = {header[8*45+:8], header[8*46+:8], header[8*47+:8]};
    headers.ackreq = header[8*48+7];
    headers.psn = {header[8*49+:8], header[8*50+:8], header[8*51+:8]};
    headers.payload_length = payload_len + prefix_len;
    // RETH, AtomicETH and DETH begin alike
    headers.va = extension[8*20-1-:64];
    headers.rkey = extension[8*12-1-:32];
    headers.dma_length = extension[8*8-1-:32];
    headers.syndrome = extension[8*20-1-:8];
    headers.msn = extension[8*19-1-:24];
    headers.imm = info.reth ? extension[8*4-1-:32]
                : info.deth ? extension[8*12-1-:32] : extension[8*20-1-:32];
  end

  // Half the rate does: a packet is 94 bytes of wire at least, 1.9 cycles of wide.
  assign headers_valid = beat_valid_i && complete && !headers_sent_q;
  common_half_slice #(.WIDTH($bits(roci_pkg::rx_headers_t))) u_headers (
    .clk_i, .rst_i,
    .in_valid_i(headers_valid), .in_ready_o(headers_ready), .in_i(headers),
    .out_valid_o(headers_valid_o), .out_ready_i(headers_ready_i), .out_o(headers_bits)
  );
  assign headers_o = roci_pkg::rx_headers_t'(headers_bits);

  // ------------------------------------------------------------------------------- payload beats
  // A beat gives its lanes from `offset` on to the lower lanes of an output beat, which waits in
  // held_q for the lanes below `offset` of the next beat.
  logic [roci_pkg::DATA_BITS-1:0] rotated, high_mask, held_q;
  roci_pkg::packet_len_t left_q;                     // payload bytes not yet sent
  roci_pkg::packet_len_t left, moved_len;            // moved_len: bytes of the payload, MERGED: with GRH
  logic holding_q;                                   // held_q has payload bytes
  logic at_payload, in_payload;                      // beat with payload byte 0; any later beat
  logic [roci_pkg::LANE_BITS:0] lanes_here;          // lanes from `offset` on
  logic flush_q;                                     // only held bytes are left of the packet
  roci_pkg::packet_len_t flush_bytes_q;

  logic out_valid, out_ready;
  roci_pkg::beat_t out;
  logic [$bits(roci_pkg::beat_t)-1:0] out_bits;
  logic take;                                        // the beat in front is used up

  common_rotate #(
    .LANES(BYTES / 4), .LANE_BITS(32), .REGS(0), .UP(1'b0), .USER_BITS(1)
  ) u_rotate (
    .clk_i, .rst_i,
    .in_valid_i(1'b1), .in_ready_o(), .in_data_i(beat_i.data),
    .in_amount_i(offset[roci_pkg::LANE_BITS-1:2]), .in_user_i(1'b0),
    .out_valid_o(), .out_ready_i(1'b1), .out_data_o(rotated), .out_user_o()
  );

  assign lanes_here = (roci_pkg::LANE_BITS+1)'(BYTES) - (roci_pkg::LANE_BITS+1)'(offset);
  assign at_payload = beat_valid_i && index_q == whole && (complete || headers_sent_q);
  assign in_payload = beat_valid_i && holding_q;
  assign moved_len = MERGED ? payload_len + prefix_len : payload_len;
  assign left = holding_q ? left_q : moved_len;

  // --------------------------------------------------------------------------- GRH of a datagram
  logic prefix_due;                                  // the next beat is one of the GRH's own
  logic prefix_last;
  logic [roci_pkg::DATA_BITS-1:0] prefix_data;
  logic overlay;                                     // the GRH lies over the first bytes of the next beat

  if (MERGED) begin : gen_merged

    logic begun_q;                                   // the first beat is out
    always_ff @(posedge clk_i) begin
      if (beat_valid_i && take) begin
        begun_q <= in_payload && !beat_i.last;
      end
      if (rst_i) begun_q <= 1'b0;
    end
    assign overlay = info.deth && !begun_q;
    assign prefix_due = 1'b0;
    assign prefix_last = 1'b0;
    assign prefix_data = roci_pkg::DATA_BITS'(header[GRH_BITS-1:0]);

  end else begin : gen_apart

    localparam int unsigned PREFIX_BEATS = packet_pkg::GRH_BYTES / BYTES;
    logic [$clog2(PREFIX_BEATS+1)-1:0] prefix_q;     // beats that are out
    always_comb begin
      overlay = 1'b0;
      prefix_due = beat_valid_i && info.deth && (complete || headers_sent_q)
                   && prefix_q != $bits(prefix_q)'(PREFIX_BEATS);
      prefix_last = prefix_q == $bits(prefix_q)'(PREFIX_BEATS - 1) && payload_len == '0;
      prefix_data = '0;
      for (int unsigned i = 0; i < PREFIX_BEATS; i++) begin
        if (prefix_q == $bits(prefix_q)'(i)) prefix_data = header_q[8*BYTES*i+:8*BYTES];
      end
    end
    always_ff @(posedge clk_i) begin
      if (beat_valid_i && take && beat_i.last) begin
        prefix_q <= '0;
      end else if (prefix_due && !flush_q && out_ready) begin
        prefix_q <= prefix_q + 1'b1;
      end
      if (rst_i) prefix_q <= '0;
    end

  end

  always_comb begin
    high_mask = ~roci_lane_pkg::bits(roci_lane_pkg::below(lanes_here));

    out_valid = 1'b0;
    out = '0;
    out.bytes = roci_pkg::BYTES_BITS'(BYTES);
    take = 1'b0;
    if (flush_q) begin
      // the end of the packet before; the beat in front waits
      out_valid = 1'b1;
      out.data = held_q;
      out.last = 1'b1;
      out.bytes = roci_pkg::BYTES_BITS'(flush_bytes_q);
    end else if (prefix_due) begin
      out_valid = 1'b1;
      out.data = prefix_data;
      out.last = prefix_last;
    end else if (in_payload) begin
      out_valid = 1'b1;
      out.data = (held_q & ~high_mask) | (rotated & high_mask);
      out.last = left <= roci_pkg::packet_len_t'(BYTES);
      out.bytes = out.last ? roci_pkg::BYTES_BITS'(left) : roci_pkg::BYTES_BITS'(BYTES);
      take = out_ready;
    end else if (at_payload && moved_len != '0
                 && moved_len <= roci_pkg::packet_len_t'(lanes_here)) begin
      // all of a short payload is in this beat
      out_valid = !headers_valid || headers_ready;
      out.data = rotated;
      out.last = 1'b1;
      if (info.atomic_ack) begin
        for (int unsigned b = 0; b < 8; b++) begin
          out.data[8*b+:8] = rotated[8*(7-b)+:8];
        end
      end
      out.bytes = roci_pkg::BYTES_BITS'(moved_len);
      take = out_ready && (!headers_valid || headers_ready);
    end else begin
      take = beat_valid_i && (!headers_valid || headers_ready);
    end
    // the end of the packet before is none of its first bytes
    if (overlay && !flush_q) begin
      for (int unsigned b = 0; b < BYTES && b < packet_pkg::GRH_BYTES; b++) begin
        out.data[8*b+:8] = prefix_data[8*b+:8];
      end
    end
  end
  assign beat_ready_o = take;

  always_ff @(posedge clk_i) begin
    if (beat_valid_i && take) begin
      header_q <= header;
      held_q <= rotated;
      left_q <= left;
      if (in_payload) begin
        left_q <= left - roci_pkg::packet_len_t'(BYTES);
        flush_bytes_q <= left - roci_pkg::packet_len_t'(BYTES);
      end
    end
    if (rst_i) begin
      index_q <= '0;
      headers_sent_q <= 1'b0;
      holding_q <= 1'b0;
      flush_q <= 1'b0;
    end else begin
      if (flush_q && out_ready) begin
        flush_q <= 1'b0;
      end
      if (headers_valid && headers_ready) begin
        headers_sent_q <= 1'b1;
      end
      if (beat_valid_i && take) begin
        index_q <= beat_i.last ? '0 : (index_q == index_t'(BEATS)) ? index_q : index_q + 1'b1;
        if (beat_i.last) begin
          headers_sent_q <= 1'b0;
        end
        if (at_payload && !in_payload) begin
          holding_q <= moved_len > roci_pkg::packet_len_t'(lanes_here) && !beat_i.last;
        end
        if (in_payload) begin
          // what this beat holds beyond the beat just sent may be the end
          holding_q <= left > roci_pkg::packet_len_t'(BYTES)
                                + roci_pkg::packet_len_t'(lanes_here);
          flush_q <= left > roci_pkg::packet_len_t'(BYTES)
                     && left <= roci_pkg::packet_len_t'(BYTES)
                                + roci_pkg::packet_len_t'(lanes_here);
        end
      end
    end
  end

  common_skid #(.WIDTH($bits(roci_pkg::beat_t))) u_payload (
    .clk_i, .rst_i,
    .in_valid_i(out_valid), .in_ready_o(out_ready), .in_i(out),
    .out_valid_o(payload_valid_o), .out_ready_i(payload_ready_i), .out_o(out_bits)
  );
  assign payload_o = roci_pkg::beat_t'(out_bits);

endmodule

`default_nettype wire
