# Writes the tuned entries that are shipped into one C file for tuned_folder.c:
#   cmake -DROOT=... -DOUT=... "-DFILES=a;b;c" -P tuned.cmake
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/embed.cmake)
mgl_embed("char" ${ROOT} ${FILES})
file(WRITE ${OUT}.new "/* Made by schedule/tuned.cmake. */\n#include \"schedule/tuned/tuned_files.h\"\n\n"
  "${arrays}\nconst mgl_tuned_file mgl_tuned_files[] = {\n${table}    {0, 0},\n};\n")
file(RENAME ${OUT}.new ${OUT})
