# SPDX-License-Identifier: BSD-2-Clause-Patent
#
# The hardware/software interface: hwif/*.toml -> <build>/hwif/{roci_hwif_pkg.sv, roci_hwif.hpp}.
#
# Targets: hwif_generate (runs the generator), roci_hwif (interface library: include path of
# roci_hwif.hpp, generated before whatever links it).

set(ROCI_HWIF_DIR ${PROJECT_BINARY_DIR}/hwif)
file(MAKE_DIRECTORY ${ROCI_HWIF_DIR})
add_library(roci_hwif INTERFACE)
target_include_directories(roci_hwif INTERFACE ${ROCI_HWIF_DIR})

file(GLOB hwif_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/hwif/*.toml)
file(GLOB hwif_tool CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/hwifgen/*.py
  ${PROJECT_SOURCE_DIR}/tools/hwifgen/*.hpp)
add_custom_command(OUTPUT ${ROCI_HWIF_DIR}/roci_hwif_pkg.sv ${ROCI_HWIF_DIR}/roci_hwif.hpp
  COMMAND ${ROCI_PYTHON} ${PROJECT_SOURCE_DIR}/tools/hwifgen/hwifgen.py --out ${ROCI_HWIF_DIR}
          ${hwif_sources}
  DEPENDS ${hwif_sources} ${hwif_tool}
  COMMENT "generate the hardware/software interface" VERBATIM)
add_custom_target(hwif_generate
  DEPENDS ${ROCI_HWIF_DIR}/roci_hwif_pkg.sv ${ROCI_HWIF_DIR}/roci_hwif.hpp)
add_dependencies(roci_hwif hwif_generate)

# Everything that lint, synthesis and proofs need from the build: the generated interface.
add_custom_target(roci_generate)
add_dependencies(roci_generate hwif_generate)
