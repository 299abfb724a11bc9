# Files as C arrays, for scripts that write them into a C file. Sets `arrays`, a `text_N` of the type
# for each file with a 0 at its end; `table`, a row {name, text_N} each; and `count`.
macro(mgl_embed type root)
  set(arrays "")
  set(table "")
  set(count 0)
  foreach(file ${ARGN})
    file(READ ${root}/${file} hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(APPEND arrays "static const ${type} text_${count}[] = {${bytes}0};\n")
    string(APPEND table "    {\"${file}\", text_${count}},\n")
    math(EXPR count "${count} + 1")
  endforeach()
endmacro()
