// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_header_build: descriptor + payload → RoCEv1 packet from its GRH to its pad bytes.
//
// Reads the QP's path row (column QP_PATH) and the port's GID, lays out GRH, BTH and the extended
// headers of the opcode (wire.md 1.1–1.4) as bytes, and joins them with the payload, whose bytes
// move up by the header's length (a multiple of 4). Pad bytes are zero (wire.md 1.5), MigReq is 1
// (wire.md 1.2), AckReq, solicited, PSN come with the descriptor. A packet starts when its first
// payload beat is there; one beat per cycle, packets back to back (narrow reads a row word by word in
// 5 cycles; the shortest packet has 7 beats).
//
// UD (wire.md 2.12): the payload stream begins with 48 bytes of the WQE (sq_wqe_ud, address_vector),
// which are not counted in `payload_length`. They come first (PART_PREFIX) and fill in where the packet
// goes; the row of the QP has its own Q_Key, number and P_Key only (ctx_qp_path).
//
// A path is changed while its QP answers (SQD): from the first word of a row to the last no
// descriptor is taken, so that a packet has the old path or the new one.
// Does not: ICRC (packet_icrc_insert), Ethernet header (ethernet_tx: its fields ride beside each
// beat). A bus error in the payload is passed on as `err` on the last beat.
// Neighbours: packet_tx_decide, host_gather → here → packet_icrc_insert.
`default_nettype none

module packet_header_build (
  input  wire                      clk_i,
  input  wire                      rst_i,
  input  roci_pkg::ctx_req_t       ctx_i,          // columns QP_PATH and GID
  output roci_pkg::ctx_rsp_t       ctx_o,
  input  roci_pkg::port_t          port_i,

  input  wire                      desc_valid_i,
  output logic                     desc_ready_o,
  input  roci_pkg::tx_desc_t       desc_i,

  input  wire                      payload_valid_i,
  output logic                     payload_ready_o,
  input  roci_pkg::beat_t          payload_i,

  output logic                     beat_valid_o,
  input  wire                      beat_ready_i,
  output roci_pkg::beat_t          beat_o,
  output roci_pkg::packet_side_t   side_o          // the same in all beats of a packet
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;
  localparam int unsigned BYTES = roci_pkg::DATA_BYTES;
  // RETH and ImmDt are the longest; of an AtomicETH only the first 12 bytes are built here.
  localparam int unsigned EXTENSION_BYTES = 16 + 4;
  localparam int unsigned HEADER_BYTES = 40 + 12 + EXTENSION_BYTES;
  localparam int unsigned HEADER_BITS = 8 * HEADER_BYTES;
  // header beats: 2 (wide) or 9 (narrow)
  localparam int unsigned HEADER_BEATS = (HEADER_BYTES + BYTES - 1) / BYTES;
  localparam int unsigned INDEX_BITS = $clog2(HEADER_BEATS + 1);
  localparam int unsigned PREFIX_BYTES = 48;           // of a UD payload: not payload of the packet
  localparam int unsigned PREFIX_BEATS = (PREFIX_BYTES + BYTES - 1) / BYTES;   // 1 or 6
  // wide: the beat with the prefix is also the first one of the message
  localparam bit PREFIX_SHARES = PREFIX_BYTES % BYTES != 0;

  typedef logic [6:0] header_len_t;                    // bytes, 52..72

  // ------------------------------------------------------------------------------- path of the QP
  // Five 64-bit words per row, so that the context bus writes one at a time.
  localparam int unsigned ROW_WORDS = 5;
  logic [ROW_WORDS*64-1:0] row;
  logic [63:0] row_word;
  logic is_path, ctx_selected, ctx_read, ctx_read_q, row_read, row_valid, desc1_valid_q;
  logic row_open_q;                                    // a row is written: word 0 was, the last not yet
  roci_pkg::tx_desc_t desc1_q;
  roci_hwif_pkg::ctx_qp_path_t path;

  // not while a row is on its way
  assign is_path = ctx_i.column == roci_hwif_pkg::CTX_COLUMN_QP_PATH;
  assign ctx_selected = ctx_i.valid && !ctx_o.done && !ctx_read_q && is_path
                        && (!desc1_valid_q || row_valid);

  common_row_ram #(
    .WORDS(ROW_WORDS), .DEPTH(QPS), .SERIAL(!roci_config_pkg::IS_WIDE)
  ) u_path (
    .clk_i, .rst_i, .ready_o(),
    .write_i(ctx_selected && ctx_i.write), .word_read_i(ctx_read),
    .index_i(roci_pkg::qp_t'(ctx_i.index)), .word_i(ctx_i.word), .wdata_i(ctx_i.wdata),
    .word_o(row_word),
    .row_read_i(row_read), .row_index_i(ctx_read_q ? desc1_q.qp : desc_i.qp),
    .row_valid_o(row_valid), .row_o(row)
  );
  assign path = roci_hwif_pkg::ctx_qp_path_t'(row);

  roci_pkg::gid_index_t gid_index;                     // which GID of the port is looked at
  logic [127:0] sgid;
  context_gid_copy u_gids (.clk_i, .ctx_i, .index_i(gid_index), .gid_o(sgid));

  // ------------------------------------------------------------ stage 1: row is being read for desc1
  // Stage 2 holds the finished header. A read of the context bus does not wait for the link: it takes
  // the row away from desc1, which stays until its own row is read again.
  logic stage1_free, stage2_free;

  logic header_valid_q;
  logic has_payload_q, has_imm_q, shares_q;
  logic [INDEX_BITS-1:0] whole_beats_q;                // header beats that are full
  logic [roci_pkg::LANE_BITS-1:0] carry_q;             // lanes that the payload moves up
  logic [HEADER_BITS-1:0] header_q;                    // byte 0 at bits 7:0
  logic [HEADER_BEATS-1:0][roci_pkg::DATA_BITS-1:0] header_beats;   // the same, then zeros
  assign header_beats = (HEADER_BEATS*roci_pkg::DATA_BITS)'(header_q);
  logic [1:0] pad_q;
  roci_pkg::packet_side_t side_q;
  logic datagram_q;                                    // UD
  logic packet_done;                                   // last beat of the packet in stage 2 goes

  assign stage2_free = !header_valid_q || packet_done;
  assign stage1_free = !desc1_valid_q || (stage2_free && row_valid);
  assign ctx_read = ctx_selected && !ctx_i.write;
  assign desc_ready_o = stage1_free && !ctx_selected && !ctx_read_q && !row_open_q;
  assign row_read = (desc_valid_i && desc_ready_o) || (ctx_read_q && desc1_valid_q);

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      desc1_valid_q <= 1'b0;
      row_open_q <= 1'b0;
      ctx_read_q <= 1'b0;
      ctx_o <= '0;
    end else begin
      if (stage1_free) begin
        desc1_valid_q <= desc_valid_i && desc_ready_o;
      end
      ctx_read_q <= ctx_read;
      if (ctx_selected && ctx_i.write) begin
        if (ctx_i.word == '0) row_open_q <= 1'b1;
        if (ctx_i.word == 4'(ROW_WORDS - 1)) row_open_q <= 1'b0;
      end
      // a list that was broken off (firmware started anew) holds nothing up: the next access is elsewhere
      if (ctx_i.valid && !is_path) row_open_q <= 1'b0;
      ctx_o.done <= (ctx_selected && ctx_i.write) || ctx_read_q;
      ctx_o.rdata <= ctx_read_q ? row_word : '0;
    end
    if (stage1_free) begin
      desc1_q <= desc_i;
    end
  end

  // -------------------------------------------------------------------- header of desc1, as numbers
  // Opcode groups, wire.md 1.4: low 5 bits for RC and UC. UD has DETH and perhaps ImmDt.
  logic [4:0] operation;
  logic is_datagram, shares;
  logic is_unreliable;                                 // UC, UD
  logic has_reth, has_imm, has_ieth, has_aeth, has_atomic, has_atomic_ack;
  header_len_t header_len;
  logic [1:0] pad;
  roci_hwif_pkg::grh_t grh;
  roci_hwif_pkg::bth_t bth;
  roci_hwif_pkg::reth_t reth;
  roci_hwif_pkg::aeth_t aeth;
  logic [EXTENSION_BYTES*8-1:0] extension;             // first wire byte at the top
  logic [HEADER_BITS-1:0] header_network;              // first wire byte at the top
  logic [HEADER_BITS-1:0] header_bytes;                // byte 0 at bits 7:0

  always_comb begin
    operation = desc1_q.opcode[4:0];
    is_unreliable = desc1_q.opcode[7:5] == roci_hwif_pkg::TRANSPORT_UC
                    || desc1_q.opcode[7:5] == roci_hwif_pkg::TRANSPORT_UD;
    has_reth = operation == 5'h06 || operation == 5'h0a || operation == 5'h0b
               || operation == 5'h0c;
    is_datagram = desc1_q.opcode[7:5] == roci_hwif_pkg::TRANSPORT_UD;
    shares = PREFIX_SHARES && is_datagram;
    has_imm = operation == 5'h03 || operation == 5'h05 || operation == 5'h09
              || operation == 5'h0b;
    has_ieth = operation == 5'h16 || operation == 5'h17;
    has_aeth = operation == 5'h0d || operation == 5'h0f || operation == 5'h10
               || operation == 5'h11 || operation == 5'h12;
    has_atomic = operation == 5'h13 || operation == 5'h14;
    has_atomic_ack = operation == 5'h12;

    header_len = header_len_t'(40 + 12)
                 + (has_reth ? header_len_t'(16) : header_len_t'(0))
                 + (has_aeth ? header_len_t'(4) : header_len_t'(0))
                 + (has_imm || has_ieth ? header_len_t'(4) : header_len_t'(0))
                 + (has_atomic ? header_len_t'(12) : header_len_t'(0))
                 + (has_atomic_ack || is_datagram ? header_len_t'(8) : header_len_t'(0));
    pad = -desc1_q.payload_length[1:0];

    grh = '0;
    grh.ip_version = 4'd6;
    grh.traffic_class = path.traffic_class;
    grh.flow_label = path.flow_label;
    // wire.md 1.1: bytes after the GRH, ICRC included
    grh.payload_length = 16'(header_len) - 16'd40 + 16'(desc1_q.payload_length) + 16'(pad) + 16'd4;
    grh.next_header = 8'h1b;
    grh.hop_limit = path.hop_limit;
    grh.sgid = sgid;
    grh.dgid = {path.dgid_high, path.dgid_low};

    bth = '0;
    bth.transport = roci_hwif_pkg::transport_e'(desc1_q.opcode[7:5]);
    bth.operation = roci_hwif_pkg::operation_e'(desc1_q.opcode[4:0]);
    bth.solicited = desc1_q.solicited;
    bth.migrated = 1'b1;
    bth.pad_count = pad;
    bth.pkey = path.pkey;
    bth.dest_qpn = path.dest_qpn;
    bth.ack_request = desc1_q.ackreq;
    bth.psn = desc1_q.psn;

    reth = '{va: desc1_q.va, rkey: desc1_q.rkey, dma_length: desc1_q.dma_length};
    aeth = roci_hwif_pkg::aeth_t'({desc1_q.syndrome, desc1_q.msn});

    // An atomic has the first 12 bytes of a RETH; its operands come as payload (wire.md 1.3).
    extension = '0;
    if (is_datagram) begin
      // own Q_Key, which the one of the WQE replaces; own number (ctx_qp_path)
      extension[EXTENSION_BYTES*8-1-:8*8] = {path.dgid_low[31:0], 8'd0, path.dgid_low[55:32]};
      extension[(EXTENSION_BYTES-8)*8-1-:4*8] = desc1_q.imm;
    end else if (has_aeth) begin
      extension[EXTENSION_BYTES*8-1-:4*8] = aeth;
      extension[(EXTENSION_BYTES-4)*8-1-:8*8] = desc1_q.va;
    end else if (has_reth || has_atomic) begin
      extension[EXTENSION_BYTES*8-1-:16*8] = reth;
      extension[(EXTENSION_BYTES-16)*8-1-:4*8] = desc1_q.imm;
    end else begin
      extension[EXTENSION_BYTES*8-1-:4*8] = desc1_q.imm;
    end
    header_network = {grh, bth, extension};
    for (int unsigned w = 0; w < HEADER_BYTES / 4; w++) begin
      header_bytes[32*w+:32] = roci_lane_pkg::reversed(header_network[HEADER_BITS-1-32*w-:32]);
    end
  end

  // ------------------------------------------------------------- stage 2: the packet that goes out
  logic prefix_step, prefix_last;                      // a beat of the prefix is taken in; the last one
  logic [PREFIX_BEATS-1:0] prefix_here;
  logic [PREFIX_BYTES-1:0][7:0] prefix;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      header_valid_q <= 1'b0;
    end else if (stage2_free) begin
      header_valid_q <= desc1_valid_q && row_valid;
    end
    if (stage2_free) begin
      header_q <= header_bytes;
      datagram_q <= is_datagram;
      shares_q <= shares;
      has_payload_q <= desc1_q.payload_length != '0 || shares;
      whole_beats_q <= shares ? '0 : INDEX_BITS'(header_len >> roci_pkg::LANE_BITS);
      carry_q <= shares ? roci_pkg::LANE_BITS'(header_len - header_len_t'(PREFIX_BYTES))
                        : header_len[roci_pkg::LANE_BITS-1:0];
      has_imm_q <= has_imm;
      pad_q <= pad;
      side_q.whole <= is_unreliable;
      side_q.ethernet <= '{dmac: path.dmac, smac: port_i.mac, vlan_valid: path.vlan_valid,
                           tci: path.tci};
      side_q.done <= '{fate: roci_pkg::TX_SENT, source: desc1_q.source, qp: desc1_q.qp,
                       psn: desc1_q.psn, wqe_index: desc1_q.wqe_index, colour: desc1_q.colour};
    end

    // The prefix: sq_wqe_ud (Q_Key, number) and address_vector, with numbers in little endian.
    if (prefix_here[0/BYTES]) begin
      // bit 31: the own one (wire.md 2.12)
      if (!prefix[3][7]) begin
        for (int unsigned b = 0; b < 4; b++) header_q[8*(52+b)+:8] <= prefix[3 - b];
      end
      for (int unsigned b = 0; b < 3; b++) header_q[8*(45+b)+:8] <= prefix[6 - b];
    end
    for (int unsigned b = 0; b < 16; b++) begin
      if (prefix_here[(16 + b)/BYTES]) header_q[8*(24+b)+:8] <= prefix[16 + b];
    end
    if (prefix_here[32/BYTES]) begin
      for (int unsigned b = 0; b < 6; b++) side_q.ethernet.dmac[8*(5-b)+:8] <= prefix[32 + b];
      side_q.ethernet.tci <= {prefix[39], prefix[38]};
    end
    if (prefix_here[40/BYTES]) begin
      side_q.ethernet.vlan_valid <= prefix[40][0];
      header_q[8*8+:128] <= header_bytes[8*8+:128];    // of the GID that is chosen here
      header_q[8*7+:8] <= prefix[42];
      header_q[3:0] <= prefix[43][7:4];
      header_q[8*1+:8] <= {prefix[43][3:0], prefix[46][3:0]};
      header_q[8*2+:8] <= prefix[45];
      header_q[8*3+:8] <= prefix[44];
    end
  end

  // Whole header beats first, then the payload moved up by what is left of the header (`carry`
  // bytes), then at most one beat with what the last payload beat pushed out.
  typedef enum logic [1:0] {PART_HEADER, PART_PAYLOAD, PART_TAIL, PART_PREFIX} part_e;
  part_e part_q, part, first_part;
  logic started_q;                                     // part_q is of the packet in stage 2
  logic prefix_err_q;                                  // it ended the packet, with an error
  logic [INDEX_BITS-1:0] beat_index_q, beat_index;     // of header beats
  logic [INDEX_BITS-1:0] whole_beats;
  logic [roci_pkg::LANE_BITS-1:0] carry;
  logic has_payload;
  logic first_payload;
  roci_pkg::beat_t carried_q;                          // bytes pushed out of the last payload beat
  logic [roci_pkg::DATA_BITS-1:0] carry_bytes;         // low `carry` bytes of the next beat
  logic [roci_pkg::DATA_BITS-1:0] rotated, low_mask, front_mask, payload_masked;
  logic [roci_pkg::BYTES_BITS:0] joined;               // bytes of carry + payload beat + pad
  logic beat_valid, beat_ready;
  roci_pkg::beat_t beat;

  // The prefix of a beat that it shares with the message is overwritten by the header: what moves up are
  // the bytes behind it, by what the header is longer; the payload is never empty then.
  // (`shares`, stage 1).
  assign has_payload = has_payload_q;
  assign whole_beats = whole_beats_q;
  assign carry = carry_q;
  assign beat_index = started_q ? beat_index_q : '0;
  assign first_part = (whole_beats != '0 || !has_payload) ? PART_HEADER : PART_PAYLOAD;
  assign part = started_q ? part_q : datagram_q ? PART_PREFIX : first_part;

  assign prefix_step = header_valid_q && part == PART_PREFIX && payload_valid_i;
  assign prefix_last = beat_index == INDEX_BITS'(PREFIX_BEATS - 1);

  // which bytes of the prefix are at the lanes of this beat, and all of them by their lanes
  always_comb begin
    for (int unsigned k = 0; k < PREFIX_BEATS; k++) begin
      prefix_here[k] = prefix_step && beat_index == INDEX_BITS'(k);
    end
    for (int unsigned b = 0; b < PREFIX_BYTES; b++) prefix[b] = payload_i.data[8*(b%BYTES)+:8];
  end

  // the one place where a GID of the port is chosen
  always_comb begin
    gid_index = roci_pkg::gid_index_t'(path.sgid_index);
    if (prefix_step) gid_index = roci_pkg::gid_index_t'(prefix[41]);
  end

  // bytes behind the end of the payload are zero: pad (wire.md 1.5) and the start of the ICRC
  assign payload_masked = payload_i.data
                          & roci_lane_pkg::bits(roci_lane_pkg::below(payload_i.bytes));
  assign low_mask = roci_lane_pkg::bits(roci_lane_pkg::below({1'b0, carry}));
  // a shared beat: all of the header, 60 bytes or, with ImmDt, 64
  always_comb begin
    front_mask = low_mask;
    if (PREFIX_SHARES && shares_q && first_payload) begin
      front_mask = '1;
      if (!has_imm_q) front_mask[roci_pkg::DATA_BITS-1-:32] = '0;
    end
  end

  // byte b of the payload goes to lane (b + carry) mod BYTES; carry is a multiple of 4
  common_rotate #(
    .LANES(BYTES / 4), .LANE_BITS(32), .REGS(0), .UP(1'b1), .USER_BITS(1)
  ) u_rotate (
    .clk_i, .rst_i,
    .in_valid_i(1'b1), .in_ready_o(), .in_data_i(payload_masked),
    .in_amount_i(carry[roci_pkg::LANE_BITS-1:2]), .in_user_i(1'b0),
    .out_valid_o(), .out_ready_i(1'b1), .out_data_o(rotated), .out_user_o()
  );

  // first payload beat: the rest of the header; later ones: what the beat before pushed out
  logic first_payload_q;
  logic [roci_pkg::DATA_BITS-1:0] header_rest;
  always_comb begin
    header_rest = '0;
    for (int unsigned h = 0; h < HEADER_BEATS; h++) begin
      if (whole_beats == INDEX_BITS'(h)) begin
        header_rest = header_beats[h];
      end
    end
  end
  assign first_payload = !(started_q && part_q == PART_PAYLOAD && !first_payload_q);
  assign carry_bytes = first_payload ? header_rest : carried_q.data;

  always_comb begin
    joined = (roci_pkg::BYTES_BITS+1)'(carry) + (roci_pkg::BYTES_BITS+1)'(payload_i.bytes)
             + (payload_i.last ? (roci_pkg::BYTES_BITS+1)'(pad_q) : '0);
    beat = '0;
    beat_valid = 1'b0;
    payload_ready_o = 1'b0;
    unique case (part)
      PART_HEADER: begin
        // do not start before the payload is there
        beat_valid = header_valid_q && (started_q || !has_payload || payload_valid_i);
        for (int unsigned h = 0; h < HEADER_BEATS; h++) begin
          if (beat_index == INDEX_BITS'(h)) begin
            beat.data = header_beats[h];
          end
        end
        beat.bytes = roci_pkg::BYTES_BITS'(BYTES);
        if (!has_payload) begin
          if (beat_index == whole_beats) begin
            beat.last = 1'b1;
            beat.bytes = roci_pkg::BYTES_BITS'(carry);
          end else if (carry == '0 && beat_index + 1'b1 == whole_beats) begin
            beat.last = 1'b1;
          end
          beat.err = beat.last && prefix_err_q;
        end
      end
      PART_PAYLOAD: begin
        beat_valid = header_valid_q && payload_valid_i;
        payload_ready_o = header_valid_q && beat_ready;
        beat.data = (rotated & ~front_mask) | (carry_bytes & front_mask);
        beat.last = payload_i.last && joined <= (roci_pkg::BYTES_BITS+1)'(BYTES);
        beat.bytes = beat.last ? roci_pkg::BYTES_BITS'(joined) : roci_pkg::BYTES_BITS'(BYTES);
        beat.err = beat.last && payload_i.err;
      end
      PART_PREFIX: payload_ready_o = header_valid_q && !PREFIX_SHARES;
      default: begin
        beat_valid = 1'b1;
        beat = carried_q;
      end
    endcase
    packet_done = beat_valid && beat_ready && beat.last;
  end

  always_ff @(posedge clk_i) begin
    if (beat_valid && beat_ready) begin
      // what a payload beat pushes out goes to the low lanes of the next beat
      carried_q.data <= rotated & low_mask;
      carried_q.bytes <= roci_pkg::BYTES_BITS'(joined - (roci_pkg::BYTES_BITS+1)'(BYTES));
      carried_q.err <= payload_i.err;
      carried_q.last <= 1'b1;
      first_payload_q <= part == PART_HEADER;
      beat_index_q <= beat_index + 1'b1;
      if (part == PART_HEADER) begin
        part_q <= (has_payload && beat_index + 1'b1 == whole_beats) ? PART_PAYLOAD : PART_HEADER;
      end else begin
        part_q <= payload_i.last ? PART_TAIL : PART_PAYLOAD;
      end
    end
    if (prefix_step) begin
      part_q <= prefix_last ? first_part : PART_PREFIX;
      beat_index_q <= prefix_last ? '0 : beat_index + 1'b1;
      first_payload_q <= 1'b1;
    end
    if (rst_i) begin
      started_q <= 1'b0;
      prefix_err_q <= 1'b0;
    end else if (beat_valid && beat_ready) begin
      started_q <= !beat.last;
      if (beat.last) prefix_err_q <= 1'b0;
    end else if (prefix_step) begin
      started_q <= 1'b1;
      if (!PREFIX_SHARES && payload_i.last) prefix_err_q <= payload_i.err;
    end
  end

  // ------------------------------------------------------------------------------- output register
  typedef struct packed {
    roci_pkg::packet_side_t side;
    roci_pkg::beat_t beat;
  } out_t;
  out_t out_in, out;
  logic [$bits(out_t)-1:0] out_bits;

  assign out_in = '{side: side_q, beat: beat};
  common_skid #(.WIDTH($bits(out_t))) u_out (
    .clk_i, .rst_i,
    .in_valid_i(beat_valid), .in_ready_o(beat_ready), .in_i(out_in),
    .out_valid_o(beat_valid_o), .out_ready_i(beat_ready_i), .out_o(out_bits)
  );
  assign out = out_t'(out_bits);
  assign beat_o = out.beat;
  assign side_o = out.side;

  always_ff @(posedge clk_i) begin
    if (!rst_i && beat_valid && beat_ready && part == PART_PAYLOAD) begin
      assert (payload_i.bytes != '0)
      else $error("packet_header_build: empty payload beat");
    end
  end

endmodule

`default_nettype wire
