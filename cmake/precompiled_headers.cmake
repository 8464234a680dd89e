# Precompiles `headers` for a target. A compiled header differs from build folder to build folder, and ccache would never
# hit across them: a checksum file beside it stands for what it holds.
function(rlx_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  string(SHA256 sum "${ARGN}")
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.gch.sum CONTENT "${sum}\n" @ONLY)
endfunction()
