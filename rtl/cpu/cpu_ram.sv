// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// cpu_ram: the memory of the CPU: firmware image, its data, and what the engines exchange with it.
//
// One read and one write port, words of 8 bytes with byte enables. The CPU always gets its port at
// once; engines get what is left, the context engine before the host's (each access of the CPU is
// followed by a cycle without one, and the context engine has other work between its accesses, so nobody
// starves). Data comes one cycle after a granted read.
// The image (hex file, one word a line) is part of the bitstream; host_management can replace it
// while the CPU is held.
//
// Does not: tell a reader about a write to the same word in the same cycle (firmware and engines hand
// over by registers). Neighbours: cpu_core, cpu_context, cpu_host_read, cpu_host_write, host_csr.
`default_nettype none

module cpu_ram #(
  parameter string FIRMWARE = ""                       // hex file, empty: no image
) (
  input  wire                       clk_i,

  // CPU: never waits
  input  wire                       cpu_read_i,
  input  wire cpu_pkg::ram_addr_t   cpu_raddr_i,
  input  wire [7:0]                 cpu_write_i,       // byte enables
  input  wire cpu_pkg::ram_addr_t   cpu_waddr_i,
  input  wire [63:0]                cpu_wdata_i,

  // engines that read: 0 context, 1 host writer
  input  wire [1:0]                 read_valid_i,
  output logic [1:0]                read_ready_o,
  input  wire cpu_pkg::ram_addr_t [1:0] read_addr_i,
  output logic [63:0]               rdata_o,           // one cycle after the grant, for all readers

  // engines that write: 0 context, 1 host reader
  input  wire [1:0]                 write_valid_i,
  output logic [1:0]                write_ready_o,
  input  wire cpu_pkg::ram_addr_t [1:0] write_addr_i,
  input  wire [1:0][63:0]           write_data_i,

  // image, only while the CPU is held: never waits
  input  wire                       load_valid_i,
  input  wire cpu_pkg::ram_addr_t   load_addr_i,
  input  wire [63:0]                load_data_i
);

  (* ram_style = "block", no_rw_check *) logic [63:0] mem [cpu_pkg::RAM_WORDS];

  if (FIRMWARE != "") begin : gen_image
    initial $readmemh(FIRMWARE, mem);
  end

  logic [7:0] we;
  cpu_pkg::ram_addr_t waddr, raddr;
  logic [63:0] wdata;
  logic re, write_free;

  assign read_ready_o[0] = !cpu_read_i;
  assign read_ready_o[1] = !cpu_read_i && !read_valid_i[0];
  assign write_free = cpu_write_i == '0 && !load_valid_i;
  assign write_ready_o = {write_free && !write_valid_i[0], write_free};

  always_comb begin
    re = cpu_read_i || read_valid_i != '0;
    raddr = read_addr_i[1];
    if (cpu_read_i) raddr = cpu_raddr_i;
    else if (read_valid_i[0]) raddr = read_addr_i[0];

    we = write_valid_i != '0 ? 8'hff : 8'h00;
    waddr = write_valid_i[0] ? write_addr_i[0] : write_addr_i[1];
    wdata = write_valid_i[0] ? write_data_i[0] : write_data_i[1];
    if (load_valid_i) begin
      we = 8'hff;
      waddr = load_addr_i;
      wdata = load_data_i;
    end else if (cpu_write_i != '0) begin
      we = cpu_write_i;
      waddr = cpu_waddr_i;
      wdata = cpu_wdata_i;
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned b = 0; b < 8; b++) begin
      if (we[b]) mem[waddr][8*b +: 8] <= wdata[8*b +: 8];
    end
    if (re) rdata_o <= mem[raddr];
  end

endmodule

`default_nettype wire
