#!/usr/bin/env bash
# Checks the CUDA module on a machine with an NVIDIA GPU, in minutes.
#
#   tests/device/run.sh               build here, check here
#   tests/device/run.sh bundle DIR    build here (no GPU needed), put all that the check needs in DIR
#   tests/device/run.sh check DIR     check what was bundled: needs a driver, no toolkit, no packages
#
# Exit status: 0 all is well, 1 a check failed, 2 the module cannot be used, 77 no GPU.
# HEXAD_ARCHITECTURES (default: every one a release carries) is passed on as
# CMAKE_CUDA_ARCHITECTURES; one alone, such as 90, builds faster. JOBS limits the build.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${BUILD_DIR:-$root/build/device}

build_all() {
  local options=(-DCMAKE_BUILD_TYPE=Release -DHEXAD_CUDA=ON -DHEXAD_TESTS=ON -DHEXAD_SERVER=OFF)
  if [[ -n ${HEXAD_ARCHITECTURES:-} ]]; then
    options+=("-DCMAKE_CUDA_ARCHITECTURES=$HEXAD_ARCHITECTURES")
  fi
  cmake -S "$root" -B "$build" -G Ninja "${options[@]}" > "$build.log" 2>&1 || {
    tail -n 30 "$build.log" >&2
    exit 1
  }
  ninja -C "$build" -j "${JOBS:-$(nproc)}" hexad_cuda hexad_device_check
}

bundle() {
  local dir=$1
  mkdir -p "$dir/lib"
  cp "$build/bin/hexad_device_check" "$build/lib/libhexad_cuda.so" "$dir/"
  # The libraries that a bare machine lacks: all but those of the C runtime itself.
  ldd "$build/bin/hexad_device_check" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' |
    grep -Ev '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' |
    xargs -r -I{} cp -L {} "$dir/lib/"
}

check() {
  LD_LIBRARY_PATH="$1/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
    "$1/hexad_device_check" "$1/libhexad_cuda.so"
}

mkdir -p "$(dirname "$build")"
case "${1:-all}" in
  all)
    build_all
    "$build/bin/hexad_device_check" "$build/lib/libhexad_cuda.so"
    ;;
  bundle)
    build_all
    bundle "${2:?usage: run.sh bundle DIR}"
    ;;
  check)
    check "${2:?usage: run.sh check DIR}"
    ;;
  *)
    sed -n '2,10p' "${BASH_SOURCE[0]}" >&2
    exit 64
    ;;
esac
