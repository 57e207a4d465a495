# SPDX-License-Identifier: BSD-2-Clause-Patent
#
# Unit tests of RTL modules, found by their names.
#
# tests/unit/<folder>/<module>_test.cpp tests rtl/<folder>/<module>.sv. Each test is built once per
# configuration as unit_<module>_<config> and run by ctest under that name; target unit_<module>
# builds all of them.
#
# If tests/unit/<folder>/<module>_tb.sv exists, module <module>_tb is the top instead (a thin
# wrapper). A test that is too long for one file goes on in <module>_cases_<topic>.cpp.
#
# Lines in the test file choose configurations and parameters (one executable set per line):
#   // model: configs=wide,narrow args=-GDEPTH=4 args=-GWIDTH=7 name=small
#   configs   wide,narrow (the default), one of them, or any: the module reads no configuration
#   args      one argument of Verilator; a numeric -GNAME=N also defines the macro DUT_NAME=N
#   name      suffix of the executable, needed when two lines name the same configuration
#
# What a test sees: #include DUT_HEADER, the class DUT_CLASS, the string ROCI_CONFIG_NAME ("wide",
# "narrow", "any"), the macro ROCI_CONFIG_WIDE (1 or 0), Catch2, harness headers as
# "harness/<name>.hpp", the generated roci_hwif.hpp, and, if the test itself includes it,
# "roci_svstructs.hpp": C++ types of the SystemVerilog packages that module and test name.
# With -DROCI_TRACE=ON models can write FST and ROCI_TRACE_FST is defined. X is random (--x-assign
# unique, --x-initial unique), seeded by the harness.

option(ROCI_TRACE "unit-test models can write waveforms (FST)" OFF)

find_path(CATCH2_INCLUDE catch2/catch.hpp REQUIRED)
add_library(roci_catch INTERFACE)
target_include_directories(roci_catch SYSTEM INTERFACE ${CATCH2_INCLUDE})

# Catch2's main takes 16 s at -O0: once for everybody. Link roci_catch_main into any Catch2 test.
add_library(roci_catch_main STATIC ${PROJECT_SOURCE_DIR}/cmake/catch_main.cpp)
target_compile_options(roci_catch_main PRIVATE -O0 -g0 -w)
target_link_libraries(roci_catch_main PUBLIC roci_catch)

file(GLOB harness_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/harness/*.cpp)
list(FILTER harness_sources EXCLUDE REGEX "_test\\.cpp$")
add_library(roci_unit_harness STATIC ${PROJECT_BINARY_DIR}/empty.cpp ${harness_sources})
target_include_directories(roci_unit_harness PUBLIC ${PROJECT_SOURCE_DIR}/tests/unit)
target_include_directories(roci_unit_harness SYSTEM PUBLIC ${ROCI_SVSTRUCTS})
target_link_libraries(roci_unit_harness PUBLIC verilated roci_catch roci_hwif)
target_compile_options(roci_unit_harness PRIVATE -O1)

add_library(unit_pch OBJECT ${PROJECT_BINARY_DIR}/empty.cpp)
target_link_libraries(unit_pch PUBLIC verilated roci_catch)
target_compile_options(unit_pch PRIVATE -O1)
target_precompile_headers(unit_pch PRIVATE <catch2/catch.hpp> <verilated.h> <array> <cstdint>
  <deque> <functional> <map> <memory> <optional> <random> <string> <vector>)

add_custom_target(unit_tests COMMENT "all unit tests are built")

function(roci_unit_test test)
  get_filename_component(folder_path ${test} DIRECTORY)
  get_filename_component(folder ${folder_path} NAME)
  get_filename_component(module ${test} NAME_WE)
  string(REGEX REPLACE "_test$" "" module ${module})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${test})
  file(GLOB cases CONFIGURE_DEPENDS ${folder_path}/${module}_cases_*.cpp)
  set(tb ${folder_path}/${module}_tb.sv)
  set(dut ${PROJECT_SOURCE_DIR}/rtl/${folder}/${module}.sv)
  if(EXISTS ${tb})
    set(top ${module}_tb)
    set(source ${tb})
  elseif(EXISTS ${dut})
    set(top ${module})
    set(source ${dut})
  else()
    message(FATAL_ERROR "${test}: no ${dut} and no ${tb}: a test has the name of its module")
  endif()
  file(STRINGS ${test} mentions_structs REGEX "#include.*roci_svstructs.hpp")
  # The independent wire codec and the golden frames, for tests that judge packets.
  file(STRINGS ${test} mentions_wire REGEX "#include \"wire/")
  file(STRINGS ${test} lines REGEX "^// model:")
  if(NOT lines)
    set(lines "// model:")
  endif()
  add_custom_target(unit_${module} COMMENT "unit tests of ${module} are built")
  foreach(line IN LISTS lines)
    set(configs wide narrow)
    set(args "")
    set(definitions "")
    set(suffix "")
    string(REGEX REPLACE "^// model:" "" line "${line}")
    separate_arguments(words UNIX_COMMAND "${line}")
    foreach(word IN LISTS words)
      if(word MATCHES "^configs=(.+)$")
        string(REPLACE "," ";" configs "${CMAKE_MATCH_1}")
      elseif(word MATCHES "^args=(.+)$")
        list(APPEND args "${CMAKE_MATCH_1}")
        if(word MATCHES "^args=-G([A-Za-z_0-9]+)=(-?[0-9]+)$")
          list(APPEND definitions DUT_${CMAKE_MATCH_1}=${CMAKE_MATCH_2})
        endif()
      elseif(word MATCHES "^name=([a-z0-9_]+)$")
        set(suffix _${CMAKE_MATCH_1})
      else()
        message(FATAL_ERROR "${test}: unknown word '${word}' in its model line")
      endif()
    endforeach()
    foreach(config IN LISTS configs)
      if(NOT config MATCHES "^(wide|narrow|any)$")
        message(FATAL_ERROR "${test}: unknown configuration '${config}'")
      endif()
      set(name unit_${module}_${config}${suffix})
      if(TARGET ${name})
        message(FATAL_ERROR "${test}: two models are called ${name}: give one a name=")
      endif()
      set(model_config ${config})
      set(is_wide 0)
      if(config STREQUAL any)
        set(model_config wide)
      elseif(config STREQUAL wide)
        set(is_wide 1)
      endif()
      set(trace "")
      if(ROCI_TRACE)
        set(trace --trace-fst --trace-structs)
      endif()
      set(structs "")
      if(mentions_structs)
        set(structs STRUCTS ${test})
      endif()
      roci_model(${name}_model TOP ${top} CONFIG ${model_config} SOURCES ${source}
        FOLDERS ${folder_path} ${PROJECT_SOURCE_DIR}/tests/unit/harness
        ARGS --x-assign unique --x-initial unique ${trace} ${args} ${structs})
      add_executable(${name} ${test} ${cases})
      set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/unit)
      target_compile_definitions(${name} PRIVATE DUT_HEADER="V${top}.h" DUT_CLASS=V${top}
        ROCI_CONFIG_NAME="${config}" ROCI_CONFIG_WIDE=${is_wide} ${definitions})
      target_compile_options(${name} PRIVATE -O1)
      target_link_libraries(${name} PRIVATE
        ${name}_model roci_unit_harness roci_catch_main roci_hwif)
      if(mentions_wire)
        target_link_libraries(${name} PRIVATE wire_codec wire_vectors)
      endif()
      target_precompile_headers(${name} REUSE_FROM unit_pch)
      add_dependencies(unit_tests ${name})
      add_dependencies(unit_${module} ${name})
      add_test(NAME ${name} COMMAND ${name})
      set_tests_properties(${name} PROPERTIES LABELS "unit;${folder}" TIMEOUT 300)
    endforeach()
  endforeach()
endfunction()

file(GLOB unit_test_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/*/*_test.cpp)
# Whether a test has a wrapper is looked up anew when files come and go.
file(GLOB unit_rtl CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/rtl/*/*.sv
  ${PROJECT_SOURCE_DIR}/tests/unit/*/*_tb.sv)
foreach(test IN LISTS unit_test_sources)
  roci_unit_test(${test})
endforeach()
