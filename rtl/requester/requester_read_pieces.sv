// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_read_pieces: turns judged responses into items for the RX commit.
//
// Keeps the SGE lists of outstanding READs. A response that carries data of a READ becomes one item
// per piece of local memory: the first SGE is found from the bytes received before (sums of the
// lengths), the others follow; SGEs without length are passed over. Any other packet is one item
// without a piece. A packet without data takes one cycle, one with data one more than it has
// pieces.
// A list that ends before the packet does is a failure of its READ (LOC_QP_OP_ERR), never a wait: the
// lists come from rings that programs can write at any time.
//
// Does not: judge packets (requester_read_data does), check keys (rx_commit asks context_mr_check).
// Neighbours: requester_read_data → here → packet_rx_commit.
`default_nettype none

module requester_read_pieces (
  input  wire                               clk_i,
  input  wire                               rst_i,

  input  wire                               record_write_i,   // always accepted
  input  roci_pkg::read_record_write_t      record_i,

  input  wire                               verdict_valid_i,
  output logic                              verdict_ready_o,
  input  requester_pkg::read_verdict_t      verdict_i,

  output logic                              item_valid_o,
  input  wire                               item_ready_i,
  output roci_pkg::rx_item_t                item_o
);

  localparam int unsigned RECORDS = 2 ** roci_config_pkg::READ_BITS;
  localparam int unsigned SGES = roci_config_pkg::MAX_SGE_RD;
  localparam int unsigned NUMBER_BITS = (SGES > 1) ? $clog2(SGES) : 1;
  localparam int unsigned LIST_BITS = SGES * $bits(roci_pkg::sge_t);

  typedef logic [NUMBER_BITS-1:0] number_t;
  typedef roci_pkg::sge_t [SGES-1:0] list_t;

  // ------------------------------------------------------------------------------ state
  logic valid_q, located_q;
  requester_pkg::read_verdict_t verdict_q;
  number_t number_q;                     // SGE of the next piece
  logic [31:0] offset_q;                 // in that SGE
  roci_pkg::packet_len_t left_q;         // bytes of the packet to be placed
  logic over_q;                          // the list has ended before them

  // ------------------------------------------------------------------------------ logic
  logic [LIST_BITS-1:0] list_bits;
  list_t list;
  logic take;
  number_t start_number;
  logic [31:0] start_offset;
  roci_pkg::sge_t sge;
  logic [31:0] available;
  roci_pkg::packet_len_t length;
  logic piece_last, done;

  assign list = list_t'(list_bits);
  assign verdict_ready_o = !valid_q || done;
  assign take = verdict_valid_i && verdict_ready_o;

  // Where the packet's first byte lies: the SGE whose end is the first one behind it.
  logic [SGES:0][31:0] sums;
  always_comb begin
    sums = '0;
    start_number = number_t'(SGES - 1);
    start_offset = '0;
    for (int unsigned n = 0; n < SGES; n++) begin
      sums[n+1] = sums[n] + list[n].length;
    end
    for (int unsigned n = SGES; n > 0; n--) begin
      if (verdict_q.received < sums[n]) begin
        start_number = number_t'(n - 1);
        start_offset = verdict_q.received - sums[n-1];
      end
    end
  end

  always_comb begin
    sge = list[number_q];
    available = sge.length - offset_q;
    piece_last = available >= 32'(left_q);
    length = piece_last ? left_q : available[12:0];

    item_o = '0;
    item_o.colour = verdict_q.colour;
    item_o.qp = verdict_q.qp;
    item_o.fn = verdict_q.fn;
    item_o.pd = verdict_q.pd;
    item_o.psn = verdict_q.psn;
    item_o.is_response = 1'b1;
    item_o.has_piece = verdict_q.has_data;
    item_o.last = !verdict_q.has_data || piece_last;
    item_o.piece.access = roci_pkg::ACCESS_LOCAL_WRITE;
    item_o.piece.key = sge.lkey;
    item_o.piece.length = 32'(length);
    item_o.piece.va = sge.va + 64'(offset_q);
    item_o.end_info.drop = verdict_q.drop;
    item_o.end_info.ack_event_valid = verdict_q.event_valid;
    item_o.end_info.ack_event = verdict_q.ack_event;
    if (verdict_q.has_data && over_q) begin
      item_o.has_piece = 1'b0;
      item_o.last = 1'b1;
      item_o.end_info.drop = 1'b1;
      item_o.end_info.ack_event_valid = 1'b1;
      item_o.end_info.ack_event.kind = roci_pkg::ACK_EVENT_LOCAL_ERROR;
      item_o.end_info.ack_event.syndrome = 8'(roci_hwif_pkg::CQE_STATUS_LOC_QP_OP_ERR);
      item_o.end_info.ack_event.msn = 24'(roci_hwif_pkg::VENDOR_STATUS_WQE_LENGTH);
    end
    if (!item_o.has_piece) item_o.piece = '0;

    item_valid_o = valid_q && (!verdict_q.has_data || (located_q && (available != '0 || over_q)));
    done = item_valid_o && item_ready_i && item_o.last;
  end

  always_ff @(posedge clk_i) begin
    if (take) verdict_q <= verdict_i;
    if (!located_q) begin
      number_q <= start_number;
      offset_q <= start_offset;
      left_q <= verdict_q.length;
      over_q <= verdict_q.received >= sums[SGES];
    end else if (available == '0 || item_ready_i) begin
      number_q <= number_q + 1'b1;
      offset_q <= '0;
      if (number_q == number_t'(SGES - 1)) over_q <= 1'b1;
      if (available != '0) left_q <= left_q - length;
    end
    valid_q <= take || (valid_q && !done);
    located_q <= valid_q && !done;
    if (rst_i) begin
      valid_q <= 1'b0;
      located_q <= 1'b0;
    end
  end

  // the list is read with the verdict and stays at the output until the next one
  common_ram_sdp #(
    .WIDTH(LIST_BITS), .DEPTH(RECORDS), .STYLE(roci_config_pkg::IS_WIDE ? "ultra" : "block")
  ) u_lists (
    .clk_i, .we_i(record_write_i), .waddr_i(record_i.slot), .wdata_i(record_i.sges),
    .re_i(take), .raddr_i(verdict_i.slot), .rdata_o(list_bits)
  );

  // ------------------------------------------------------------------------ assertions
  always_ff @(posedge clk_i) begin
    if (!rst_i && valid_q && verdict_q.has_data) begin
      assert (verdict_q.length != '0);
    end
  end

endmodule

`default_nettype wire
