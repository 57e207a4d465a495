// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// requester_wqe_front: puts blocks together to WQEs, takes their SGEs out, and checks what can be
// checked without knowing the QP.
//
// One SGE per cycle, and a WQE with at most one takes one cycle per block: its packets will take as
// many pieces. SGEs without length are left out. By the time a WQE is shown all its SGEs have been
// handed over and their sum is compared with its length, so a malformed WQE is known as such before
// its first packet. Malformed (hwif vendor_status):
// WQE_BLOCKS 0 or more than 8 blocks, crosses a line, exceeds what was posted, or too few for
//                   its SGEs. It then ends with this block, or where the posted blocks end.
//   WQE_OPCODE      unknown, or not executable here; address vector, but not a SEND
//   WQE_GID_INDEX   address vector with a source GID that the port has not
//   WQE_INLINE      inline data in a READ or atomic, or more than the blocks hold
//   ATOMIC_LENGTH   atomic whose local buffer is not one SGE of 8 bytes at a multiple of 8
//   WQE_SGE_COUNT   READ with more SGEs than a READ record holds
//   WQE_LENGTH      more than 2^31 bytes (wire.md 1.4), or SGEs that do not add up to the length
// A block that could not be read is a WQE of its own, or spoils the one it belongs to.
// The operands of an atomic (sq_wqe_atomic) go to the wire as they lie in the ring: they are the
// inline data of its request, and its one SGE, behind them, is where the answer goes.
//
// A WQE with an address vector (UD) has its SGEs or inline bytes from byte 80 on: they begin in the
// second block, behind the vector's last 16 bytes.
//
// Does not: look at epochs or states; know types of QPs. Neighbours: queue_wqe_fetch → here →
// requester_send_rows (WQEs), requester_sge_walk (SGEs). Layouts: sq_wqe_* of hwif/queues.toml.
`default_nettype none

module requester_wqe_front (
  input  wire                              clk_i,
  input  wire                              rst_i,

  input  wire                              block_valid_i,
  output logic                             block_ready_o,
  input  wire roci_pkg::wqe_block_t        block_i,

  output logic                             wqe_valid_o,
  input  wire                              wqe_ready_i,
  output requester_send_pkg::wqe_t         wqe_o,

  input  wire [roci_pkg::GIDS-1:0]         gid_valid_i,  // of the port (port_t)

  output logic                             sge_valid_o,
  input  wire                              sge_ready_i,
  output roci_pkg::sge_t                   sge_o,

  output logic                             begin_valid_o, // pulse: a WQE's first block is taken
  output roci_pkg::colour_t                begin_colour_o
);

  localparam int unsigned FIRST_SLOTS = 2;           // SGEs in the first block, behind the header
  localparam int unsigned SLOTS = 4;                 // in the others
  localparam int unsigned HEADER_BITS = 8 * 32;
  localparam int unsigned SUM_BITS = 36;             // 15 SGEs of up to 2^32-1 bytes

  // ------------------------------------------------------------------------------ state
  logic inside_q;                      // between the blocks of a WQE
  requester_send_pkg::wqe_t wqe_q;     // of it, once its first block is through
  logic [3:0] blocks_left_q;           // blocks to come
  logic [3:0] sges_left_q;             // SGEs in blocks to come

  logic skip_q;                        // this block begins with the end of an address vector
  logic [1:0] slot_q;                  // next SGE of the block
  logic [3:0] kept_q;                  // SGEs of the WQE handed over
  logic [SUM_BITS-1:0] sum_q;          // their bytes

  logic out_valid_q;
  requester_send_pkg::wqe_t out_q;
  logic [SUM_BITS-1:0] out_sum_q;

  // ------------------------------------------------------------------------------ first block
  roci_hwif_pkg::sq_wqe_control_t control;
  roci_hwif_pkg::sq_wqe_remote_t remote;
  roci_hwif_pkg::sge_t atomic_sge;     // behind the operands
  logic [7:0] sgid_index;              // of the address vector
  logic bad_sgid;
  requester_send_pkg::wqe_t head;      // the WQE as its first block tells it
  logic bad_blocks;
  logic sge_over, sge_over_plain;      // it has more SGEs than its blocks hold; without address vector
  logic [9:0] inline_room;             // inline bytes that they hold
  logic well_formed;
  logic head_takes;                    // it has SGEs to take out, from this block on
  logic head_leaves;                   // or from the next one on
  logic is_atomic, is_datagram, is_nop, is_read, is_send, is_write;
  logic bad_atomic;

  assign control = block_i.block[127:0];
  assign remote = block_i.block[255:128];
  assign atomic_sge = block_i.block[511:384];
  assign sgid_index = block_i.block[256+200+:8];
  assign bad_sgid = 32'(sgid_index) >= roci_pkg::GIDS
                    || !gid_valid_i[roci_pkg::gid_index_t'(sgid_index)];
  assign bad_blocks = control.blocks == '0
                      || {1'b0, control.blocks} + {2'b0, block_i.index[2:0]} > 5'd8;
  // header and SGEs, in places of 16 bytes: more than the blocks have
  assign sge_over_plain = {2'd0, control.sge_count} + 6'd2 > {control.blocks, 2'b00};
  assign sge_over = is_datagram ? {2'd0, control.sge_count} + 6'd5 > {control.blocks, 2'b00}
                                : sge_over_plain;
  assign is_nop = control.opcode == roci_hwif_pkg::WR_OPCODE_NOP;
  assign is_read = control.opcode == roci_hwif_pkg::WR_OPCODE_READ;
  assign is_send = control.opcode == roci_hwif_pkg::WR_OPCODE_SEND
                   || control.opcode == roci_hwif_pkg::WR_OPCODE_SEND_IMM;
  assign is_write = control.opcode == roci_hwif_pkg::WR_OPCODE_WRITE
                    || control.opcode == roci_hwif_pkg::WR_OPCODE_WRITE_IMM;
  assign inline_room = {control.blocks, 6'd0} - (is_datagram ? 10'd80 : 10'd32);
  assign is_atomic = control.opcode == roci_hwif_pkg::WR_OPCODE_CMP_SWAP
                     || control.opcode == roci_hwif_pkg::WR_OPCODE_FETCH_ADD;
  assign is_datagram = control.address_vector;         // of a NOP it means nothing
  assign bad_atomic = control.length != 32'd8 || control.sge_count != 4'd1
                      || atomic_sge.length != 32'd8 || atomic_sge.va[2:0] != '0;

  always_comb begin
    head = '0;
    head.colour = block_i.colour;
    head.turn = block_i.turn;
    head.bus_error = block_i.err;
    head.qp = block_i.qp;
    head.epoch = block_i.epoch;
    head.index = block_i.index;
    head.blocks = 4'd1;
    head.signaled = control.signaled;
    head.fence = control.fence;
    head.solicited = control.solicited;
    head.inline_data = control.inline_data || is_atomic;
    head.imm = control.imm_or_key;                   // a key; immediate data: see below
    head.length = control.length;
    head.va = remote.va;
    head.rkey = remote.rkey;
    head.datagram = is_datagram && !is_nop;
    head.inline_addr = {block_i.addr[63:6], 6'd32};

    head.wc_opcode = {3'd0, control.opcode[4:0]};    // all known ones are below 32
    unique case (control.opcode)
      roci_hwif_pkg::WR_OPCODE_NOP: head.kind = requester_send_pkg::KIND_NOP;
      roci_hwif_pkg::WR_OPCODE_SEND: head.kind = requester_send_pkg::KIND_SEND;
      roci_hwif_pkg::WR_OPCODE_SEND_IMM: begin
        head.kind = requester_send_pkg::KIND_SEND;
        head.has_imm = 1'b1;
        head.wc_opcode = roci_hwif_pkg::CQE_OPCODE_SEND;
      end
      roci_hwif_pkg::WR_OPCODE_WRITE: head.kind = requester_send_pkg::KIND_WRITE;
      roci_hwif_pkg::WR_OPCODE_WRITE_IMM: begin
        head.kind = requester_send_pkg::KIND_WRITE;
        head.has_imm = 1'b1;
        head.wc_opcode = roci_hwif_pkg::CQE_OPCODE_WRITE;
      end
      roci_hwif_pkg::WR_OPCODE_READ: head.kind = requester_send_pkg::KIND_READ;
      roci_hwif_pkg::WR_OPCODE_CMP_SWAP, roci_hwif_pkg::WR_OPCODE_FETCH_ADD: begin
        head.kind = requester_send_pkg::KIND_ATOMIC;
      end
      default: head.kind = requester_send_pkg::KIND_OTHER;
    endcase
    // four bytes in their order on the wire (wire.md 1.3), where a number has its first byte on top
    if (head.has_imm) head.imm = roci_lane_pkg::reversed(control.imm_or_key);

    if (bad_blocks) begin
      head.vendor_status = roci_hwif_pkg::VENDOR_STATUS_WQE_BLOCKS;
    end else if (head.kind == requester_send_pkg::KIND_OTHER
                 || (is_datagram && !is_send && !is_nop)) begin
      head.vendor_status = roci_hwif_pkg::VENDOR_STATUS_WQE_OPCODE;
    end else if (!is_nop) begin
      if (is_datagram && control.blocks == 4'd1) begin
        head.vendor_status = roci_hwif_pkg::VENDOR_STATUS_WQE_BLOCKS;
      end else if (is_datagram && bad_sgid) begin
        head.vendor_status = roci_hwif_pkg::VENDOR_STATUS_WQE_GID_INDEX;
      end else if (control.inline_data) begin
        if (requester_send_pkg::is_fetch(head.kind) || control.length > 32'(inline_room)) begin
          head.vendor_status = roci_hwif_pkg::VENDOR_STATUS_WQE_INLINE;
        end
      end else if (is_atomic) begin
        if (bad_atomic) begin
          head.vendor_status = roci_hwif_pkg::VENDOR_STATUS_ATOMIC_LENGTH;
        end
      end else if (sge_over) begin
        head.vendor_status = roci_hwif_pkg::VENDOR_STATUS_WQE_BLOCKS;
      end else if (head.kind == requester_send_pkg::KIND_READ
                   && 32'(control.sge_count) > roci_config_pkg::MAX_SGE_RD) begin
        head.vendor_status = roci_hwif_pkg::VENDOR_STATUS_WQE_SGE_COUNT;
      end else if (control.length > roci_hwif_pkg::MAX_MESSAGE_BYTES) begin
        head.vendor_status = roci_hwif_pkg::VENDOR_STATUS_WQE_LENGTH;
      end
    end
    // the same conditions side by side: the path from here to block_ready_o is long
    well_formed = !bad_blocks && !control.inline_data && !block_i.err
                  && control.length <= roci_hwif_pkg::MAX_MESSAGE_BYTES;
    head_takes = well_formed && !is_datagram
                 && (((is_send || is_write || (is_read && 32'(control.sge_count)
                                                          <= roci_config_pkg::MAX_SGE_RD))
                      && !sge_over_plain)
                     || (is_atomic && !bad_atomic));
    head_leaves = well_formed && is_datagram && is_send && control.blocks != 4'd1 && !bad_sgid
                  && !sge_over;
  end

  // ------------------------------------------------------------------------------ any block
  requester_send_pkg::wqe_t wqe;       // what is known with this block
  logic [3:0] sges;                    // SGEs of the WQE from this block on
  logic [2:0] room;                    // places for them in this block
  logic [2:0] in_block;                // of them in this block
  logic [2:0] end_slot;                // place behind them
  logic [3:0] blocks_left;             // blocks of the WQE behind this one
  logic last_block;                    // the WQE ends with this block
  logic truncated;                     // before its time
  logic last_slot;                     // last step of this block
  logic keep;                          // the SGE is handed over
  logic step;
  logic out_free;

  // Behind an address vector the second block has three, from its second place on. Of the first block
  // everything is worked out as if it had SGEs; whether it has comes last (head_takes).
  assign sges = inside_q ? sges_left_q : control.sge_count;
  always_comb begin
    if (!inside_q) room = 3'(FIRST_SLOTS);
    else room = skip_q ? 3'(SLOTS - 1) : 3'(SLOTS);
    in_block = sges > 4'(room) ? room : sges[2:0];
  end
  assign end_slot = in_block + 3'(inside_q && skip_q);
  assign blocks_left = inside_q ? blocks_left_q - 4'd1
                                : (bad_blocks || block_i.err ? 4'd0 : control.blocks - 4'd1);
  assign truncated = block_i.burst_last && blocks_left != '0;
  assign last_block = truncated || blocks_left == '0;
  assign last_slot = {1'b0, slot_q} + 3'd1 >= end_slot || !(inside_q || head_takes);

  always_comb begin
    // SGE of this step
    sge_o = '0;
    for (int unsigned s = 0; s < SLOTS; s++) begin
      roci_hwif_pkg::sge_t raw;
      raw = inside_q || s >= FIRST_SLOTS ? block_i.block[128*s +: 128]
                                         : block_i.block[HEADER_BITS + 128*s +: 128];
      if (slot_q == 2'(s)) begin
        sge_o.va = raw.va;
        sge_o.length = raw.length;
        sge_o.lkey = raw.lkey;
      end
    end
    if (!inside_q && is_atomic) begin
      sge_o.va = atomic_sge.va;
      sge_o.length = atomic_sge.length;
      sge_o.lkey = atomic_sge.lkey;
    end
  end

  assign keep = in_block != '0 && sge_o.length != '0 && (inside_q || head_takes);
  assign out_free = !out_valid_q || wqe_ready_i;
  assign sge_valid_o = block_valid_i && keep && (!last_slot || !last_block || out_free);
  assign step = block_valid_i && (!keep || sge_ready_i) && (!last_slot || !last_block || out_free);
  assign block_ready_o = last_slot && (!keep || sge_ready_i) && (!last_block || out_free);
  assign begin_valid_o = block_valid_i && block_ready_o && !inside_q;
  assign begin_colour_o = block_i.colour;

  always_comb begin
    wqe = head;
    if (inside_q) begin
      wqe = wqe_q;
      wqe.blocks = wqe_q.blocks + 4'd1;
      wqe.bus_error = wqe_q.bus_error || block_i.err;
    end
    if (truncated) wqe.vendor_status = roci_hwif_pkg::VENDOR_STATUS_WQE_BLOCKS;
    wqe.sges = kept_q + 4'(keep);
  end

  always_ff @(posedge clk_i) begin
    if (step) begin
      if (last_slot) begin
        skip_q <= !inside_q && is_datagram && !last_block;
        slot_q <= {1'b0, !inside_q && is_datagram && !last_block};
        inside_q <= !last_block;
        blocks_left_q <= blocks_left;
        if (inside_q || head_takes) sges_left_q <= sges - 4'(in_block);
        else sges_left_q <= head_leaves ? sges : '0;
        wqe_q <= wqe;
      end else begin
        slot_q <= slot_q + 1'b1;
      end
      if (last_slot && last_block) begin
        kept_q <= '0;
        sum_q <= '0;
      end else if (keep) begin
        kept_q <= kept_q + 1'b1;
        sum_q <= sum_q + SUM_BITS'(sge_o.length);
      end
    end
    if (out_free) begin
      out_valid_q <= step && last_slot && last_block;
      out_q <= wqe;
      out_sum_q <= sum_q + (keep ? SUM_BITS'(sge_o.length) : '0);
    end
    if (rst_i) begin
      inside_q <= 1'b0;
      slot_q <= '0;
      kept_q <= '0;
      sum_q <= '0;
      out_valid_q <= 1'b0;
    end
  end

  // ------------------------------------------------------------------------------ out
  assign wqe_valid_o = out_valid_q;

  always_comb begin
    wqe_o = out_q;
    if (out_q.bus_error) begin
      wqe_o.vendor_status = '0;
    end else if (out_q.vendor_status == '0 && !out_q.inline_data
                 && out_q.kind != requester_send_pkg::KIND_NOP
                 && out_sum_q != SUM_BITS'(out_q.length)) begin
      wqe_o.vendor_status = roci_hwif_pkg::VENDOR_STATUS_WQE_LENGTH;
    end
  end

  wire unused = &{1'b0, control.reserved_13, control.reserved_24, control.reserved_96,
                  remote.reserved_96, block_i.addr[5:0]};

endmodule

`default_nettype wire
