# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Sourced: builds the programs, puts them into images, and brings the images
# to the cluster: by loading them into the local one, or through the registry
# that IMAGE_REGISTRY names.
#
# The operator and the shared server are tagged by their content, so that a
# new build is a new Deployment, and the same build is none. Fixtures are
# tagged dev.

REGISTRY=${IMAGE_REGISTRY:-ghcr.io/espalier-dev}
EVERYTHING_PACKAGE=@modelcontextprotocol/server-everything@2026.8.31
NPM_PACKAGES=("$EVERYTHING_PACKAGE" @modelcontextprotocol/server-memory@2026.8.31 @modelcontextprotocol/server-filesystem@2026.8.31 npm@10.9.9)
OUT=$ROOT/bin/cluster

# platforms to build for: this machine's, or those of clusters elsewhere.
platforms() {
  if [[ -n $LOCAL ]]; then
    echo "linux/$(go env GOARCH)"
  else
    echo "${PLATFORMS:-linux/amd64 linux/arm64}"
  fi
}

# build_programs PACKAGE... builds static binaries into bin/cluster/OS/ARCH.
build_programs() {
  local platform
  for platform in $(platforms); do
    mkdir -p "$OUT/$platform"
    CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} \
      go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$OUT/$platform/" "$@"
  done
}

# content_tag PROGRAM prints a tag that stands for the program's bytes.
content_tag() {
  local platform
  for platform in $(platforms); do cat "$OUT/$platform/$1"; done | sha256sum | cut -c1-12
}

# go_image PROGRAM NAME TAG makes the image of a built program and delivers it.
go_image() {
  local platform binaries=()
  for platform in $(platforms); do binaries+=(--binary "$platform=$OUT/$platform/$1"); done
  deliver "$2" "$3" "$(content_tag "$1")" \
    build "${binaries[@]}" --entrypoint "/$1"
}

# uvx_image makes an image whose uvx runs badchild whatever it is asked for,
# since there is no registry of Python packages.
uvx_image() {
  local platform
  for platform in $(platforms); do cp "$OUT/$platform/badchild" "$OUT/$platform/uvx"; done
  go_image uvx example-uvx dev
}

# everything_image makes the image of a third party's MCP server from npm.
everything_image() {
  deliver example-everything dev "$EVERYTHING_PACKAGE" node --package "$EVERYTHING_PACKAGE"
}

# npm_image makes an image in which several servers from npm lie ready, to be
# wrapped, and npx. It runs the first of them.
npm_image() {
  local package arguments=()
  for package in "${NPM_PACKAGES[@]}"; do arguments+=(--package "$package"); done
  deliver example-npm dev "${NPM_PACKAGES[*]}" node "${arguments[@]}"
}

# deliver NAME TAG KEY ARGUMENTS... makes an image, unless the one of KEY was
# made before, and brings it to the cluster, unless it is there.
deliver() {
  local name=$1 tag=$2 key=$3
  shift 3
  local image=$REGISTRY/$name:$tag tar=$OUT/$name.tar
  if [[ ! -f $tar || $(cat "$tar.key" 2>/dev/null) != "$image $key" ]]; then
    images "$@" --tag "$image" -o "$tar" >/dev/null
    echo "$image $key" >"$tar.key"
  fi
  if [[ -z $LOCAL ]]; then
    images push "$tar" "$image" >/dev/null
    echo "    pushed $image"
    return
  fi
  # The note lies in the cluster's folder and goes with it.
  local loaded=${LOCAL_KUBECONFIG%/*}/loaded-$name
  if [[ $(cat "$loaded" 2>/dev/null) != "$image $key" ]]; then
    cluster load "$tar"
    echo "$image $key" >"$loaded"
    echo "    loaded $image"
  fi
}

# operator_images builds what an installation needs.
operator_images() {
  build_programs ./cmd/manager ./cmd/server
  MANAGER_IMAGE=$REGISTRY/manager:dev-$(content_tag manager)
  SERVER_IMAGE=$REGISTRY/server:dev-$(content_tag server)
  go_image manager manager "${MANAGER_IMAGE##*:}"
  go_image server server "${SERVER_IMAGE##*:}"
}
