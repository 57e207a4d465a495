// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// ethernet_rx: takes frames from the MAC, keeps those that are RoCEv1 for this port, and gives them on
// without their Ethernet header, GRH at byte 0.
//
// Checks, the first that fails counts: FCS flag (`tuser` on the last beat), Ethertype 0x8915 behind at
// most one 802.1Q tag, destination MAC, tag (a second tag or VID 0xfff is refused; VID 0 is only a
// priority, wire.md 1.8; which VLAN a QP takes is packet_rx_dispatch's to judge). A frame with a bad
// FCS that passes the others goes on with `err` and is dropped and counted behind.
//
// Frames that begin while the port is disabled are ignored and not counted.
//
// AXI-Stream in without back-pressure, valid-only stream out, one beat per cycle. Bytes that a frame
// does not have read as zero. Does not: multicast filters (with UD).
// Neighbours: MAC → here → ethernet_merge.
`default_nettype none

module ethernet_rx (
  input  wire                                clk_i,
  input  wire                                rst_i,
  input  roci_pkg::port_t                    port_i,
  input  wire                                enable_i,   // the port receives

  input  wire  [roci_pkg::DATA_BITS-1:0]     tdata_i,
  input  wire  [roci_pkg::DATA_BYTES-1:0]    tkeep_i,    // contiguous from lane 0
  input  wire                                tlast_i,
  input  wire                                tuser_i,    // bad frame, on the last beat
  input  wire                                tvalid_i,

  output logic                               frame_valid_o,
  output roci_pkg::beat_t                    frame_o,    // err on last: bad FCS
  output roci_pkg::rx_side_t                 side_o,     // the same in all beats of a frame
  output roci_count_pkg::rx_l2_drop_t              drop_o,     // pulses
  output logic                               good_o,     // pulse: a frame with good FCS ended
  output logic [13:0]                        good_bytes_o // its bytes
);

  localparam int unsigned BYTES = roci_pkg::DATA_BYTES;
  localparam int unsigned PLAIN_BYTES = 14;
  localparam int unsigned HEADER_BYTES = 18;                        // with one tag
  localparam int unsigned PLAIN_OFFSET = PLAIN_BYTES % BYTES;
  localparam int unsigned TAGGED_OFFSET = HEADER_BYTES % BYTES;
  localparam int unsigned BEATS = (HEADER_BYTES + BYTES - 1) / BYTES;  // 1 wide, 3 narrow
  localparam int unsigned INDEX_BITS = $clog2(BEATS + 1);
  typedef logic [INDEX_BITS-1:0] index_t;
  typedef logic [roci_pkg::LANE_BITS-1:0] lane_t;
  typedef logic [roci_pkg::BYTES_BITS-1:0] bytes_t;

  // ------------------------------------------------------------------------ frames that count
  logic tvalid;
  logic in_frame_q, off_q;                       // off_q is of the frame in work, or of the next
  assign tvalid = tvalid_i && !off_q;

  always_ff @(posedge clk_i) begin
    if (rst_i) begin
      in_frame_q <= 1'b0;
      off_q <= 1'b1;
    end else begin
      if (tvalid_i) in_frame_q <= !tlast_i;
      if (tvalid_i ? tlast_i : !in_frame_q) off_q <= !enable_i;
    end
  end

  // ------------------------------------------------------------------------------ header, by beats
  index_t index_q;                               // of the beat in front, stops at BEATS
  logic [8*BEATS*BYTES-1:0] header_q, header;    // byte 0 at bits 7:0, missing bytes zero
  logic [roci_pkg::DATA_BITS-1:0] data;          // masked by tkeep
  bytes_t bytes;
  roci_lane_pkg::lanes_t keep;
  logic has_tag;
  logic [15:0] type1, type2, tci;
  logic [47:0] dmac, smac;
  index_t whole;                                 // beats in front of the one with GRH byte 0
  lane_t offset;                                 // of GRH byte 0 in that beat
  logic bad_type, bad_mac, bad_vlan, dropped;

  always_comb begin
    data = tdata_i & roci_lane_pkg::bits(tkeep_i);
    // how many: by halves, since they are lanes 0 to n-1
    bytes = '0;
    keep = tkeep_i;
    for (int l = roci_pkg::LANE_BITS - 1; l >= 0; l--) begin
      if (keep[2**l-1]) begin
        bytes[l] = 1'b1;
        keep >>= 2**l;
      end
    end
    if (keep[0]) bytes = bytes_t'(BYTES);        // the halves alone add up to one less
    header = header_q;
    for (int unsigned i = 0; i < BEATS; i++) begin
      if (index_q == index_t'(i)) begin
        header[8*BYTES*i+:8*BYTES] = data;
      end else if (index_q == '0) begin
        header[8*BYTES*i+:8*BYTES] = '0;
      end
    end
    for (int unsigned b = 0; b < 6; b++) begin
      dmac[8*(5-b)+:8] = header[8*b+:8];
      smac[8*(5-b)+:8] = header[8*(6+b)+:8];
    end
    type1 = {header[8*12+:8], header[8*13+:8]};
    tci = {header[8*14+:8], header[8*15+:8]};
    type2 = {header[8*16+:8], header[8*17+:8]};
    has_tag = type1 == 16'h8100;
    whole = has_tag ? index_t'(HEADER_BYTES / BYTES) : index_t'(PLAIN_BYTES / BYTES);
    offset = has_tag ? lane_t'(TAGGED_OFFSET) : lane_t'(PLAIN_OFFSET);

    bad_vlan = has_tag && (type2 == 16'h8100 || type2 == 16'h88a8 || tci[11:0] == 12'hfff);
    bad_type = !(has_tag ? (type2 == 16'h8915 || type2 == 16'h8100 || type2 == 16'h88a8)
                         : type1 == 16'h8915);
    bad_mac = dmac != port_i.mac && !port_i.promiscuous;
    dropped = bad_type || bad_mac || bad_vlan;
  end

  // --------------------------------------------------------------------- GRH to byte 0, lane by lane
  // As in packet_header_parse: lanes from `offset` on wait for those below it of the next beat. Bytes
  // that are left at the end go out in the next cycle; in it nothing else can, since the next frame's
  // first beat only waits.
  logic [roci_pkg::DATA_BITS-1:0] moved_low, moved_high, held_q;
  logic held_valid_q;                            // held_q has the start of a beat
  logic flush_q, flush_err_q;
  bytes_t flush_bytes_q, beyond;
  logic at_start;                                // GRH byte 0 is in the beat in front

  always_comb begin
    moved_low = has_tag ? data >> (8 * TAGGED_OFFSET) : data >> (8 * PLAIN_OFFSET);
    moved_high = has_tag ? data << (8 * (BYTES - TAGGED_OFFSET))
                         : data << (8 * (BYTES - PLAIN_OFFSET));
    at_start = index_q == whole && !held_valid_q;
    // bytes of this beat that go into the next output beat
    beyond = bytes > bytes_t'(offset) ? bytes - bytes_t'(offset) : '0;

    if (flush_q) begin
      frame_valid_o = 1'b1;
      frame_o = '{err: flush_err_q, last: 1'b1, bytes: flush_bytes_q, data: held_q};
    end else begin
      frame_valid_o = tvalid && held_valid_q;
      frame_o.data = held_q | moved_high;
      frame_o.last = tlast_i && beyond == '0;
      frame_o.err = frame_o.last && tuser_i;
      frame_o.bytes = frame_o.last ? bytes_t'(BYTES) - bytes_t'(offset) + bytes
                                   : bytes_t'(BYTES);
    end
  end

  logic dropped_q;                               // the frame in work is dropped
  logic flush_next;                              // bytes are left when this beat is the last
  assign flush_next = tvalid && tlast_i
                      && (at_start || index_q < whole || (held_valid_q && beyond != '0));

  logic [13:0] bytes_q, bytes_now;               // of the frame so far
  assign bytes_now = (index_q == '0 ? '0 : bytes_q) + 14'(bytes);

  always_ff @(posedge clk_i) begin
    good_bytes_o <= bytes_now;
    if (tvalid) begin
      bytes_q <= bytes_now;
      header_q <= header;
      held_q <= (index_q < whole) ? '0 : moved_low;
      flush_bytes_q <= (beyond == '0 || index_q < whole) ? bytes_t'(1) : beyond;
      flush_err_q <= tuser_i;
      if (index_q == whole || tlast_i) begin
        if (!held_valid_q) begin
          side_o.loopback <= 1'b0;
          side_o.ethernet <= '{smac: smac, vlan_valid: has_tag, tci: tci};
        end
      end
    end
    if (rst_i) begin
      index_q <= '0;
      held_valid_q <= 1'b0;
      flush_q <= 1'b0;
      dropped_q <= 1'b0;
      drop_o <= '0;
      good_o <= 1'b0;
    end else begin
      drop_o <= '0;
      good_o <= tvalid && tlast_i && !tuser_i;
      flush_q <= flush_next && !(held_valid_q ? dropped_q : dropped);
      if (tvalid) begin
        index_q <= tlast_i ? '0 : (index_q == index_t'(BEATS)) ? index_q : index_q + 1'b1;
        if (tlast_i) begin
          held_valid_q <= 1'b0;
          dropped_q <= 1'b0;
          if (held_valid_q ? dropped_q : (dropped || dropped_q)) begin
            drop_o.fcs <= tuser_i;
            drop_o.ethertype <= !tuser_i && bad_type;
            drop_o.mac <= !tuser_i && !bad_type && bad_mac;
            drop_o.vlan <= !tuser_i && !bad_type && !bad_mac && bad_vlan;
          end
        end else if (at_start && !dropped_q) begin
          held_valid_q <= !dropped;
          dropped_q <= dropped;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_i && tvalid_i) begin
      assert ((tkeep_i & (tkeep_i + 1'b1)) == '0)
      else $error("ethernet_rx: lanes that are not contiguous from lane 0");
    end
  end

endmodule

`default_nettype wire
