# Writes the kernel's sources into one C file (sources.h says how):
#   cmake -DROOT=... -DOUT=... -DNAME=mgl_cuda -DHEADER=... "-DFILES=a;b;c" -P sources.cmake
set(arrays "")
set(table "")
set(count 0)
foreach(file ${FILES})
  file(READ ${ROOT}/${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "static const unsigned char text_${count}[] = {${bytes}0};\n")
  string(APPEND table "    {\"${file}\", text_${count}},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUT}.new "/* Made by vm/cuda/sources.cmake. */\n#include \"${HEADER}\"\n\n${arrays}\n"
  "const mgl_cuda_source ${NAME}_sources[] = {\n${table}};\n"
  "const int ${NAME}_source_count = ${count};\n")
file(RENAME ${OUT}.new ${OUT})
