// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_interrupt: masks and pending bits of all interrupt vectors, and the interrupt stream.
//
// A raise sets the vector's pending bit and is sent once; while the vector is masked it waits and
// is sent when unmasked (several become one). Pending bits tell software which vectors have
// something to report; writing 1 clears them, and a masked raise that still waits with them. All
// vectors are masked after reset, and those of a function while it is reset: its next user gets none
// of the last one's. Functions are served in turn, and so are the vectors of one.
//
// Registers: block `interrupt` of hwif/csr.toml, accessed through host_csr.
// Does not: moderate. Neighbours: queue_eq_writer, host_admin_rings or cpu (raises), host_csr; the
// interrupt stream leaves the chip.
`default_nettype none

module host_interrupt #(
  parameter int unsigned RAISES = 2                       // blocks that raise
) (
  input  wire                                   clk_i,
  input  wire                                   rst_i,

  // raises, always accepted
  input  wire [RAISES-1:0]                      raise_valid_i,
  input  wire cpu_pkg::irq_raise_t [RAISES-1:0] raise_i,

  input  wire [cpu_pkg::FNS-1:0]                fn_resetting_i,   // functions in reset

  // registers: writes, and what function irq_fn_i has, one cycle later
  input  wire cpu_pkg::irq_write_t              irq_write_i,
  input  wire roci_pkg::fn_t                    irq_fn_i,
  output logic [7:0]                            irq_masked_o,
  output logic [7:0]                            irq_pending_o,

  // interrupts
  output logic                                  irq_valid_o,
  input  wire                                   irq_ready_i,
  output cpu_pkg::irq_raise_t                   irq_o,

  output logic                                  count_interrupt_o
);

  localparam int unsigned FNS = 2 ** roci_config_pkg::FN_BITS;
  localparam int unsigned VECTORS = roci_hwif_pkg::INTERRUPT_VECTORS;

  typedef roci_pkg::fn_t fn_t;
  typedef cpu_pkg::vector_t vector_t;

  if (VECTORS != 8 || VECTORS != 1 << roci_config_pkg::VECTOR_BITS) begin : gen_vectors_check
    $error("%m: the registers are made for 8 vectors");
  end

  logic [FNS-1:0][VECTORS-1:0] masked_q, pending_q, due_q;   // due: raised and not yet sent
  logic [FNS-1:0] wants_q;             // functions with a due vector that is not masked

  // An interrupt is found in three steps.
  typedef enum logic [1:0] {PICK_FN, LOOK, SEND} step_e;
  step_e step_q;
  fn_t fn_q;
  logic [VECTORS-1:0] row_q;           // due and not masked of fn_q
  vector_t last_vector_q;

  logic [RAISES-1:0] raise_valid_q;
  cpu_pkg::irq_raise_t [RAISES-1:0] raise_q;
  logic irq_valid_q;
  cpu_pkg::irq_raise_t irq_q;

  logic [FNS-1:0] first_fns;
  fn_t fn;
  logic [VECTORS-1:0] first_vectors;
  vector_t chosen;
  logic still, send;

  // Members after the last one served come first.
  function automatic logic [FNS-1:0] fns_after(input fn_t last);
    logic [FNS-1:0] mask;
    for (int unsigned f = 0; f < FNS; f++) mask[f] = f > 32'(last);
    return mask;
  endfunction
  function automatic logic [VECTORS-1:0] vectors_after(input vector_t last);
    logic [VECTORS-1:0] mask;
    for (int unsigned v = 0; v < VECTORS; v++) mask[v] = v > 32'(last);
    return mask;
  endfunction

  always_comb begin
    first_fns = (wants_q & fns_after(fn_q)) != '0 ? wants_q & fns_after(fn_q) : wants_q;
    fn = '0;
    for (int f = FNS - 1; f >= 0; f--) begin
      if (first_fns[f]) fn = fn_t'(f);
    end
    first_vectors = (row_q & vectors_after(last_vector_q)) != '0
                    ? row_q & vectors_after(last_vector_q) : row_q;
    chosen = '0;
    for (int v = VECTORS - 1; v >= 0; v--) begin
      if (first_vectors[v]) chosen = vector_t'(v);
    end
    // Masked or cleared meanwhile: look again.
    still = due_q[fn_q][chosen] && !masked_q[fn_q][chosen];
    send = step_q == SEND && still && (!irq_valid_q || irq_ready_i);
  end

  // Row and bits of each change.
  logic [FNS-1:0] mask_fn, clear_fn, sent_fn;
  logic [VECTORS-1:0] clear, sent;
  logic [FNS-1:0][VECTORS-1:0] raised;

  // Asking first whether anything changes saves simulation time, but would cost LUTs.
`ifdef SYNTHESIS
  localparam bit ALWAYS = 1'b1;
`else
  localparam bit ALWAYS = 1'b0;
`endif
  logic change;                        // of any row

  always_comb begin
    change = ALWAYS || raise_valid_q != '0 || irq_write_i.valid || send || fn_resetting_i != '0;
    clear = irq_write_i.clear;
    sent = VECTORS'(1) << chosen;
    mask_fn = FNS'(irq_write_i.valid && irq_write_i.is_mask) << irq_write_i.fn;
    clear_fn = FNS'(irq_write_i.valid && !irq_write_i.is_mask) << irq_write_i.fn;
    sent_fn = FNS'(send) << fn_q;
    raised = '0;
    for (int unsigned r = 0; r < RAISES; r++) begin
      if (raise_valid_q[r]) begin
        for (int unsigned f = 0; f < FNS; f++) begin
          for (int unsigned v = 0; v < VECTORS; v++) begin
            if (32'(raise_q[r].fn) == f && 32'(raise_q[r].irq_vector) == v) raised[f][v] = 1'b1;
          end
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned f = 0; f < FNS; f++) wants_q[f] <= (due_q[f] & ~masked_q[f]) != '0;

    unique case (step_q)
      PICK_FN: begin
        if (wants_q != '0) begin
          fn_q <= fn;
          step_q <= LOOK;
        end
      end
      LOOK: begin
        row_q <= due_q[fn_q] & ~masked_q[fn_q];
        step_q <= SEND;
      end
      default: if (send || !still) step_q <= PICK_FN;
    endcase

    if (!irq_valid_q || irq_ready_i) irq_valid_q <= send;
    if (send) begin
      irq_q <= '{fn: fn_q, irq_vector: chosen};
      last_vector_q <= chosen;
    end
    raise_valid_q <= raise_valid_i;
    raise_q <= raise_i;
    // A raise wins over a clear and a send in the same cycle: nothing is lost.
    if (change) begin
      for (int unsigned f = 0; f < FNS; f++) begin
        if (mask_fn[f]) begin
          for (int unsigned v = 0; v < VECTORS; v++) begin
            if (32'(irq_write_i.irq_vector) == v) masked_q[f][v] <= irq_write_i.masked;
          end
        end
        pending_q[f] <= (pending_q[f] & ~(clear & {VECTORS{clear_fn[f]}}))
                        | raised[f];
        due_q[f] <= (due_q[f] & ~(clear & {VECTORS{clear_fn[f]}})
                     & ~(sent & {VECTORS{sent_fn[f]}})) | raised[f];
        if (fn_resetting_i[f]) begin
          masked_q[f] <= '1;
          pending_q[f] <= '0;
          due_q[f] <= '0;
        end
      end
    end
    irq_masked_o <= masked_q[irq_fn_i];
    irq_pending_o <= pending_q[irq_fn_i];
    if (rst_i) begin
      masked_q <= '1;
      pending_q <= '0;
      due_q <= '0;
      wants_q <= '0;
      raise_valid_q <= '0;
      step_q <= PICK_FN;
      irq_valid_q <= 1'b0;
      fn_q <= '0;
      last_vector_q <= '0;
    end
  end

  assign irq_valid_o = irq_valid_q;
  assign irq_o = irq_q;
  assign count_interrupt_o = irq_valid_q && irq_ready_i;

endmodule

`default_nettype wire
