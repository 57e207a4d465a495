// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// cpu_core: PicoRV32 (RV32IMC) and its bus: RAM below 0x8000_0000, registers from there on.
//
// cpu_clk_i is clk_i itself (DIVIDER 1), or half of it with rising edges that coincide with those of
// clk_i (DIVIDER 2): one synchronous domain, no crossing. Everything but the core works on clk_i.
// `last` marks the cycle of clk_i that ends with an edge of cpu_clk_i; what the core does counts in
// that cycle only.
// - RAM reads take no wait state: with DIVIDER 1 they start from the core's look-ahead address, with
//   DIVIDER 2 in the first half of its cycle. RAM writes are done at once.
// - A register access is held until its register answers.
// A trap (illegal instruction, misaligned access) stops the core until it is held and released.
//
// Does not: interrupts (the firmware polls), code in anything but RAM.
// Neighbours: cpu_ram, cpu_registers, host_csr (hold).
`default_nettype none

module cpu_core #(
  parameter int unsigned DIVIDER = roci_config_pkg::IS_WIDE ? 1 : 2   // clk_i per cpu_clk_i
) (
  input  wire                       clk_i,
  input  wire                       rst_i,
  input  wire                       cpu_clk_i,
  input  wire                       hold_i,            // core in reset
  output logic                      trap_o,

  // RAM
  output logic                      ram_read_o,
  output cpu_pkg::ram_addr_t        ram_raddr_o,
  output logic [7:0]                ram_write_o,
  output cpu_pkg::ram_addr_t        ram_waddr_o,
  output logic [63:0]               ram_wdata_o,
  input  wire [63:0]                ram_rdata_i,       // one cycle after ram_read_o

  // registers
  output cpu_pkg::reg_req_t         reg_o,             // held until done
  input  wire                       reg_done_i,        // for one cycle, with the data of a read
  input  wire [31:0]                reg_rdata_i
);

  if (DIVIDER != 1 && DIVIDER != 2) begin : gen_divider_check
    $error("%m: DIVIDER must be 1 or 2");
  end

  // ------------------------------------------------------------------------------ core's own clock
  logic resetn_q;
  logic phase_q;                               // flips with each cycle of the core
  logic trap, mem_valid, mem_ready, mem_la_read;
  logic [31:0] mem_addr, mem_wdata, mem_rdata, mem_la_addr;
  logic [3:0] mem_wstrb;

  always_ff @(posedge cpu_clk_i) begin
    resetn_q <= !(rst_i || hold_i);
    phase_q <= !rst_i && !phase_q;
  end

  picorv32 #(
    .ENABLE_COUNTERS(0), .ENABLE_COUNTERS64(0), .BARREL_SHIFTER(1), .COMPRESSED_ISA(1),
    .ENABLE_MUL(1), .ENABLE_FAST_MUL(1), .ENABLE_DIV(0), .ENABLE_IRQ(0),
    .STACKADDR(cpu_pkg::RAM_BYTES - (cpu_pkg::FNS << (cpu_pkg::SLOT_WORDS_LOG2 + 3)))
  ) u_core (
    .clk(cpu_clk_i), .resetn(resetn_q), .trap(trap),
    .mem_valid, .mem_instr(), .mem_ready, .mem_addr, .mem_wdata, .mem_wstrb, .mem_rdata,
    .mem_la_read, .mem_la_write(), .mem_la_addr, .mem_la_wdata(), .mem_la_wstrb(),
    .pcpi_valid(), .pcpi_insn(), .pcpi_rs1(), .pcpi_rs2(), .pcpi_wr(1'b0), .pcpi_rd('0),
    .pcpi_wait(1'b0), .pcpi_ready(1'b0), .irq('0), .eoi(), .trace_valid(), .trace_data()
  );

  // ------------------------------------------------------------------------------------------ phase
  logic seen_q;                                // phase_q one cycle of clk_i ago
  logic last;

  always_ff @(posedge clk_i) seen_q <= phase_q;
  assign last = DIVIDER == 1 || phase_q == seen_q;

  // -------------------------------------------------------------------------------------------- bus
  logic is_register, is_write, ram_done_q, reg_done_q;
  logic [31:0] reg_rdata_q;
  logic [31:0] read_addr;

  assign is_register = mem_addr[31];
  assign is_write = mem_wstrb != '0;

  always_comb begin
    if (DIVIDER == 1) begin
      read_addr = mem_la_addr;
      ram_read_o = mem_la_read && !mem_la_addr[31];
    end else begin
      read_addr = mem_addr;
      ram_read_o = mem_valid && !is_write && !is_register && !last;
    end
    ram_raddr_o = read_addr[3 +: cpu_pkg::RAM_BITS];
    ram_waddr_o = mem_addr[3 +: cpu_pkg::RAM_BITS];
    ram_wdata_o = {2{mem_wdata}};
    ram_write_o = '0;
    if (mem_valid && !is_register && last) begin
      ram_write_o = mem_addr[2] ? {mem_wstrb, 4'h0} : {4'h0, mem_wstrb};
    end

    reg_o = '{valid: mem_valid && is_register && !reg_done_q, write: is_write,
              word: mem_addr[7:2], wdata: mem_wdata};

    mem_ready = is_register ? reg_done_q : is_write || ram_done_q;
    if (is_register) mem_rdata = reg_rdata_q;
    else mem_rdata = mem_addr[2] ? ram_rdata_i[63:32] : ram_rdata_i[31:0];
  end

  always_ff @(posedge clk_i) begin
    if (reg_done_i) reg_rdata_q <= reg_rdata_i;
    trap_o <= trap && !hold_i;
    if (rst_i) begin
      ram_done_q <= 1'b0;
      reg_done_q <= 1'b0;
    end else begin
      ram_done_q <= ram_read_o;
      if (reg_done_i && reg_o.valid) reg_done_q <= 1'b1;
      else if (last) reg_done_q <= 1'b0;
    end
  end

endmodule

`default_nettype wire
