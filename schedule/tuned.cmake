# Writes the tuned entries that are shipped into one C file for tuned_folder.c:
#   cmake -DROOT=... -DOUT=... "-DFILES=a;b;c" -P tuned.cmake
set(arrays "")
set(table "")
set(count 0)
foreach(file ${FILES})
  file(READ ${ROOT}/${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "static const char text_${count}[] = {${bytes}0};\n")
  string(APPEND table "    {\"${file}\", text_${count}},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUT}.new "/* Made by schedule/tuned.cmake. */\n#include \"schedule/tuned_files.h\"\n\n"
  "${arrays}\nconst mgl_tuned_file mgl_tuned_files[] = {\n${table}    {0, 0},\n};\n")
file(RENAME ${OUT}.new ${OUT})
