// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_header_check: checks the GRH and BTH of each received packet as far as no QP is needed
// (wire.md 1.1, 1.2, 2.2): IP version, next header, PayLen against the opcode's headers, transport
// version, destination GID in the port's table, known opcode, destination QP not 0 (no SMI on RoCE).
//
// Watches the cut stream of packet_rx_trim; the verdict is valid with the registered last beat, one
// cycle behind it. Does not touch data. Neighbours: packet_rx_trim → here → packet_rx_buffer.
`default_nettype none

module packet_header_check (
  input  wire                 clk_i,
  input  wire                 rst_i,
  input  roci_pkg::port_t     port_i,

  input  wire                 beat_valid_i,
  input  wire                 first_i,
  input  roci_pkg::beat_t     beat_i,

  output logic                result_valid_o,   // one per last beat
  output roci_count_pkg::rx_fate_t result_o      // ipver … dest_qp: each on its own, not only the first
);

  localparam int unsigned BYTES = roci_pkg::DATA_BYTES;
  localparam int unsigned CHECK_BYTES = packet_pkg::GRH_BYTES + packet_pkg::BTH_BYTES;
  localparam int unsigned BEATS = (CHECK_BYTES + BYTES - 1) / BYTES;     // 1 wide, 7 narrow
  localparam int unsigned INDEX_BITS = $clog2(BEATS + 1);

  logic [INDEX_BITS-1:0] index_q, index;
  logic [8*BEATS*BYTES-1:0] header_q;           // byte 0 at bits 7:0
  logic [16:0] length_q;                        // bytes of the packet
  logic [roci_pkg::DATA_BITS-1:0] present;
  logic last_q;

  assign index = first_i ? '0 : index_q;

  // bytes that the frame does not have read as zero (not by roci_lane_pkg: see there)
  always_comb begin
    for (int unsigned b = 0; b < BYTES; b++) begin
      present[8*b+:8] = roci_pkg::BYTES_BITS'(b) < beat_i.bytes ? beat_i.data[8*b+:8] : 8'h00;
    end
  end

  always_ff @(posedge clk_i) begin
    if (beat_valid_i) begin
      for (int unsigned i = 0; i < BEATS; i++) begin
        if (index == INDEX_BITS'(i)) begin
          header_q[8*BYTES*i+:8*BYTES] <= present;
        end else if (first_i) begin
          header_q[8*BYTES*i+:8*BYTES] <= '0;
        end
      end
      index_q <= (index == INDEX_BITS'(BEATS)) ? index : index + 1'b1;
      length_q <= (first_i ? 17'd0 : length_q) + 17'(beat_i.bytes);
    end
    if (rst_i) begin
      last_q <= 1'b0;
    end else begin
      last_q <= beat_valid_i && beat_i.last;
    end
  end

  // fields, wire.md 1.1 and 1.2; byte k is bits 8k+7:8k
  logic [15:0] pay_len;
  logic [127:0] dgid;
  logic [7:0] opcode;
  logic [1:0] pad_count;
  logic [23:0] dest_qpn;
  packet_pkg::opcode_info_t info;
  logic [16:0] fixed;                           // bytes behind the GRH without payload
  logic dgid_known, dgid_multicast;
  logic length_bad;

  always_comb begin
    pay_len = {header_q[8*4+:8], header_q[8*5+:8]};
    for (int unsigned b = 0; b < 16; b++) begin
      dgid[8*(15-b)+:8] = header_q[8*(24+b)+:8];
    end
    opcode = header_q[8*40+:8];
    pad_count = header_q[8*41+4+:2];
    dest_qpn = {header_q[8*45+:8], header_q[8*46+:8], header_q[8*47+:8]};
    info = packet_pkg::opcode_info(opcode);

    // pad bytes belong to a payload: without one there is none
    fixed = 17'(packet_pkg::BTH_BYTES) + 17'(info.bytes) + 17'(packet_pkg::ICRC_BYTES)
            + 17'(pad_count);
    length_bad = pay_len[1:0] != 2'd0 || length_q < 17'(CHECK_BYTES)
                 || (info.known ? (17'(pay_len) < fixed || 17'(pay_len) > fixed + 17'd4096)
                                : 17'(pay_len) < 17'(packet_pkg::BTH_BYTES
                                                     + packet_pkg::ICRC_BYTES));

    dgid_known = 1'b0;
    for (int unsigned g = 0; g < roci_pkg::GIDS; g++) begin
      dgid_known = dgid_known || (port_i.gid_valid[g] && port_i.gid[g] == dgid);
    end
    // groups are a matter of UD (wire.md 1.2): QP 0xffffff and a multicast GID, both or none
    dgid_multicast = dgid[127:120] == 8'hff;

    result_valid_o = last_q;
    result_o = '0;
    result_o.ipver = header_q[7:4] != 4'd6;
    result_o.nxthdr = header_q[8*6+:8] != 8'h1b;
    result_o.paylen = length_bad;
    result_o.tver = header_q[8*41+:4] != 4'd0;
    result_o.gid = !dgid_known && !port_i.promiscuous;
    result_o.opcode = !info.known;
    result_o.dest_qp = dest_qpn == 24'd0 || (dest_qpn == 24'hffffff) != dgid_multicast
                       || (dgid_multicast && !info.deth);
  end

endmodule

`default_nettype wire
