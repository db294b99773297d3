# What `cmake --install` lays out, and the .deb made of it (packaging/README.md). "program" works from any
# prefix: everything the program needs of ours is embedded in it. "system" is for a machine's own prefix.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON) # tests are no part of a package
include(GNUInstallDirs)
file(GLOB documents docs/*.md)
set(documentation ${CMAKE_INSTALL_DATADIR}/doc/pykeep)
install(TARGETS pykeep DESTINATION bin COMPONENT program)
install(FILES packaging/pykeep.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES README.md CHANGELOG.md SECURITY.md DESTINATION ${documentation} COMPONENT program)
install(FILES LICENSE DESTINATION ${documentation} RENAME copyright COMPONENT program)
install(FILES ${documents} DESTINATION ${documentation}/docs COMPONENT program)
install(DIRECTORY docs/images DESTINATION ${documentation}/docs COMPONENT program)
install(FILES packaging/pykeep.service packaging/nginx.conf packaging/Caddyfile packaging/oci/seccomp.json
  DESTINATION ${documentation}/packaging COMPONENT program)

file(READ packaging/pykeep.service unit)
string(REPLACE /usr/local/bin/pykeep /usr/bin/pykeep unit "${unit}")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/packaging/pykeep.service CONTENT "${unit}" @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/packaging/pykeep.service DESTINATION lib/systemd/system COMPONENT system)
install(FILES packaging/debian/sysusers.conf DESTINATION lib/sysusers.d RENAME pykeep.conf COMPONENT system)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CONTACT "pykeep maintainers <maintainers@pykeep.invalid>")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "isolated, persistent Python kernels for agents (MCP server)
An MCP server whose run_python tool runs code in a sandbox with a persistent
IPython kernel: variables stay from call to call, charts come back as images,
sessions can be snapshot with all their memory. No daemon, no container.")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # libc6, in the version whose symbols the program uses
# 0.7: sandbox/local/bubblewrap.cpp.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "bubblewrap (>= 0.7), python3 (>= 3.9), python3-venv, fonts-dejavu-core")
# Charts in Chinese, Japanese and Korean, and with symbols; the PandaStack backend loads libcurl.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "fonts-wqy-microhei, fonts-symbola, libcurl4 | libcurl4t64, ca-certificates")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${CMAKE_SOURCE_DIR}/packaging/debian/postinst ${CMAKE_SOURCE_DIR}/packaging/debian/prerm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
