// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// packet_icrc_mask: a beat as the ICRC sees it: the fields that routers may change read as ones
// (wire.md 1.6): GRH byte 0 low nibble, bytes 1 to 3 and 7, BTH byte 4 (packet byte 44).
// Combinational; used by packet_icrc_insert and packet_icrc_check.
`default_nettype none

module packet_icrc_mask (
  input  wire  [3:0]                      index_i,   // of the beat in its packet; 15 = 15 or more
  input  wire  [roci_pkg::DATA_BITS-1:0]  data_i,    // packet byte index_i * DATA_BYTES in bits 7:0
  output logic [roci_pkg::DATA_BITS-1:0]  data_o
);

  // packet byte -> bits that read as ones
  function automatic logic [7:0] variant(input int unsigned packet_byte);
    case (packet_byte)
      0: return 8'h0f;
      1, 2, 3, 7, 44: return 8'hff;
      default: return 8'h00;
    endcase
  endfunction

  always_comb begin
    data_o = data_i;
    for (int unsigned i = 0; i <= 44 / roci_pkg::DATA_BYTES; i++) begin
      for (int unsigned b = 0; b < roci_pkg::DATA_BYTES; b++) begin
        if (index_i == 4'(i)) begin
          data_o[8*b+:8] = data_i[8*b+:8] | variant(i * roci_pkg::DATA_BYTES + b);
        end
      end
    end
  end

endmodule

`default_nettype wire
