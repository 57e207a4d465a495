# SPDX-License-Identifier: BSD-2-Clause-Patent
#
# Verilated models as CMake libraries.
#
#   roci_model(<target> TOP <module> [CONFIG wide|narrow] [PREFIX <class>] [SHARDS <n>] [OPT <-O1>]
#              [SOURCES <file>...] [FOLDERS <folder>...] [ARGS <verilator argument>...]
#              [STRUCTS <test source>])
#     A static library with the model of <module>. Packages and modules of rtl/ are found by
#     tools/verilate.py; SOURCES replaces the module's own file, FOLDERS are further -y folders.
#     With STRUCTS, "roci_svstructs.hpp" has the C++ types of the packages that the model or the
#     given source refers to (tools/svstructs).
#     The class is <class> (default V<module>), its header <class>.h.
#   roci_chip_model(<target> CONFIG wide|narrow [ARGS ...])
#     The whole chip, roci_top, optimised: class Vroci_<config>.
#
# Why not verilator-config.cmake: it compiles the runtime once per target, many small files with
# 1.3 s of headers each, and verilates serially while configuring: 20 s per module instead of 2.3 s.

find_program(VERILATOR verilator REQUIRED)
find_package(Threads REQUIRED)
execute_process(COMMAND ${VERILATOR} --getenv VERILATOR_ROOT
  OUTPUT_VARIABLE VERILATOR_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(VERILATOR_INCLUDE ${VERILATOR_ROOT}/include)
set(ROCI_SVSTRUCTS ${PROJECT_SOURCE_DIR}/tools/svstructs)
set(ROCI_WAIVERS ${PROJECT_SOURCE_DIR}/lint/verilator.vlt)

# The runtime, compiled once. verilated_threads.cpp is needed even without --threads.
# VL_USER_STOP/FATAL: a failed RTL assertion throws (cmake/verilated_stop.cpp) instead of aborting.
add_library(verilated STATIC
  ${VERILATOR_INCLUDE}/verilated.cpp ${VERILATOR_INCLUDE}/verilated_threads.cpp
  ${PROJECT_SOURCE_DIR}/cmake/verilated_stop.cpp)
target_include_directories(verilated SYSTEM PUBLIC ${VERILATOR_INCLUDE} ${VERILATOR_INCLUDE}/vltstd)
target_compile_definitions(verilated PUBLIC VL_TIME_CONTEXT PRIVATE VL_USER_STOP VL_USER_FATAL)
target_compile_options(verilated PRIVATE -O2 -g0 -w)
target_link_libraries(verilated PUBLIC Threads::Threads)

# Waveforms: only models made with --trace-fst need it.
add_library(verilated_fst STATIC EXCLUDE_FROM_ALL ${VERILATOR_INCLUDE}/verilated_fst_c.cpp)
target_compile_options(verilated_fst PRIVATE -O2 -g0 -w)
target_link_libraries(verilated_fst PUBLIC verilated z)

# verilated.h precompiled for all small models: two thirds of their compile time.
file(WRITE ${PROJECT_BINARY_DIR}/empty.cpp "")
add_library(model_pch OBJECT ${PROJECT_BINARY_DIR}/empty.cpp)
target_link_libraries(model_pch PUBLIC verilated)
target_compile_options(model_pch PRIVATE -O1 -g0 -w)
target_precompile_headers(model_pch PRIVATE <verilated.h>)

function(roci_model target)
  cmake_parse_arguments(M "" "TOP;CONFIG;PREFIX;SHARDS;OPT;STRUCTS" "SOURCES;FOLDERS;ARGS" ${ARGN})
  if(M_UNPARSED_ARGUMENTS OR NOT M_TOP)
    message(FATAL_ERROR "roci_model(${target}): bad arguments ${M_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT M_PREFIX)
    set(M_PREFIX V${M_TOP})
  endif()
  if(NOT M_CONFIG)
    set(M_CONFIG wide)
  endif()
  if(NOT M_SHARDS)
    set(M_SHARDS 1)
  endif()
  if(NOT M_OPT)
    set(M_OPT -O1)
  endif()
  set(dir ${CMAKE_CURRENT_BINARY_DIR}/${target}.dir)
  set(v ${dir}/${M_PREFIX})
  if(M_SHARDS GREATER 1)
    math(EXPR last "${M_SHARDS} - 1")
    set(cpp "")
    foreach(i RANGE ${last})
      list(APPEND cpp ${v}__fast${i}.cpp)
    endforeach()
    list(APPEND cpp ${v}__slow.cpp)
  else()
    set(cpp ${v}__ALL.cpp)
  endif()
  set(generated hwif_generate)
  list(TRANSFORM M_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  list(TRANSFORM M_FOLDERS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  set(options "")
  foreach(source IN LISTS M_SOURCES)
    list(APPEND options --source ${source})
  endforeach()
  foreach(folder IN LISTS M_FOLDERS)
    list(APPEND options --folder ${folder})
  endforeach()
  list(APPEND options --hwif ${ROCI_HWIF_DIR})
  set(headers ${v}.h ${v}___024root.h)
  if(M_STRUCTS)
    list(APPEND options --structs ${M_STRUCTS})
    list(APPEND headers ${dir}/roci_svstructs.hpp)
    list(APPEND generated ${M_STRUCTS} ${ROCI_SVSTRUCTS}/svstructs.py)
  endif()
  # The headers are outputs too, or ninja links stale objects after an edit.
  add_custom_command(OUTPUT ${cpp} ${headers} DEPFILE ${v}__ALL.d
    COMMAND ${ROCI_PYTHON} ${PROJECT_SOURCE_DIR}/tools/verilate.py --verilator ${VERILATOR}
            --top ${M_TOP} --prefix ${M_PREFIX} --mdir ${dir} --config ${M_CONFIG}
            --shards ${M_SHARDS} ${options} --
            --assert -Wall -O3 -fno-const-bit-op-tree ${M_ARGS} ${ROCI_WAIVERS}
    DEPENDS ${M_SOURCES} ${ROCI_WAIVERS} ${PROJECT_SOURCE_DIR}/tools/verilate.py
            ${PROJECT_SOURCE_DIR}/tools/rtl.py ${generated}
    COMMENT "verilate ${target}" VERBATIM)
  add_library(${target} STATIC ${cpp})
  target_include_directories(${target} SYSTEM PUBLIC ${dir})
  if(M_STRUCTS)
    target_include_directories(${target} SYSTEM PUBLIC ${ROCI_SVSTRUCTS})
  endif()
  target_link_libraries(${target} PUBLIC verilated)
  target_compile_options(${target} PRIVATE ${M_OPT} -g0 -w)
  if(M_SHARDS GREATER 1)
    # Start-up code: large, runs once.
    set_source_files_properties(${v}__slow.cpp PROPERTIES COMPILE_OPTIONS -O0)
  elseif(M_OPT STREQUAL "-O1")
    target_precompile_headers(${target} REUSE_FROM model_pch)
  endif()
  if("--trace-fst" IN_LIST M_ARGS)
    target_link_libraries(${target} PUBLIC verilated_fst)
    target_compile_definitions(${target} PUBLIC ROCI_TRACE_FST)
  endif()
endfunction()

# Whole-chip models are compiled by clang where there is one: they run a quarter faster than those of
# g++ at any level (docs/decisions/0007-chip-models-by-clang.md). CMake knows one compiler for C++;
# the launcher starts the other with the arguments behind it (sh takes c++ for its own name). The
# objects link with ours, but not under a sanitizer.
find_program(ROCI_CHIP_CXX NAMES clang++-16 clang++ DOC "compiler of the whole-chip models")
set(ROCI_CHIP_OPT "" CACHE STRING
  "compiler optimisation of the whole-chip models; empty: -O2 for clang, -O1 for others")

function(roci_chip_model target)
  cmake_parse_arguments(C "" "CONFIG" "ARGS" ${ARGN})
  if(NOT C_CONFIG)
    message(FATAL_ERROR "roci_chip_model(${target}): CONFIG wide or narrow")
  endif()
  set(opt -O1)
  if(ROCI_CHIP_CXX AND NOT ROCI_SANITIZE)
    set(opt -O2)
    string(REPLACE ";" " " launcher "${CMAKE_CXX_COMPILER_LAUNCHER}")
    set(CMAKE_CXX_COMPILER_LAUNCHER sh -c "exec ${launcher} ${ROCI_CHIP_CXX} \"$@\"")
  endif()
  if(ROCI_CHIP_OPT)
    set(opt ${ROCI_CHIP_OPT})
  endif()
  roci_model(${target} TOP roci_top CONFIG ${C_CONFIG} PREFIX Vroci_${C_CONFIG} SHARDS 4 OPT ${opt}
    ARGS --x-assign fast --x-initial fast --output-split 20000 ${C_ARGS})
endfunction()
