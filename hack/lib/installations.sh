# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Sourced: what tests of upgrades go from and to, as YAML to apply. Needs
# images.sh and install.sh, and the images that they built.

# installations writes into E2E_INSTALLATIONS:
#   current.yaml   what is installed
#   next.yaml      the same code under another version: other images
#   previous.yaml  the commit before (E2E_PREVIOUS, HEAD~1), its own config and
#                  CRDs, with the server image of current.yaml
installations() {
  export E2E_INSTALLATIONS=$OUT/installations
  mkdir -p "$E2E_INSTALLATIONS"
  operator_yaml >"$E2E_INSTALLATIONS/current.yaml"

  local version=github.com/espalier-dev/espalier/internal/version.Version
  build_variant "$ROOT" next "-X $version=next"
  variant_images next
  MANAGER_IMAGE=$VARIANT_MANAGER SERVER_IMAGE=$VARIANT_SERVER operator_yaml >"$E2E_INSTALLATIONS/next.yaml"

  local source=$OUT/previous
  git -C "$ROOT" worktree remove --force "$source" 2>/dev/null || true
  git -C "$ROOT" worktree add --quiet --force --detach "$source" "${E2E_PREVIOUS:-HEAD~1}"
  build_variant "$source" previous ''
  variant_images previous
  (ROOT=$source MANAGER_IMAGE=$VARIANT_MANAGER; operator_yaml) >"$E2E_INSTALLATIONS/previous.yaml"
  git -C "$ROOT" worktree remove --force "$source"
}

# build_variant SOURCE NAME LDFLAGS builds operator and server of a checkout.
build_variant() {
  local platform
  for platform in $(platforms); do
    mkdir -p "$OUT/$platform/$2"
    CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} \
      go build -C "$1" -trimpath -buildvcs=false -ldflags "-s -w $3" -o "$OUT/$platform/$2/" ./cmd/manager ./cmd/server
  done
}

# variant_images NAME makes and delivers its images, and says their names in
# VARIANT_MANAGER and VARIANT_SERVER.
variant_images() {
  local program platform tag binaries
  for program in manager server; do
    binaries=()
    for platform in $(platforms); do binaries+=(--binary "$platform=$OUT/$platform/$1/$program"); done
    tag=$(content_tag "$1/$program")
    deliver "$program-$1" "$tag" "$tag" build "${binaries[@]}" --entrypoint "/$program"
    declare -g "VARIANT_${program^^}=$REGISTRY/$program-$1:$tag"
  done
}
