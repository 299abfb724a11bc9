# Writes the frozen manifest into a header for frozen.c. The hashes are copied from the manifest and not
# computed from the sources.
#   cmake -DMANIFEST=.../frozen.txt -DOUT=... -P frozen.cmake
file(STRINGS ${MANIFEST} lines)
file(SHA256 ${MANIFEST} digest)
set(version "")
set(files "")
foreach(line ${lines})
  if(line MATCHES "^version ([0-9]+)$")
    set(version ${CMAKE_MATCH_1})
  elseif(line MATCHES "^([0-9a-f]+)  ([^ ]+)$")
    string(APPEND files " \\\n    X(\"${CMAKE_MATCH_2}\", \"${CMAKE_MATCH_1}\")")
  else()
    message(FATAL_ERROR "${MANIFEST}: `${line}` is neither a version nor a hash and a path")
  endif()
endforeach()
if(NOT version OR NOT files)
  message(FATAL_ERROR "${MANIFEST}: a version and files are needed; tests/tools/freeze.sh writes it")
endif()
file(WRITE ${OUT}.new "/* Made by autotune/frozen.cmake. */\n"
  "#define MGL_FROZEN_VERSION ${version}\n#define MGL_FROZEN_DIGEST \"${digest}\"\n"
  "#define MGL_FROZEN_FILES(X)${files}\n")
file(RENAME ${OUT}.new ${OUT})
