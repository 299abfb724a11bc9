# What `cmake --install` puts where: the command line with its completion and manual page, the
# library in both forms, its one header, and what pkg-config and find_package(Megalith) need to find
# them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# What the static library asks its users to link, as pkg-config modules.
set(MGL_PRIVATE_MODULES libcjson libpcre2-8 libutf8proc sqlite3)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Megalith)

install(TARGETS megalith_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# Where bash, zsh, fish and man look for what cli/pages made; the first three have no variable for it.
if(TARGET pages)
  install(FILES ${MGL_PAGES}/megalith.bash RENAME megalith
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${MGL_PAGES}/_megalith DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${MGL_PAGES}/megalith.fish
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  install(FILES ${MGL_PAGES}/megalith.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
set_target_properties(megalith_static PROPERTIES EXPORT_NAME static)
set_target_properties(megalith_shared PROPERTIES EXPORT_NAME shared)
install(TARGETS megalith_static megalith_shared EXPORT MegalithTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${CMAKE_SOURCE_DIR}/include/megalith.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT MegalithTargets NAMESPACE Megalith:: DESTINATION ${package_folder})

list(JOIN MGL_PRIVATE_MODULES " " MGL_PRIVATE_MODULE_LIST)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/MegalithConfig.cmake.in
                              ${CMAKE_BINARY_DIR}/MegalithConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/MegalithConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
# Relative, so that an installed tree may be moved.
file(RELATIVE_PATH MGL_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${CMAKE_SOURCE_DIR}/cmake/megalith.pc.in ${CMAKE_BINARY_DIR}/megalith.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/MegalithConfig.cmake
              ${CMAKE_BINARY_DIR}/MegalithConfigVersion.cmake DESTINATION ${package_folder})
install(FILES ${CMAKE_BINARY_DIR}/megalith.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
