# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Sourced: what tests of upgrades go from and to. Needs images.sh and
# install.sh, and the images that they built. It lies in E2E_INSTALLATIONS:
#
#   before/         the commit before: its chart, and files that say which commit
#                   it is and what its operator's image is called
#   current.yaml    what is installed, as YAML to apply
#   next.yaml       the same code under another version: other images
E2E_INSTALLATIONS=$OUT/installations
export E2E_INSTALLATIONS

# How far back a commit is looked for that builds.
MAX_BACK=5

# commit_before makes E2E_INSTALLATIONS/before of the commit before HEAD (or of
# E2E_PREVIOUS): its own chart and operator. One that does not build is passed
# over for the one before it. Where there is none, in a clone of one commit or
# without git, it is HEAD or this tree itself. What it is made of is printed.
commit_before() {
  local source=$OUT/before commit candidates=()
  if [[ -n ${E2E_PREVIOUS:-} ]]; then
    candidates=("$E2E_PREVIOUS")
  elif git -C "$ROOT" rev-parse --quiet --verify HEAD~1 >/dev/null 2>&1; then
    mapfile -t candidates < <(git -C "$ROOT" rev-list --first-parent --skip=1 --max-count=$MAX_BACK HEAD)
  elif git -C "$ROOT" rev-parse --quiet --verify HEAD >/dev/null 2>&1; then
    echo '    This clone has one commit: the upgrade is from that one.'
    candidates=(HEAD)
  fi
  for commit in "${candidates[@]}"; do
    rm -rf "$source"
    mkdir -p "$source"
    git -C "$ROOT" archive "$commit" | tar -x -C "$source"
    if build_variant "$source" before '' manager; then
      before_from "$source" "$(git -C "$ROOT" log -1 --format='%h %s' "$commit")"
      rm -rf "$source"
      return
    fi
    echo "    $commit does not build."
  done
  if ((${#candidates[@]})); then die 'no commit before this one builds'; fi
  echo "    No commit can be had ($(git -C "$ROOT" rev-parse HEAD 2>&1 | head -1)): the upgrade is from this tree itself."
  build_variant "$ROOT" before '' manager
  before_from "$ROOT" 'this tree'
}

# before_from SOURCE COMMIT keeps what was built of SOURCE.
before_from() {
  local folder=$E2E_INSTALLATIONS/before
  variant_images before manager
  rm -rf "$folder"
  mkdir -p "$folder"
  cp -r "$1/charts/espalier" "$folder/chart"
  echo "$2" >"$folder/commit"
  echo "$VARIANT_MANAGER" >"$folder/manager"
  echo "    Upgrades are from: $2"
}

# installations makes current.yaml and next.yaml.
installations() {
  mkdir -p "$E2E_INSTALLATIONS"
  operator_yaml >"$E2E_INSTALLATIONS/current.yaml"

  local version=github.com/espalier-dev/espalier/internal/version.Version
  build_variant "$ROOT" next "-X $version=next" manager server
  variant_images next manager server
  MANAGER_IMAGE=$VARIANT_MANAGER SERVER_IMAGE=$VARIANT_SERVER operator_yaml >"$E2E_INSTALLATIONS/next.yaml"
}

# build_variant SOURCE NAME LDFLAGS PROGRAM... builds programs of a checkout.
build_variant() {
  local source=$1 name=$2 flags=$3 platform
  shift 3
  for platform in $(platforms); do
    mkdir -p "$OUT/$platform/$name"
    CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} \
      go build -C "$source" -trimpath -buildvcs=false -ldflags "-s -w $flags" -o "$OUT/$platform/$name/" "${@/#/./cmd/}" || return
  done
}

# variant_images NAME PROGRAM... makes and delivers its images, and says their
# names in VARIANT_MANAGER and VARIANT_SERVER.
variant_images() {
  local name=$1 program platform tag binaries
  shift
  for program in "$@"; do
    binaries=()
    for platform in $(platforms); do binaries+=(--binary "$platform=$OUT/$platform/$name/$program"); done
    tag=$(content_tag "$name/$program")
    deliver "$program-$name" "$tag" "$tag" build "${binaries[@]}" --entrypoint "/$program"
    declare -g "VARIANT_${program^^}=$REGISTRY/$program-$name:$tag"
  done
}
