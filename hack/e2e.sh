#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0
#
# hack/e2e.sh [GINKGO ARGUMENTS] runs the end-to-end tests of test/e2e.
#
# On the local cluster: one that runs is used and left running, one that does
# not is started and stopped again. With a KUBECONFIG of one's own the tests
# run there, as an administrator, with images from IMAGE_REGISTRY; where its
# network plugin enforces no NetworkPolicies, add -ginkgo.skip=NetworkPolicy.
#
#   E2E_SOAK=1      only what takes longer than CI has time for, at its full length
#   E2E_KEEP=1      leave a cluster that was started here running
#   E2E_INSTALLED=1 the operator and the images are there already
#   E2E_PREVIOUS    the commit that upgrades are from; the one before by default
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT"
. hack/lib/steps.sh
. hack/lib/images.sh
. hack/lib/install.sh
. hack/lib/npm.sh
. hack/lib/installations.sh

pick_target
[[ -n $LOCAL || -n ${IMAGE_REGISTRY:-} ]] || die "with a KUBECONFIG of your own, say in IMAGE_REGISTRY where images are pushed to"

started=
down() {
  if [[ -n $started && -z ${E2E_KEEP:-} ]]; then step 'Stop the cluster' cluster down; fi
}
trap down EXIT

fixtures() {
  build_programs ./test/fixtures/backend ./test/fixtures/collector ./test/fixtures/fakemcp ./test/fixtures/badchild
  go_image backend example-backend dev
  go_image collector collector dev
  go_image fakemcp fakemcp dev
  go_image badchild badchild dev
  uvx_image
}

use_cluster
if [[ -n $LOCAL ]]; then step 'Enforce network policies' cluster up --network-policies; fi
if [[ -z ${E2E_INSTALLED:-} ]]; then
  step 'Build the operator and the server, and their images' operator_images
  step 'Build the fixtures' fixtures
  step 'Make the image of server-everything' everything_image
  step 'Make the image of servers from npm' npm_image
  step 'Install the operator' install_operator
  if [[ -n ${E2E_SOAK:-} ]]; then step 'Make what upgrades go to' installations; fi
fi
if [[ -z ${E2E_INSTALLED:-} || ! -f $E2E_INSTALLATIONS/before/manager ]]; then step 'Make what upgrades go from' commit_before; fi
export E2E_KUBECONFIG=$KUBECONFIG
HELM=$(hack/tool helm)
export HELM
# The MCP inspector is a program of npm. Without npm its spec is skipped.
if command -v npm >/dev/null; then
  NPM=$(npm_folder)
  E2E_NODE=$(npm_node "$NPM")
  E2E_INSPECTOR=$NPM/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js
  export E2E_NODE E2E_INSPECTOR
fi
filter='!soak'
if [[ -n ${E2E_SOAK:-} ]]; then filter='soak || longer'; fi
step 'Test' go test ./test/e2e -count=1 -timeout=60m -v -args \
  -ginkgo.v -ginkgo.no-color -ginkgo.show-node-events=false -ginkgo.timeout=55m \
  -ginkgo.label-filter="$filter" "$@"
