#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0
#
# hack/conformance.sh [pinned | clients]
#
# runs the public MCP conformance suite against a server of the shared image
# in a cluster, whose fixtures are the YAML of test/conformance/fixtures and a
# small program behind it as an upstream; then against one more server that has
# the first for its upstream; and the suite's client part against the probe and
# kubectl mcp. The last lines are the totals, the exit status is 1 when one is
# not full.
#
# clients runs the client part alone, which takes no cluster.
#
# pinned runs the servers' part with three replicas each, with the program
# pinned to the legacy era and then to the modern one. What the other era
# cannot do is named in test/conformance/expected-failures.
#
# On the local cluster: one that runs is used and left running, one that does
# not is started and stopped again. With a KUBECONFIG of one's own it happens
# there, as an administrator, with images from IMAGE_REGISTRY.
#
#   CONFORMANCE_KEEP=1      leave the servers running, and a cluster that was started here
#   CONFORMANCE_INSTALLED=1 the operator is there already
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT"
. hack/lib/steps.sh
. hack/lib/images.sh
. hack/lib/install.sh
. hack/lib/npm.sh

NAMESPACE=espalier-conformance
RESULTS=$ROOT/build/conformance
SERVERS='conformance conformance-front'

mode=${1:-all}
[[ $mode == all || $mode == pinned || $mode == clients ]] || die 'usage: hack/conformance.sh [pinned | clients]'
if [[ $mode == clients ]]; then
  LOCAL=1
else
  pick_target
fi
[[ -n $LOCAL || -n ${IMAGE_REGISTRY:-} ]] || die 'with a KUBECONFIG of your own, say in IMAGE_REGISTRY where images are pushed to'

started=
forwards=()
down() {
  disconnect
  if [[ -z ${CONFORMANCE_KEEP:-} ]]; then
    if [[ -n ${KUBECTL:-} ]]; then "$KUBECTL" delete namespace "$NAMESPACE" --ignore-not-found --wait=false >/dev/null || true; fi
    if [[ -n $started ]]; then step 'Stop the cluster' cluster down; fi
  fi
  # The totals are the last lines.
  cat "$RESULTS"/*/totals 2>/dev/null || true
}
trap down EXIT

programs() {
  build_programs ./test/fixtures/conformance
  go_image conformance conformance-fixtures dev
  judges
}

# judges builds the runner, and the clients that are judged.
judges() {
  mkdir -p "$OUT"
  go build -o "$OUT/" ./test/conformance/runner ./test/conformance/probe ./test/conformance/plugin ./cmd/kubectl-mcp
}

# free_port PORT prints the first port from PORT on that nobody listens on.
free_port() {
  local port=$1
  while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
  echo "$port"
}

# fixtures_yaml PROTOCOL REPLICAS FILE... prints what is applied.
fixtures_yaml() {
  local protocol=$1 replicas=$2
  shift 2
  local file
  for file in "$@"; do
    printf -- '---\n'
    sed -e "s#ghcr.io/espalier-dev/#$REGISTRY/#" -e "s/--protocol=Auto/--protocol=$protocol/" \
      -e "s/^  replicas: 1\$/  replicas: $replicas/" \
      -e "s/:28080\"/:$DIRECT_PORT\"/" -e "s/:28081\"/:$FRONT_PORT\"/" "test/conformance/fixtures/$file.yaml"
  done
}

# apply PROTOCOL REPLICAS brings all fixtures up, from nothing.
apply() {
  "$KUBECTL" delete namespace "$NAMESPACE" --ignore-not-found --wait --timeout=180s >/dev/null
  "$KUBECTL" create namespace "$NAMESPACE" >/dev/null
  fixtures_yaml "$1" "$2" program servers tools resources-prompts | kube apply -f - >/dev/null
  kube rollout status deployment/fixtures --timeout=120s >/dev/null
  await mcpserver/conformance
  # The front comes last, and finds all at its first look.
  fixtures_yaml "$1" "$2" front | kube apply -f - >/dev/null
  await mcpserver/conformance-front
  kube wait --for=condition=Served --timeout=90s mcptools,mcpresources,mcpprompts --all >/dev/null || explain
  kube get mcpservers,mcptools,mcpresources,mcpprompts | sed 's/^/    /'
}

kube() { "$KUBECTL" --namespace "$NAMESPACE" "$@"; }

await() {
  local condition
  for condition in Ready UpstreamsReady; do
    kube wait "--for=condition=$condition" --timeout=240s "$1" >/dev/null || explain
  done
}

explain() {
  kube get mcpservers,mcptools,mcpresources,mcpprompts,pods --output wide
  kube describe mcpservers | grep -A8 'Message:' | head -80
  die 'the fixtures are not served'
}

# connect gives each server a port of this machine: the suite wants a server
# on loopback.
connect() {
  local server port
  for server in $SERVERS; do
    port=$DIRECT_PORT
    if [[ $server == *-front ]]; then port=$FRONT_PORT; fi
    "$KUBECTL" --namespace "$NAMESPACE" port-forward "service/$server-mcp" "$port:8080" >>"$RESULTS/port-forward.log" 2>&1 &
    forwards+=($!)
  done
  local tries
  for port in "$DIRECT_PORT" "$FRONT_PORT"; do
    for tries in {1..100}; do
      if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then continue 2; fi
      sleep 0.1
    done
    die "nothing listens on port $port"
  done
}

disconnect() {
  local pid
  for pid in "${forwards[@]}"; do kill "$pid" 2>/dev/null || true; done
  forwards=()
}

# judge NAME ARGUMENTS... runs the suite.
judge() {
  local name=$1
  shift
  "$OUT/runner" -node "$NODE" -suite "$NPM/node_modules/@modelcontextprotocol/conformance/dist/index.js" -out "$RESULTS/$name" "$@"
}

# service SERVER prints the URL of its Service, at which this machine is when
# the cluster runs on it.
service() { echo "http://$(kube get service "$1-mcp" -o jsonpath='{.spec.clusterIP}'):8080/mcp"; }

# The clients that the suite judges.
export KUBECTL_MCP=$OUT/kubectl-mcp
CLIENTS=(-probe "$OUT/probe" -plugin "$OUT/plugin")

clients() {
  step 'Judge the clients' judge clients -expected test/conformance/expected-failures/none.yaml "${CLIENTS[@]}"
}

all() {
  local inspect=()
  step 'Apply the fixtures' apply Auto 1
  connect
  if [[ -n $LOCAL ]]; then inspect=(-inspect "$(service conformance-front)"); fi
  step 'Judge' judge all -expected test/conformance/expected-failures/none.yaml "${CLIENTS[@]}" \
    -inspector "$NPM/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js" "${inspect[@]}" \
    "direct=http://127.0.0.1:$DIRECT_PORT/mcp" "chained=http://127.0.0.1:$FRONT_PORT/mcp"
}

pinned() {
  [[ -n $LOCAL ]] || die 'the pinned passes call Services by their addresses, as is possible on the local cluster only'
  local protocol failed=
  for protocol in Legacy Modern; do
    step "Apply the fixtures, the program pinned to $protocol" apply "$protocol" 3
    printf '\n==> Judge\n'
    judge "${protocol,,}" -title "CONFORMANCE $protocol" -expected "test/conformance/expected-failures/${protocol,,}.yaml" \
      -local "$DIRECT_PORT,$FRONT_PORT" "direct=$(service conformance)" "chained=$(service conformance-front)" || failed=1
  done
  [[ -z $failed ]]
}

rm -rf "$RESULTS"
mkdir -p "$RESULTS"
if [[ $mode == clients ]]; then
  step 'Build the runner and the clients' judges
  NPM=$(npm_folder)
  NODE=$(npm_node "$NPM")
  clients
  exit
fi
use_cluster
if [[ -z ${CONFORMANCE_INSTALLED:-} ]]; then
  step 'Build the operator and the server, and their images' operator_images
fi
step 'Build the fixtures and the runner' programs
NPM=$(npm_folder)
NODE=$(npm_node "$NPM")
if [[ -z ${CONFORMANCE_INSTALLED:-} ]]; then
  step 'Install the operator' install_operator
fi
DIRECT_PORT=$(free_port 28080)
FRONT_PORT=$(free_port $((DIRECT_PORT + 1)))
$mode
