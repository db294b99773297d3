# Embeds text files into a library as `const std::vector<embedded::File>& <name>()`, declared in
# "embedded/<name>.hpp". Rebuilt when a file changes; a new file is found at the next configure.
function(pykeep_embed target name)
  cmake_parse_arguments(embed "" "" "FILES" ${ARGN})
  list(TRANSFORM embed_FILES PREPEND ${CMAKE_SOURCE_DIR}/)
  file(GLOB files CONFIGURE_DEPENDS ${embed_FILES})
  list(SORT files)
  set(entries "")
  foreach(file ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(base ${file} NAME)
    file(READ ${file} text HEX)
    # A char array, because a string literal is limited to 64 KiB by -Wpedantic.
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${text}")
    string(MAKE_C_IDENTIFIER ${base} symbol)
    string(APPEND arrays "constexpr char ${symbol}[] = {${bytes}'\\0'};\n")
    string(APPEND entries "      {\"${base}\", {${symbol}, sizeof ${symbol} - 1}},\n")
  endforeach()
  set(directory ${CMAKE_BINARY_DIR}/generated/embedded)
  file(CONFIGURE OUTPUT ${directory}/file.hpp @ONLY CONTENT
"#pragma once
#include <string_view>
#include <vector>
namespace embedded {
struct File {
  std::string_view name;
  std::string_view text;
};
}  // namespace embedded
")
  file(CONFIGURE OUTPUT ${directory}/${name}.hpp @ONLY CONTENT
"#pragma once
#include \"embedded/file.hpp\"
namespace embedded {
const std::vector<File>& ${name}();
}  // namespace embedded
")
  file(CONFIGURE OUTPUT ${directory}/${name}.cpp @ONLY CONTENT
"#include \"embedded/${name}.hpp\"
namespace embedded {
namespace {
${arrays}}  // namespace
const std::vector<File>& ${name}() {
  static const std::vector<File> files{
${entries}  };
  return files;
}
}  // namespace embedded
")
  target_sources(${target} PRIVATE ${directory}/${name}.cpp)
endfunction()
