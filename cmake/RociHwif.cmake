# SPDX-License-Identifier: BSD-2-Clause-Patent
#
# The hardware/software interface: hwif/*.toml -> <build>/hwif/{roci_hwif_pkg.sv, roci_hwif.hpp}.
#
# Targets: hwif_generate (runs the generator), roci_hwif (interface library: include path of
# roci_hwif.hpp, generated before whatever links it).
#
# roci_svstructs(<target> CONFIG wide|narrow [NAMESPACE <ns>])
#   Interface library with "<target>.hpp": the C++ types of all our SystemVerilog packages in one
#   configuration, for programs that link whole chips (unit tests: RociUnitTest.cmake).

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

function(roci_svstructs target)
  cmake_parse_arguments(S "" "CONFIG;NAMESPACE" "" ${ARGN})
  if(NOT S_NAMESPACE)
    set(S_NAMESPACE roci::sv)
  endif()
  set(tool ${PROJECT_SOURCE_DIR}/tools/svstructs)
  set(header ${CMAKE_CURRENT_BINARY_DIR}/${target}/${target}.hpp)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${target})
  file(GLOB depends CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/rtl/*/*_pkg.sv)
  add_custom_command(OUTPUT ${header}
    COMMAND ${ROCI_PYTHON} ${PROJECT_SOURCE_DIR}/tools/rtl.py structs --config ${S_CONFIG}
            --hwif ${ROCI_HWIF_DIR} --namespace ${S_NAMESPACE} --output ${header}
    DEPENDS ${depends} ${PROJECT_SOURCE_DIR}/rtl/roci_config_${S_CONFIG}.sv ${tool}/svstructs.py
            ${ROCI_HWIF_DIR}/roci_hwif_pkg.sv
    COMMENT "C++ types of the packages, ${S_CONFIG}" VERBATIM)
  add_custom_target(${target}_generate DEPENDS ${header})
  add_library(${target} INTERFACE)
  add_dependencies(${target} ${target}_generate)
  target_include_directories(${target} SYSTEM INTERFACE
    ${CMAKE_CURRENT_BINARY_DIR}/${target} ${tool})
endfunction()

# Everything that lint, synthesis and proofs need from the build: the generated interface.
add_custom_target(roci_generate)
add_dependencies(roci_generate hwif_generate)
