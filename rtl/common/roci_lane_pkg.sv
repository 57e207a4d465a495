// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Masks of byte lanes, and the order of bytes: lane 0 is the byte that comes first in memory and on
// the wire, at bits 7:0 of a beat.
//
// They are written for whole words of 32 bits, not byte by byte: the simulator works in words. Where
// they are used the gates are as many; packet_header_check and the register of host_realign, whose
// flip-flops clear or keep single lanes, are smaller byte by byte.
`default_nettype none

package roci_lane_pkg;

  typedef logic [roci_pkg::DATA_BYTES-1:0] lanes_t;
  typedef logic [roci_pkg::DATA_BITS-1:0] word_t;

  // Lanes 0 to count - 1; count = 0..DATA_BYTES.
  function automatic lanes_t below(input logic [roci_pkg::BYTES_BITS-1:0] count);
    return ~({roci_pkg::DATA_BYTES{1'b1}} << count);
  endfunction

  // All bits of the lanes.
  function automatic word_t bits(input lanes_t lanes);
    for (int unsigned w = 0; w < roci_pkg::DATA_BYTES / 4; w++) begin
      bits[32*w+:32] = {{8{lanes[4*w+3]}}, {8{lanes[4*w+2]}}, {8{lanes[4*w+1]}}, {8{lanes[4*w]}}};
    end
  endfunction

  // Four bytes the other way round.
  function automatic logic [31:0] reversed(input logic [31:0] value);
    return {value[7:0], value[15:8], value[23:16], value[31:24]};
  endfunction

endpackage

`default_nettype wire
