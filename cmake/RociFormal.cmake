# SPDX-License-Identifier: BSD-2-Clause-Patent
#
# Each job tests/formal/<name>.toml is the test formal_<name>: proofs and planted faults in every
# `make test`, so that a proof cannot rot. The description of a job: tools/formal.py.

file(GLOB formal_jobs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/formal/*.toml)
foreach(job IN LISTS formal_jobs)
  get_filename_component(name ${job} NAME_WE)
  add_test(NAME formal_${name} COMMAND ${ROCI_PYTHON} ${PROJECT_SOURCE_DIR}/tools/formal.py
    --build ${PROJECT_BINARY_DIR} --jobs 1 ${job})
  set_tests_properties(formal_${name} PROPERTIES LABELS formal TIMEOUT 900)
endforeach()
