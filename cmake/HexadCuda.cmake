# Finds a CUDA toolkit for engine/device/cuda. HEXAD_CUDA_FOUND says whether there is one; the rest of the
# build needs none.
set(HEXAD_CUDA_FOUND OFF)
if(NOT HEXAD_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "HEXAD_CUDA is AUTO, ON or OFF, not ${HEXAD_CUDA}")
endif()

if(NOT HEXAD_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    # One architecture with its PTX runs on every later GPU; a release carries code for each.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      if(CMAKE_BUILD_TYPE STREQUAL "Release")
        set(CMAKE_CUDA_ARCHITECTURES 80-real 89-real 90a-real 100-real 80-virtual)
      else()
        set(CMAKE_CUDA_ARCHITECTURES 80)
      endif()
    endif()
    enable_language(CUDA)
    # CMake 3.25 does not know the flag of nvcc 12 and later for C++20, and drops the standard
    # without a word.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    if(HEXAD_CCACHE)
      set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
    endif()
    string(REPLACE ";" " " HEXAD_CUDA_ARCHITECTURES_TEXT "${CMAKE_CUDA_ARCHITECTURES}")
    set(HEXAD_CUDA_FOUND ON)
    message(STATUS "CUDA module: yes, nvcc ${CMAKE_CUDA_COMPILER_VERSION}, "
                   "architectures ${HEXAD_CUDA_ARCHITECTURES_TEXT}")
  elseif(HEXAD_CUDA STREQUAL "ON")
    message(FATAL_ERROR "HEXAD_CUDA=ON, but no CUDA compiler was found: put nvcc into PATH, set "
                        "CMAKE_CUDA_COMPILER, or say HEXAD_CUDA=OFF")
  else()
    message(STATUS "CUDA module: no, for want of a CUDA compiler")
  endif()
endif()
