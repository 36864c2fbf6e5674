# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Sourced: the programs of npm that tests run. hack/npm pins them and their
# Node.js by a lock file; they are kept in the cache, outside the checkout,
# under a key of what is pinned. npm is the machine's own, with its own
# configuration. Scripts of packages are not run.

# npm_folder prints the folder whose node_modules holds the programs.
npm_folder() {
  local cache=${ESPALIER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/espalier} key folder
  key=$({ uname -sm; cat "$ROOT"/hack/npm/package{,-lock}.json; } | sha256sum | cut -c1-16)
  folder=$cache/npm/$key
  if [[ ! -d $folder ]]; then
    command -v npm >/dev/null || die 'this needs npm (any version of the last years; it brings its own Node.js)'
    echo "Installing programs of npm (once; kept in $cache/npm)" >&2
    mkdir -p "$folder.$$"
    cp "$ROOT"/hack/npm/package{,-lock}.json "$folder.$$"
    npm install --prefix "$folder.$$" --no-save --ignore-scripts --engine-strict=false --omit=dev --no-audit --no-fund --loglevel=error >&2
    # Another run may have been faster.
    mv -T "$folder.$$" "$folder" 2>/dev/null || rm -rf "$folder.$$"
  fi
  echo "$folder"
}

# npm_node prints the Node.js that was pinned for this machine.
npm_node() {
  local node
  node=$(echo "$1"/node_modules/node-linux-*/bin/node)
  [[ -x $node ]] || die "hack/npm pins no Node.js for $(uname -sm)"
  echo "$node"
}
