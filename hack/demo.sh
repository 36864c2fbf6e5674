#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0
#
# hack/demo.sh [up|down]
#
# up builds all of it, starts a Kubernetes cluster on this machine, installs
# the operator, applies the examples and calls some of their tools.
# down removes all of that again, the cluster included.
#
# With a KUBECONFIG of one's own both happen there instead: images go through
# the registry that IMAGE_REGISTRY names, and down leaves the cluster itself.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT"
. hack/lib/steps.sh
. hack/lib/images.sh
. hack/lib/install.sh

NAMESPACE=espalier-demo

fixtures() {
  build_programs ./test/fixtures/backend ./test/fixtures/mcpcall
  go_image backend example-backend dev
  go_image mcpcall example-client dev
}

# server-everything needs the machine's Node; the rest of the demo does not.
examples() {
  echo expressions rest-backend cluster-api
  if [[ -n $NODE ]]; then echo everything; fi
}

example_yaml() {
  local example
  cat examples/namespace.yaml
  for example in $(examples); do
    for file in examples/"$example"/*.yaml; do printf -- '---\n'; cat "$file"; done
  done | sed "s#ghcr.io/espalier-dev/#$REGISTRY/#"
}

apply_examples() { example_yaml | "$KUBECTL" apply -f - | sed 's/^/    /'; }

await() {
  # The deployments are those of the examples' backends too: a server is Ready
  # without them, a call of its tools needs them.
  if ! "$KUBECTL" wait --namespace "$NAMESPACE" --for=condition=Ready mcpservers --all --timeout=240s >/dev/null ||
    ! "$KUBECTL" wait --namespace "$NAMESPACE" --for=condition=Available deployments --all --timeout=90s >/dev/null ||
    ! "$KUBECTL" wait --namespace "$NAMESPACE" --for=condition=Served mcptools --all --timeout=90s >/dev/null; then
    "$KUBECTL" get mcpservers,mcptools,pods --namespace "$NAMESPACE" --output wide
    "$KUBECTL" describe mcpservers --namespace "$NAMESPACE" | grep -A8 'Message:' | head -80
    die 'the examples did not become ready'
  fi
}

show() { "$KUBECTL" get mcpservers,mcptools --namespace "$NAMESPACE"; }

# ask SERVER TOOL ARGUMENTS calls a tool through its server's Service, from a
# pod as an agent in the cluster would.
ask() {
  printf '\n    %s %s %s\n' "$1" "$2" "$3"
  "$KUBECTL" delete pod ask --namespace "$NAMESPACE" --ignore-not-found --wait >/dev/null
  "$KUBECTL" apply --namespace "$NAMESPACE" -f - >/dev/null <<POD
apiVersion: v1
kind: Pod
metadata:
  name: ask
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: ask
    image: $REGISTRY/example-client:dev
    args: ["http://$1-mcp:8080/mcp", "$2", '$3']
    resources: {requests: {cpu: 5m, memory: 16Mi}, limits: {memory: 64Mi}}
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
POD
  "$KUBECTL" wait --namespace "$NAMESPACE" pod/ask --for=jsonpath='{.status.phase}'=Succeeded --timeout=60s >/dev/null ||
    { "$KUBECTL" logs ask --namespace "$NAMESPACE" || true; die "calling $2 of $1 failed"; }
  "$KUBECTL" logs ask --namespace "$NAMESPACE" | sed 's/^/    -> /'
  "$KUBECTL" delete pod ask --namespace "$NAMESPACE" --wait=false >/dev/null
}

ask_all() {
  ask hello greet '{"name":"Ada"}'
  ask shop get_forecast '{"city":"Bern","days":4}'
  ask shop create_order '{"customer":"ada","item":"pear","quantity":2}'
  ask cluster list_mcp_servers '{"namespace":"espalier-demo"}'
}

up() {
  local start=$SECONDS
  pick_target
  [[ -n $LOCAL || -n ${IMAGE_REGISTRY:-} ]] ||
    die 'with a KUBECONFIG of your own, say in IMAGE_REGISTRY which registry the cluster pulls from and you may push to'
  NODE=$(command -v npm || true)
  if [[ -z $NODE ]]; then echo 'No npm on this machine: the example of server-everything is left out.'; fi
  if [[ -n $LOCAL ]]; then
    step 'Start a Kubernetes cluster on this machine (builds it the first time, which takes tens of minutes)' cluster up
  fi
  pick_kubectl
  if foreign_operator; then
    echo 'Espalier is installed on this cluster already, and not by the demo: it is used as it is.'
  else
    step 'Build the operator and the server, and their images' operator_images
  fi
  step 'Build what the examples run' fixtures
  if [[ -n $NODE ]]; then step 'Make an image of server-everything from npm' everything_image; fi
  if ! foreign_operator; then step 'Install the operator' install_for_demo; fi
  step 'Apply the examples' apply_examples
  step 'Wait until each server is Ready and each tool Served' await
  step 'kubectl get mcpservers,mcptools' show
  step 'Call tools through the Services' ask_all
  printf '\nDone in %d s. Look around:\n  export KUBECONFIG=%s\n  %s get mcpservers,mcptools -n %s -o wide\nRemove all of it: make demo-down\n' \
    $((SECONDS - start)) "$KUBECONFIG" "$KUBECTL" "$NAMESPACE"
}

down() {
  pick_target
  if [[ -n $LOCAL ]]; then
    step 'Stop the cluster and remove what it left' cluster down
    return
  fi
  pick_kubectl
  NODE=yes
  step 'Delete the examples' remove_examples
  if foreign_operator; then
    echo 'Espalier was not installed by the demo: it stays.'
  else
    step 'Remove the operator' uninstall_operator
  fi
}

# MARK on the operator's namespace says that the demo installed it. On a
# cluster of one's own the demo neither replaces nor removes another's.
MARK=mcp.espalier.dev/demo

foreign_operator() {
  [[ -z $LOCAL ]] || return 1
  local annotations
  annotations=$("$KUBECTL" get namespace espalier-system --ignore-not-found -o jsonpath='{.metadata.name} {.metadata.annotations}')
  [[ -n $annotations && $annotations != *"$MARK"* ]]
}

# The mark comes first: an installation that fails half way is the demo's too.
install_for_demo() {
  "$KUBECTL" get namespace espalier-system >/dev/null 2>&1 || "$KUBECTL" create namespace espalier-system >/dev/null
  "$KUBECTL" annotate namespace espalier-system "$MARK=true" --overwrite >/dev/null
  install_operator
}

remove_examples() { example_yaml | "$KUBECTL" delete --ignore-not-found --timeout=180s -f - | sed 's/^/    /'; }

case ${1:-up} in
up) up ;;
down) down ;;
*) die 'usage: hack/demo.sh [up|down]' ;;
esac
