// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ethernet_tx: puts the Ethernet header (and VLAN tag) in front of a packet and hands the frame to
// the MAC as an AXI-Stream without FCS.
//
// A MAC cannot pause inside a frame, so a frame starts when all of it is buffered. It may start
// earlier, with START_BEATS (performance.md: the first beat shall leave early), only if
// - it is of a reliable queue pair (`whole`): of others an aborted frame would be a lost message;
// - it found nothing in front of it; behind other frames there is nothing to gain;
// - the MAC takes at most PACE beats in 64 cycles of frames behind their 15th beat, so that memory
//   is faster (SLOW_MAC: what is believed until the first 64, of any number of frames, tell);
// - the last frames that could have started early came without a gap: a frame with more than
//   GAP_CYCLES of them makes the next CAUTIOUS_FRAMES long ones wait, each of which has to come
//   without. After reset that many are TRIAL_FRAMES: none in wide, where one frame sent twice is the
//   price of being wrong. Only frames of more than LONG_BEATS, which need several bursts of memory,
//   say something about it.
// So host memory that jitters or is shared costs the early start, not frames. If the buffer runs
// empty in mid-frame all the same (memory has changed its manners), the frame is aborted as bad
// (`tuser` on a last beat), the rest of the packet is thrown away and `underrun_o` tells whose it was:
// the request is sent again uncounted, the response cursor goes back (architecture.md 3.3).
// A packet with a bus error ends as a bad frame. `left_o` tells each packet whose last beat is taken
// out of the buffer.
//
// Does not: FCS, preamble, gap (MAC). Neighbours: ethernet_route → here → MAC.
`default_nettype none

module ethernet_tx #(
  parameter int unsigned BUFFER_BEATS = roci_config_pkg::IS_WIDE ? 128 : 1024,  // > largest frame
  parameter int unsigned BUFFER_PACKETS = 16,
  parameter int unsigned START_BEATS = roci_config_pkg::IS_WIDE ? 4 : 16,
  parameter int unsigned GAP_CYCLES = roci_config_pkg::IS_WIDE ? 2 : 16,  // START_BEATS bridge them
  parameter int unsigned LONG_BEATS = roci_config_pkg::IS_WIDE ? 12 : 44,  // > a burst and headers
  parameter int unsigned PACE = roci_config_pkg::IS_WIDE ? 56 : 32,
  parameter bit SLOW_MAC = roci_config_pkg::IS_WIDE,
  parameter int unsigned TRIAL_FRAMES = roci_config_pkg::IS_WIDE ? 0 : 16,
  parameter int unsigned CAUTIOUS_FRAMES = 64       // at least TRIAL_FRAMES
) (
  input  wire                                clk_i,
  input  wire                                rst_i,

  input  wire                                beat_valid_i,
  output logic                               beat_ready_o,
  input  roci_pkg::beat_t                    beat_i,
  input  roci_pkg::packet_side_t             side_i,

  // AXI-Stream to the MAC
  output logic [roci_pkg::DATA_BITS-1:0]     tdata_o,
  output logic [roci_pkg::DATA_BYTES-1:0]    tkeep_o,
  output logic                               tlast_o,
  output logic                               tuser_o,       // bad frame, on the last beat
  output logic                               tvalid_o,
  input  wire                                tready_i,

  output logic                               underrun_valid_o,
  input  wire                                underrun_ready_i,
  output roci_pkg::tx_done_t                 underrun_o,
  output logic                               left_valid_o,  // always accepted
  output roci_pkg::tx_done_t                 left_o,        // as it came, whatever became of it
  output logic                               aborted_o      // pulse: a frame ended as bad
);

  localparam int unsigned BYTES = roci_pkg::DATA_BYTES;
  localparam int unsigned USAGE_BITS = $clog2(BUFFER_BEATS + 1);
  localparam int unsigned CAUTION_BITS = $clog2(CAUTIOUS_FRAMES + 1);
  localparam int unsigned TAG_BYTES = 4;
  localparam int unsigned PLAIN_BYTES = 14;
  localparam int unsigned MAX_HEADER = PLAIN_BYTES + TAG_BYTES;
  // whole header beats of the narrow path: 14 = 8 + 6, 18 = 16 + 2
  localparam int unsigned PLAIN_WHOLE = PLAIN_BYTES / BYTES;
  localparam int unsigned TAGGED_WHOLE = MAX_HEADER / BYTES;
  localparam int unsigned PLAIN_CARRY = PLAIN_BYTES % BYTES;
  localparam int unsigned TAGGED_CARRY = MAX_HEADER % BYTES;

  // --------------------------------------------------------------------------------------- buffer
  typedef struct packed {
    roci_pkg::packet_side_t side;
    roci_pkg::beat_t beat;
  } stored_t;
  stored_t stored;
  logic [$bits(roci_pkg::beat_t)-1:0] beat_bits;
  logic [$bits(roci_pkg::packet_side_t)-1:0] side_bits;
  logic stored_valid, stored_ready;
  logic [USAGE_BITS-1:0] usage;

  common_packet_fifo #(
    .WIDTH($bits(roci_pkg::beat_t)), .SIDE_WIDTH($bits(roci_pkg::packet_side_t)),
    .DEPTH(BUFFER_BEATS), .PACKETS(BUFFER_PACKETS), .STYLE("block")
  ) u_buffer (
    .clk_i, .rst_i,
    .in_valid_i(beat_valid_i), .in_ready_o(beat_ready_o), .in_i(beat_i), .in_last_i(beat_i.last),
    .in_side_i(side_i),
    .out_valid_o(stored_valid), .out_ready_i(stored_ready), .out_o(beat_bits), .out_last_o(),
    .out_side_o(side_bits), .usage_o(usage)
  );
  assign stored = '{side: roci_pkg::packet_side_t'(side_bits), beat: roci_pkg::beat_t'(beat_bits)};

  // packets whose last beat is in the buffer
  logic [USAGE_BITS-1:0] whole_q;
  logic whole_in, whole_out;
  assign whole_in = beat_valid_i && beat_ready_o && beat_i.last;
  assign whole_out = stored_valid && stored_ready && stored.beat.last;

  // ------------------------------------------------------------------------- manners of the memory
  // How the packet comes that is written to the buffer: did it find nothing before it, and how many
  // cycles have brought nothing since its first beat.
  localparam int unsigned GAP_BITS = $clog2(GAP_CYCLES + 2);
  localparam int unsigned LONG_BITS = $clog2(LONG_BEATS + 1);
  logic inside_q;                                  // between a packet's first beat and its last
  logic fresh_q;
  logic [GAP_BITS-1:0] gaps_q;                     // stops one above its limit
  logic [LONG_BITS-1:0] beats_q;                   // stops at its limit
  logic late, proof;                               // caution begins anew; one frame of it is over
  logic [CAUTION_BITS-1:0] caution_q, caution_d;
  logic calm;                                      // nothing buffered and no frame under way

  assign late = inside_q && fresh_q && gaps_q == GAP_BITS'(GAP_CYCLES + 1);
  assign proof = whole_in && inside_q && fresh_q && !late && beats_q == LONG_BITS'(LONG_BEATS);

  always_ff @(posedge clk_i) begin
    if (beat_valid_i && beat_ready_o) begin
      inside_q <= !beat_i.last;
      if (!inside_q) begin
        fresh_q <= calm;
        gaps_q <= '0;
        beats_q <= LONG_BITS'(1);
      end else if (beats_q != LONG_BITS'(LONG_BEATS)) begin
        beats_q <= beats_q + 1'b1;
      end
    end else if (inside_q && beat_ready_o && gaps_q != GAP_BITS'(GAP_CYCLES + 1)) begin
      gaps_q <= gaps_q + 1'b1;
    end
    if (rst_i) begin
      inside_q <= 1'b0;
    end
  end

  // ------------------------------------------------------------------------------- pace of the MAC
  // Cycles in which a frame has a beat for it, and the beats it takes, from the 16th on: before that
  // the MAC's own buffer fills.
  logic mac_slow_q;
  logic [3:0] sent_q;                              // beats of this frame, stops at the top
  logic [5:0] offered_q;
  logic [6:0] taken_q;
  logic out_valid, out_ready, out_last, out_bad;

  always_ff @(posedge clk_i) begin
    if (out_valid) begin
      if (out_ready) sent_q <= out_last ? '0 : sent_q == '1 ? sent_q : sent_q + 1'b1;
      if (sent_q == '1) begin
        offered_q <= offered_q + 1'b1;
        taken_q <= (offered_q == '0 ? 7'd0 : taken_q) + 7'(out_ready);
        if (offered_q == '1) mac_slow_q <= taken_q + 7'(out_ready) <= 7'(PACE);
      end
    end
    if (rst_i) begin
      sent_q <= '0;
      offered_q <= '0;
      mac_slow_q <= SLOW_MAC;
    end
  end

  // --------------------------------------------------------------------------------------- header
  logic [MAX_HEADER*8-1:0] header_network;         // first wire byte at the top
  logic [TAGGED_WHOLE:0][roci_pkg::DATA_BITS-1:0] header_beat;  // byte 0 at bits 7:0, then zeros
  logic has_tag;
  assign has_tag = stored.side.ethernet.vlan_valid;

  always_comb begin
    // 802.1Q: the tag stands between the addresses and the Ethertype
    if (has_tag) begin
      header_network = {stored.side.ethernet.dmac, stored.side.ethernet.smac, 16'h8100,
                        stored.side.ethernet.tci, 16'h8915};
    end else begin
      header_network = {stored.side.ethernet.dmac, stored.side.ethernet.smac, 16'h8915, 32'h0};
    end
    header_beat = '0;
    for (int unsigned b = 0; b < MAX_HEADER; b++) begin
      header_beat[b/BYTES][8*(b%BYTES)+:8] = header_network[8*(MAX_HEADER-1-b)+:8];
    end
  end

  // ------------------------------------------------------------------------------------ the frame
  typedef enum logic [1:0] {
    PART_IDLE,          // nothing, or not enough buffered
    PART_BODY,          // header and packet
    PART_TAIL,          // what the last packet beat pushed out
    PART_DISCARD        // rest of an aborted packet
  } part_e;
  part_e part_q, part_d;

  logic start;
  logic [1:0] index_q, index_d;                    // whole header beats sent
  logic first_q, first_d;                          // the next packet beat is the first
  logic [roci_pkg::DATA_BITS-1:0] carried_q;       // bytes pushed out of the last beat, low lanes
  logic [roci_pkg::LANE_BITS:0] tail_bytes_q;
  logic tail_bad_q;

  logic [roci_pkg::LANE_BITS:0] carry;             // bytes a beat moves up
  logic [1:0] whole;
  logic [roci_pkg::DATA_BITS-1:0] moved, pushed, header_rest;
  logic [roci_pkg::BYTES_BITS:0] joined;

  logic [roci_pkg::DATA_BITS-1:0] out_data;
  logic [roci_pkg::BYTES_BITS-1:0] out_bytes;
  logic underrun, take;

  // Without a whole packet in the buffer its only one is the one that is being written.
  assign start = stored_valid && !underrun_valid_o
                 && (whole_q != '0 || (!stored.side.whole && fresh_q && !late && caution_q == '0
                                       && mac_slow_q
                                       && usage >= USAGE_BITS'(START_BEATS)));
  assign calm = usage == '0 && part_q == PART_IDLE;
  assign carry = has_tag ? (roci_pkg::LANE_BITS+1)'(TAGGED_CARRY)
                        : (roci_pkg::LANE_BITS+1)'(PLAIN_CARRY);
  assign whole = has_tag ? 2'(TAGGED_WHOLE) : 2'(PLAIN_WHOLE);

  // the two fixed moves, without and with tag
  always_comb begin
    moved = has_tag ? stored.beat.data << (8 * TAGGED_CARRY)
                    : stored.beat.data << (8 * PLAIN_CARRY);
    pushed = has_tag ? stored.beat.data >> (8 * (BYTES - TAGGED_CARRY))
                     : stored.beat.data >> (8 * (BYTES - PLAIN_CARRY));
    header_rest = header_beat[has_tag ? TAGGED_WHOLE : PLAIN_WHOLE];
    joined = (roci_pkg::BYTES_BITS+1)'(carry) + (roci_pkg::BYTES_BITS+1)'(stored.beat.bytes);
  end

  always_comb begin
    part_d = part_q;
    index_d = index_q;
    first_d = first_q;
    caution_d = late ? CAUTION_BITS'(CAUTIOUS_FRAMES)
              : (proof && caution_q != '0) ? caution_q - 1'b1 : caution_q;
    out_valid = 1'b0;
    out_last = 1'b0;
    out_bad = 1'b0;
    out_data = moved | (first_q ? header_rest : carried_q);
    out_bytes = roci_pkg::BYTES_BITS'(BYTES);
    stored_ready = 1'b0;
    underrun = 1'b0;

    unique case (part_q)
      PART_IDLE, PART_BODY: begin
        if (part_q == PART_IDLE && !start) begin
          out_valid = 1'b0;
        end else if (index_q != whole) begin
          // narrow only: header beats, while the first packet beat waits
          out_valid = 1'b1;
          for (int unsigned h = 0; h <= TAGGED_WHOLE; h++) begin
            if (index_q == 2'(h)) out_data = header_beat[h];
          end
          if (out_ready) begin
            index_d = index_q + 2'd1;
            part_d = PART_BODY;
          end
        end else if (stored_valid) begin
          out_valid = 1'b1;
          out_last = stored.beat.last && joined <= (roci_pkg::BYTES_BITS+1)'(BYTES);
          out_bytes = out_last ? roci_pkg::BYTES_BITS'(joined) : roci_pkg::BYTES_BITS'(BYTES);
          out_bad = out_last && stored.beat.err;
          stored_ready = out_ready;
          if (out_ready) begin
            first_d = stored.beat.last;
            part_d = !stored.beat.last ? PART_BODY : out_last ? PART_IDLE : PART_TAIL;
            if (stored.beat.last) index_d = '0;
          end
        end else begin
          // nothing to send in mid-frame while the MAC wants a beat
          underrun = out_ready;
          out_valid = 1'b1;
          out_last = 1'b1;
          out_bad = 1'b1;
          out_data = carried_q;
          if (out_ready) begin
            part_d = PART_DISCARD;
            caution_d = CAUTION_BITS'(CAUTIOUS_FRAMES);
          end
        end
      end
      PART_TAIL: begin
        out_valid = 1'b1;
        out_last = 1'b1;
        out_bad = tail_bad_q;
        out_data = carried_q;
        out_bytes = roci_pkg::BYTES_BITS'(tail_bytes_q);
        if (out_ready) begin
          part_d = PART_IDLE;
        end
      end
      default: begin
        stored_ready = 1'b1;
        if (stored_valid && stored.beat.last) begin
          part_d = PART_IDLE;
          index_d = '0;
          first_d = 1'b1;
        end
      end
    endcase
    take = stored_valid && stored_ready && part_q != PART_DISCARD;
  end

  roci_pkg::tx_done_t last_q;                      // packet of the last beat that was taken

  assign left_o = last_q;
  always_comb begin
    underrun_o = last_q;
    underrun_o.fate = roci_pkg::TX_UNDERRUN;
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      carried_q <= pushed;
      tail_bytes_q <= (roci_pkg::LANE_BITS+1)'(joined - (roci_pkg::BYTES_BITS+1)'(BYTES));
      tail_bad_q <= stored.beat.err;
    end
    if (stored_valid && stored_ready) last_q <= stored.side.done;
    if (rst_i) begin
      part_q <= PART_IDLE;
      index_q <= '0;
      first_q <= 1'b1;
      caution_q <= CAUTION_BITS'(TRIAL_FRAMES);
      whole_q <= '0;
      underrun_valid_o <= 1'b0;
      aborted_o <= 1'b0;
      left_valid_o <= 1'b0;
    end else begin
      left_valid_o <= whole_out;
      part_q <= part_d;
      index_q <= index_d;
      first_q <= first_d;
      caution_q <= caution_d;
      whole_q <= whole_q + USAGE_BITS'(whole_in) - USAGE_BITS'(whole_out);
      aborted_o <= out_valid && out_ready && out_last && out_bad;
      if (underrun) begin
        underrun_valid_o <= 1'b1;
      end else if (underrun_ready_i) begin
        underrun_valid_o <= 1'b0;
      end
    end
  end

  // ------------------------------------------------------------------------------- output register
  typedef struct packed {
    logic bad;
    logic last;
    logic [roci_pkg::BYTES_BITS-1:0] bytes;
    logic [roci_pkg::DATA_BITS-1:0] data;
  } out_t;
  out_t out_in, out;
  logic [$bits(out_t)-1:0] out_bits;
  assign out_in = '{bad: out_bad, last: out_last, bytes: out_bytes, data: out_data};

  common_skid #(.WIDTH($bits(out_t))) u_out (
    .clk_i, .rst_i,
    .in_valid_i(out_valid), .in_ready_o(out_ready), .in_i(out_in),
    .out_valid_o(tvalid_o), .out_ready_i(tready_i), .out_o(out_bits)
  );
  assign out = out_t'(out_bits);
  assign tdata_o = out.data;
  assign tlast_o = out.last;
  assign tuser_o = out.bad;
  assign tkeep_o = roci_lane_pkg::below(out.bytes);

endmodule

`default_nettype wire
