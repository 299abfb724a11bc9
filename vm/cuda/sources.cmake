# Writes the kernel's sources into one C file (sources.h says how):
#   cmake -DROOT=... -DOUT=... -DNAME=mgl_cuda -DHEADER=... "-DFILES=a;b;c" -P sources.cmake
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/embed.cmake)
mgl_embed("unsigned char" ${ROOT} ${FILES})
file(WRITE ${OUT}.new "/* Made by vm/cuda/sources.cmake. */\n#include \"${HEADER}\"\n\n${arrays}\n"
  "const mgl_cuda_source ${NAME}_sources[] = {\n${table}};\n"
  "const int ${NAME}_source_count = ${count};\n")
file(RENAME ${OUT}.new ${OUT})
