# Sourced by the build.sh of a module of tools, with $here set to its folder: sets
# $bin to the folder of its binaries, in a per-user cache, and defines build.
#
# The folder is ${XDG_CACHE_HOME:-$HOME/.cache}/landwaiter/tools/<hash>/bin, where
# <hash> covers go.mod and go.sum, so a change of version is a new folder and a
# second run with the same versions builds nothing.
hash=$(cat "$here/go.mod" "$here/go.sum" | sha256sum | cut -c1-16)
bin="${XDG_CACHE_HOME:-$HOME/.cache}/landwaiter/tools/$hash/bin"
mkdir -p "$bin"

# build NAME PACKAGE builds one binary, if it is missing. Progress goes to stderr.
build() {
  local name=$1 package=$2 scratch
  if [[ -x "$bin/$name" ]]; then
    echo "tools: $name is built" >&2
    return
  fi
  echo "tools: building $name from $package (minutes the first time)" >&2
  # The scratch folder is next to the target so that the final rename is
  # atomic: another run sees either no binary or a whole one.
  scratch=$(mktemp -d "$bin/.build-XXXXXX")
  # As many compiler processes at a time as JOBS says.
  if ! (cd "$here" && nice go build -p "${JOBS:-2}" -o "$scratch/$name" "$package"); then
    rm -rf "$scratch"
    echo "tools: building $name failed" >&2
    return 1
  fi
  mv -f "$scratch/$name" "$bin/$name"
  rm -rf "$scratch"
  echo "tools: built $name" >&2
}
