// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_rx_dispatch: finds the queue pair of a good frame and sends its headers to the responder
// (requests) or the requester (responses).
//
// Checks in the order of wire.md 2.2, all failures are silent drops with a counter each: the QP exists
// and its number is that of this incarnation; the opcode is of its class; its state receives
// (requests: RTR, RTS, SQD; responses: RTS, SQD; datagrams also SQE); source and destination GID and
// VLAN are those of the connection (RC, UC); P_Key (wire.md 2.13): the QP's own, for GSI any of the
// port's table; Q_Key (UD, GSI); GSI takes nothing but MADs: 256 bytes, no immediate (wire.md 2.12).
// What a datagram's completion tells is put into its headers' `va`: index of the P_Key (GSI) in 33:32,
// source QP in 23:0, where header_parse left it.
// For every frame, dropped or not, one entry of `order_o` tells packet_rx_commit whose turn it is.
// Stamps the colour (rule 8) when it takes a frame, before it reads QP state, and holds it until the
// frame's token with `packet_end` has come out of the commit FIFO (`end_i`).
//
// The row of a live QP (SQD) is changed words 1 to 3 first, word 0 last: from the first to the last no
// frame is taken, so that each meets the old row or the new one.
// Does not: PSN or any other sequence check; members of multicast groups.
// One frame per cycle; narrow reads a row word by word, one frame in 4 cycles.
// Neighbours: packet_rx_buffer → here → responder_check, requester_read_data, packet_rx_commit.
`default_nettype none

module packet_rx_dispatch #(
  parameter int unsigned FRAMES = 4096          // bound of frames between here and `end_i`
) (
  input  wire                           clk_i,
  input  wire                           rst_i,
  input  roci_pkg::ctx_req_t            ctx_i,         // columns QP_RX and GID
  output roci_pkg::ctx_rsp_t            ctx_o,
  input  roci_pkg::port_t               port_i,
  input  roci_pkg::state_bcast_t        state_i,
  input  roci_pkg::colour_t             colour_i,

  input  wire                           headers_valid_i,
  output logic                          headers_ready_o,
  input  roci_pkg::rx_headers_t         headers_i,

  output logic                          request_valid_o,
  input  wire                           request_ready_i,
  output roci_pkg::rx_packet_t          request_o,
  output logic                          response_valid_o,
  input  wire                           response_ready_i,
  output roci_pkg::rx_packet_t          response_o,
  output logic                          order_valid_o,
  input  wire                           order_ready_i,
  output roci_pkg::rx_order_t           order_o,

  input  wire                           flush_valid_i, // a flush of a receive began (responder): it
  input  roci_pkg::colour_t             flush_i,       // ends with `packet_end` like a frame
  input  wire                           end_valid_i,   // a frame's last token came out
  input  roci_pkg::colour_t             end_i,
  output roci_pkg::fence_busy_t         fence_busy_o,
  output roci_count_pkg::rx_dispatch_count_t  count_o,       // pulses
  output logic                          ready_o        // tables are cleared after reset
);

  localparam int unsigned QPS = 2 ** roci_config_pkg::QP_BITS;
  localparam int unsigned ROW_WORDS = 4;
  localparam int unsigned COUNT_BITS = $clog2(FRAMES + 1);

  // -------------------------------------------------------------------- stage 0: the rows are read
  logic stage0_take, stage1_free;
  logic is_rx, ctx_selected, ctx_read, ctx_read_q;
  logic row_open_q;                    // words of a row were written, word 0 not yet
  logic valid_q;                       // stage 1 has a frame
  roci_pkg::rx_headers_t headers_q;
  roci_pkg::qp_t index;
  logic [ROW_WORDS*64-1:0] row_bits;
  logic [63:0] row_word;
  logic row_valid;
  logic rows_ready, states_ready;
  roci_hwif_pkg::ctx_qp_rx_t row;
  logic [2:0] state_bits;

  assign ready_o = rows_ready && states_ready;
  // Not while a row is on its way. A read of the context bus does not wait for the frames before it: it
  // takes the row away from stage 1, whose frame stays until its row is read again.
  assign is_rx = ctx_i.column == roci_hwif_pkg::CTX_COLUMN_QP_RX;
  assign ctx_selected = ctx_i.valid && !ctx_o.done && !ctx_read_q && ready_o && is_rx
                        && (!valid_q || row_valid);
  assign ctx_read = ctx_selected && !ctx_i.write;
  assign index = roci_pkg::qp_t'(headers_i.dest_qpn);
  assign headers_ready_o = ready_o && stage1_free && !ctx_selected && !ctx_read_q && !row_open_q;
  assign stage0_take = headers_valid_i && headers_ready_o;

  common_row_ram #(
    .WORDS(ROW_WORDS), .DEPTH(QPS), .SERIAL(!roci_config_pkg::IS_WIDE), .CLEARED(1'b1)
  ) u_rows (
    .clk_i, .rst_i, .ready_o(rows_ready),
    .write_i(ctx_selected && ctx_i.write), .word_read_i(ctx_read),
    .index_i(roci_pkg::qp_t'(ctx_i.index)), .word_i(ctx_i.word), .wdata_i(ctx_i.wdata),
    .word_o(row_word),
    .row_read_i(stage0_take || (ctx_read_q && valid_q)),
    .row_index_i(ctx_read_q ? roci_pkg::qp_t'(headers_q.dest_qpn) : index),
    .row_valid_o(row_valid), .row_o(row_bits)
  );
  // replica of context_qp_state
  common_ram_cleared #(.WIDTH(3), .DEPTH(QPS)) u_states (
    .clk_i, .rst_i, .ready_o(states_ready),
    .we_i(state_i.valid), .waddr_i(state_i.qp), .wdata_i(state_i.state),
    .re_i(stage1_free), .raddr_i(index), .rdata_o(state_bits)
  );
  assign row = roci_hwif_pkg::ctx_qp_rx_t'(row_bits);

  logic [127:0] own_gid;               // that the QP's path names
  context_gid_copy u_gids (
    .clk_i, .ctx_i, .index_i(roci_pkg::gid_index_t'(row.sgid_index)), .gid_o(own_gid)
  );
  wire unused_port = &{1'b0, port_i};

  // -------------------------------------------------------------------------- stage 1: the verdict
  // wire.md 2.13: equal and not zero without the membership bit, and one side at least is a full member
  function automatic logic same_partition(input logic [15:0] a, input logic [15:0] b);
    return a[14:0] == b[14:0] && b[14:0] != 15'd0 && (a[15] || b[15]);
  endfunction

  roci_pkg::colour_t colour_q;

  roci_pkg::qp_state_e qp_state;
  logic is_response, is_datagram_qp, is_gsi, class_matches;
  logic state_matches, gid_matches, vlan_matches, pkey_matches, qkey_matches, is_mad;
  logic [1:0] pkey_index;              // of the port's table, GSI
  logic [11:0] vlan_id;
  roci_count_pkg::rx_dispatch_count_t drop;
  logic dropped, target_ready;
  roci_pkg::rx_packet_t packet;

  always_comb begin
    qp_state = roci_pkg::qp_state_e'(state_bits);
    // wire.md 1.4: READ responses, ACK, atomic ACK
    is_response = headers_q.opcode >= 8'h0d && headers_q.opcode <= 8'h12;
    is_datagram_qp = row.qp_type == roci_hwif_pkg::QP_TYPE_UD
                     || row.qp_type == roci_hwif_pkg::QP_TYPE_GSI;
    is_gsi = row.qp_type == roci_hwif_pkg::QP_TYPE_GSI;
    unique case (row.qp_type)
      roci_hwif_pkg::QP_TYPE_RC: class_matches = headers_q.opcode[7:5] == 3'd0;
      roci_hwif_pkg::QP_TYPE_UC: class_matches = headers_q.opcode[7:5] == 3'd1;
      roci_hwif_pkg::QP_TYPE_UD,
      roci_hwif_pkg::QP_TYPE_GSI: class_matches = headers_q.opcode[7:5] == 3'd3;
      default: class_matches = 1'b0;
    endcase

    unique case (qp_state)
      roci_pkg::QPS_RTR: state_matches = !is_response;
      roci_pkg::QPS_RTS, roci_pkg::QPS_SQD: state_matches = 1'b1;
      roci_pkg::QPS_SQE: state_matches = is_datagram_qp || row.qp_type == roci_hwif_pkg::QP_TYPE_UC;
      default: state_matches = 1'b0;
    endcase

    gid_matches = headers_q.dgid == own_gid
                  && headers_q.sgid == {row.peer_gid_high, row.peer_gid_low};
    // a priority tag (VLAN 0) counts as untagged, wire.md 1.8
    vlan_id = headers_q.vlan_valid ? headers_q.tci[11:0] : 12'd0;
    vlan_matches = vlan_id == (row.vlan_valid ? row.vlan_id : 12'd0);
    pkey_matches = !is_gsi && same_partition(headers_q.pkey, row.pkey);
    pkey_index = 2'd0;
    for (int unsigned k = roci_pkg::PKEYS; k-- != 0;) begin
      if (is_gsi && same_partition(headers_q.pkey, port_i.pkey[k])) begin
        pkey_matches = 1'b1;
        pkey_index = 2'(k);
      end
    end
    qkey_matches = headers_q.va[63:32] == row.peer_gid_low[31:0];
    is_mad = headers_q.opcode[4:0] == 5'h04
             && headers_q.payload_length == 13'(packet_pkg::GRH_BYTES + 256);

    drop = '0;
    if (!row.valid || row.qpn != headers_q.dest_qpn) begin
      drop.dest_qp = 1'b1;
    end else if (!class_matches) begin
      drop.opcode = 1'b1;
    end else if (!state_matches) begin
      drop.state = 1'b1;
    end else if (!is_datagram_qp && !gid_matches) begin
      drop.gid = 1'b1;
    end else if (!is_datagram_qp && !vlan_matches) begin
      drop.vlan = 1'b1;
    end else if (!pkey_matches) begin
      drop.pkey = 1'b1;
    end else if (is_datagram_qp && !qkey_matches) begin
      drop.qkey = 1'b1;
    end else if (is_gsi && !is_mad) begin
      drop.mad = 1'b1;
    end
    dropped = drop != '0;

    packet.colour = colour_q;
    packet.qp = roci_pkg::qp_t'(headers_q.dest_qpn);
    packet.fn = roci_pkg::fn_t'(row.fn);
    packet.qp_type = roci_pkg::qp_type_e'(row.qp_type);
    packet.state = qp_state;
    packet.headers = headers_q;
    if (is_datagram_qp) packet.headers.va[33:32] = pkey_index;
  end

  // --------------------------------------------------- stage 2: one register per way out, fork of two
  // The order entry and the packet may leave in different cycles; both must be gone for the next.
  logic order_free, request_free, response_free;
  logic stage1_done;

  assign order_free = !order_valid_o || order_ready_i;
  assign request_free = !request_valid_o || request_ready_i;
  assign response_free = !response_valid_o || response_ready_i;
  assign target_ready = dropped || (is_response ? response_free : request_free);
  assign stage1_done = valid_q && row_valid && order_free && target_ready;
  assign stage1_free = !valid_q || stage1_done;

  always_ff @(posedge clk_i) begin
    if (stage1_free) begin
      headers_q <= headers_i;
      colour_q <= colour_i;
    end
    if (stage1_done) begin
      order_o.target <= dropped ? roci_pkg::RX_DROPPED
                      : is_response ? roci_pkg::RX_REQUESTER : roci_pkg::RX_RESPONDER;
      order_o.has_payload <= headers_q.payload_length != '0;
      order_o.colour <= colour_q;
    end
    if (stage1_done && !dropped && !is_response) begin
      request_o <= packet;
    end
    if (stage1_done && !dropped && is_response) begin
      response_o <= packet;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      valid_q <= 1'b0;
      order_valid_o <= 1'b0;
      request_valid_o <= 1'b0;
      response_valid_o <= 1'b0;
      count_o <= '0;
      ctx_read_q <= 1'b0;
      row_open_q <= 1'b0;
      ctx_o <= '0;
    end else begin
      if (stage1_free) begin
        valid_q <= stage0_take;
      end
      if (order_free) begin
        order_valid_o <= stage1_done;
      end
      if (request_free) begin
        request_valid_o <= stage1_done && !dropped && !is_response;
      end
      if (response_free) begin
        response_valid_o <= stage1_done && !dropped && is_response;
      end
      count_o <= stage1_done ? drop : '0;

      ctx_read_q <= ctx_read;
      if (ctx_selected && ctx_i.write) row_open_q <= ctx_i.word != '0;
      // a list that was broken off (firmware started anew) holds nothing up: the next access is elsewhere
      if (ctx_i.valid && !is_rx) row_open_q <= 1'b0;
      ctx_o.done <= (ctx_selected && ctx_i.write) || ctx_read_q;
      ctx_o.rdata <= ctx_read_q ? row_word : '0;
    end
  end

  // ------------------------------------------------------------------------------------- fence
  logic [COUNT_BITS-1:0] held_q[2];
  always_ff @(posedge clk_i) begin
    for (int unsigned c = 0; c < 2; c++) begin
      if (rst_i) begin
        held_q[c] <= '0;
      end else begin
        held_q[c] <= held_q[c] + COUNT_BITS'(stage0_take && colour_i == 1'(c))
                     + COUNT_BITS'(flush_valid_i && flush_i == 1'(c))
                     - COUNT_BITS'(end_valid_i && end_i == 1'(c));
        assert (!(end_valid_i && end_i == 1'(c) && held_q[c] == '0))
        else $error("packet_rx_dispatch: more ends than frames");
      end
    end
  end
  assign fence_busy_o = {held_q[1] != '0, held_q[0] != '0};

endmodule

`default_nettype wire
