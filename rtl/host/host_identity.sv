// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// host_identity: registers of block `identity`: who the device is, what it can do, its clock.
//
// Everything but the clock and the firmware's words is constant for a build; a read needs neither
// firmware nor DMA (hwif/csr.toml). Combinational.
// Neighbours: host_csr reads it, host_management has the firmware's words, context_timer the clock.
`default_nettype none

module host_identity (
  input  wire roci_pkg::fn_t                       fn_i,        // who reads
  input  wire [11:0]                               offset_i,    // of the register in the block
  input  wire [63:0]                               clock_i,     // cycles since reset
  input  wire [63:0]                               firmware_hash_i,
  input  wire roci_hwif_pkg::csr_identity_firmware_t firmware_i,
  output logic                                     known_o,     // there is such a register
  output logic [63:0]                              data_o       // zero if not
);

  // Version of the RTL.
  localparam logic [7:0] VERSION_MAJOR = 8'd0;
  localparam logic [7:0] VERSION_MINOR = 8'd1;
  localparam logic [7:0] VERSION_PATCH = 8'd0;

  localparam logic [7:0] MAX_RD_ATOMIC = roci_config_pkg::IS_WIDE
      ? 8'(roci_hwif_pkg::MAX_RD_ATOMIC_WIDE) : 8'(roci_hwif_pkg::MAX_RD_ATOMIC_NARROW);

  localparam roci_hwif_pkg::csr_identity_device_id_t DEVICE_ID = '{
    reserved_56: '0, version_patch: VERSION_PATCH, version_minor: VERSION_MINOR,
    version_major: VERSION_MAJOR, device: 16'(roci_hwif_pkg::PCI_DEVICE_ID),
    vendor: 16'(roci_hwif_pkg::PCI_VENDOR_ID)};

  localparam roci_hwif_pkg::csr_identity_objects_qp_cq_t OBJECTS_QP_CQ = '{
    cqs: 32'(2 ** roci_config_pkg::CQ_BITS), qps: 32'(2 ** roci_config_pkg::QP_BITS)};

  localparam roci_hwif_pkg::csr_identity_objects_eq_srq_t OBJECTS_EQ_SRQ = '{
    srqs: 32'(2 ** roci_config_pkg::SRQ_BITS), eqs: 32'(2 ** roci_config_pkg::EQ_BITS)};

  localparam roci_hwif_pkg::csr_identity_objects_mr_pd_t OBJECTS_MR_PD = '{
    pds: 32'(2 ** roci_config_pkg::PD_BITS), mrs: 32'(2 ** roci_config_pkg::MR_BITS)};

  localparam roci_hwif_pkg::csr_identity_port_tables_t PORT_TABLES = '{
    multicast_members: '0, multicast_groups: '0,
    pkeys: 16'(roci_hwif_pkg::PKEY_TABLE_LENGTH), gids: 16'(2 ** roci_config_pkg::GID_BITS)};

  localparam roci_hwif_pkg::csr_identity_work_limits_t WORK_LIMITS = '{
    max_responder_depth: MAX_RD_ATOMIC, max_initiator_depth: MAX_RD_ATOMIC, reserved_43: '0,
    max_mtu: roci_hwif_pkg::MTU_MTU_4096,
    max_message_log2: 8'($clog2(roci_hwif_pkg::MAX_MESSAGE_BYTES)),
    max_inline_bytes: 16'(roci_hwif_pkg::MAX_INLINE_BYTES),
    max_sge_read: 8'(roci_config_pkg::MAX_SGE_RD), max_sge: 8'(roci_hwif_pkg::MAX_SGE)};

  localparam roci_hwif_pkg::csr_identity_ring_limits_t RING_LIMITS = '{
    doorbell_pages: 8'(roci_hwif_pkg::DOORBELL_PAGES),
    vectors: 8'(2 ** roci_config_pkg::VECTOR_BITS),
    admin_log2: 8'(roci_hwif_pkg::ADMIN_RING_LOG2_MAX),
    eq_log2: 8'(roci_hwif_pkg::EQ_RING_LOG2_MAX), cq_log2: 8'(roci_hwif_pkg::CQ_RING_LOG2_MAX),
    srq_log2: 8'(roci_hwif_pkg::RQ_RING_LOG2_MAX), rq_log2: 8'(roci_hwif_pkg::RQ_RING_LOG2_MAX),
    sq_log2: 8'(roci_hwif_pkg::SQ_RING_LOG2_MAX)};

  localparam roci_hwif_pkg::csr_identity_memory_limits_t MEMORY_LIMITS = '{
    max_fast_reg_pages: '0, reserved_16: '0, max_page_shift: 8'd30, min_page_shift: 8'd12};

  // Grows with the design; the firmware refuses the rest as UNSUPPORTED.
  localparam roci_hwif_pkg::csr_identity_capabilities_t CAPABILITIES = '{
    rc: 1'b1, srq: 1'b1, timestamps: 1'b1, loopback: 1'b1, default: '0};

  roci_hwif_pkg::csr_identity_configuration_t configuration;

  always_comb begin
    configuration = '{
      clock_khz: 32'(roci_config_pkg::CLOCK_KHZ), datapath_bytes: 8'(roci_config_pkg::DATA_BYTES),
      functions: 8'(cpu_pkg::FNS), function_number: 8'(fn_i),
      config_name: roci_config_pkg::IS_WIDE ? roci_hwif_pkg::CONFIG_WIDE
                                            : roci_hwif_pkg::CONFIG_NARROW};
    known_o = 1'b1;
    data_o = '0;
    unique case (offset_i)
      12'(roci_hwif_pkg::CSR_IDENTITY_HWIF_HASH_ADDR): data_o = roci_hwif_pkg::HWIF_HASH;
      12'(roci_hwif_pkg::CSR_IDENTITY_FIRMWARE_HASH_ADDR): data_o = firmware_hash_i;
      12'(roci_hwif_pkg::CSR_IDENTITY_CLOCK_ADDR): data_o = clock_i;
      12'(roci_hwif_pkg::CSR_IDENTITY_DEVICE_ID_ADDR): data_o = DEVICE_ID;
      12'(roci_hwif_pkg::CSR_IDENTITY_CONFIGURATION_ADDR): data_o = configuration;
      12'(roci_hwif_pkg::CSR_IDENTITY_OBJECTS_QP_CQ_ADDR): data_o = OBJECTS_QP_CQ;
      12'(roci_hwif_pkg::CSR_IDENTITY_OBJECTS_EQ_SRQ_ADDR): data_o = OBJECTS_EQ_SRQ;
      12'(roci_hwif_pkg::CSR_IDENTITY_OBJECTS_MR_PD_ADDR): data_o = OBJECTS_MR_PD;
      12'(roci_hwif_pkg::CSR_IDENTITY_PORT_TABLES_ADDR): data_o = PORT_TABLES;
      12'(roci_hwif_pkg::CSR_IDENTITY_WORK_LIMITS_ADDR): data_o = WORK_LIMITS;
      12'(roci_hwif_pkg::CSR_IDENTITY_RING_LIMITS_ADDR): data_o = RING_LIMITS;
      12'(roci_hwif_pkg::CSR_IDENTITY_MEMORY_LIMITS_ADDR): data_o = MEMORY_LIMITS;
      12'(roci_hwif_pkg::CSR_IDENTITY_CAPABILITIES_ADDR): data_o = CAPABILITIES;
      12'(roci_hwif_pkg::CSR_IDENTITY_FIRMWARE_ADDR): data_o = firmware_i;
      default: known_o = 1'b0;
    endcase
  end

endmodule

`default_nettype wire
