# Language, warnings, sanitizers, compiler cache and linker: the same for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g0")

# No contraction: a*b+c must round the same in every function it is inlined into, or equal
# inputs stop giving equal logits. Kernels ask for FMA by name.
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers
                    -Werror=return-type -Werror=switch
                    -ffp-contract=off -fno-omit-frame-pointer)
if(HEXAD_SANITIZE)
  add_compile_options(-fsanitize=${HEXAD_SANITIZE} -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${HEXAD_SANITIZE})
endif()

find_program(HEXAD_CCACHE ccache)
if(HEXAD_CCACHE)
  # Relative paths and no working directory in the hash: a second build folder hits the cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=time_macros ${HEXAD_CCACHE})
endif()
find_program(HEXAD_MOLD mold)
if(HEXAD_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
