#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0
#
# hack/session.sh records a terminal session with kubectl mcp: it makes servers
# in a namespace of their own, runs the commands below against the cluster, and
# writes what they printed into README.md and docs/kubectl-mcp.md, between
# "<!-- session PART -->" and "<!-- end session -->". Nothing in it is made up.
#
# It runs on the cluster of KUBECONFIG, or on the one of this machine, where
# Espalier is installed: make demo does that.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/.." && pwd)
cd "$ROOT"
. hack/lib/steps.sh

NAMESPACE=session
PAGES=(README.md docs/kubectl-mcp.md)

pick_target
pick_kubectl
work=$(mktemp -d)
# kubectl finds the plugin in PATH, as it does for everybody.
go build -o "$work/bin/kubectl-mcp" ./cmd/kubectl-mcp
ln -s "$(command -v "$KUBECTL")" "$work/bin/kubectl"
export PATH=$work/bin:$PATH NO_COLOR=1

cleanup() {
  kubectl delete namespace "$NAMESPACE" --ignore-not-found --wait=false >/dev/null
  rm -rf "$work"
}
trap cleanup EXIT

servers() {
  kubectl create namespace "$NAMESPACE" >/dev/null
  mkdir "$work/.kube"
  kubectl config view --raw --flatten >"$work/.kube/config"
  # The session is that of somebody with a kubeconfig in the usual place.
  export HOME=$work
  unset KUBECONFIG
  kubectl config set-context --current --namespace="$NAMESPACE" >/dev/null
  kubectl apply -f - >/dev/null <<'YAML'
apiVersion: mcp.espalier.dev/v1alpha1
kind: MCPServer
metadata: {name: weather}
spec:
  replicas: 2
---
apiVersion: mcp.espalier.dev/v1alpha1
kind: MCPTool
metadata: {name: get-forecast}
spec:
  serverRefs: [{name: weather}]
  name: get_forecast
  description: Forecast for a city, up to 7 days.
  inputSchema:
    type: object
    properties:
      city: {type: string, minLength: 1}
      days: {type: integer, minimum: 1, maximum: 7}
    required: [city]
  expression:
    text: "'Sunny in ' + args.city + ' for ' + string(has(args.days) ? args.days : 3) + ' days.'"
---
apiVersion: mcp.espalier.dev/v1alpha1
kind: MCPTool
metadata: {name: get-warnings}
spec:
  serverRefs: [{name: weather}]
  name: get_forecast
  expression: {text: "'none'"}
---
apiVersion: mcp.espalier.dev/v1alpha1
kind: MCPServer
metadata: {name: orders}
spec:
  workload:
    env:
    - name: ORDERS_TOKEN
      valueFrom: {secretKeyRef: {name: orders-api, key: token}}
---
apiVersion: mcp.espalier.dev/v1alpha1
kind: MCPServer
metadata: {name: partner}
spec:
  type: External
  external: {url: "https://kubernetes.default.svc/mcp"}
  probe: {intervalSeconds: 5, timeoutSeconds: 3}
---
apiVersion: mcp.espalier.dev/v1alpha1
kind: MCPServer
metadata: {name: archive}
spec:
  replicas: 0
YAML
}

# await waits until the states that the session shows have come.
await() {
  kubectl wait mcpserver/weather --for=condition=Ready --timeout=120s >/dev/null
  kubectl wait mcptool/get-forecast --for=condition=Served --timeout=60s >/dev/null
  kubectl wait mcpserver/orders --for=jsonpath='{.status.conditions[?(@.type=="Ready")].reason}'=SecretNotFound --timeout=120s >/dev/null
  kubectl wait mcpserver/partner --for=jsonpath='{.status.conditions[?(@.type=="Ready")].reason}'=TLSUntrusted --timeout=120s >/dev/null
  kubectl wait mcpserver/archive --for=condition=Ready --timeout=60s >/dev/null
}

# shown COMMAND... prints a command and what it prints, into the part that is
# recorded. That a command answers "no" is part of the session.
shown() {
  printf '$ %s\n' "$(quoted "$@")"
  "$@" 2>&1 || [[ $? == 1 ]] || die "$*: it could not be done"
  printf '\n'
}

# quoted prints words as one would type them.
quoted() {
  local word out=
  for word in "$@"; do
    if [[ $word =~ ^[A-Za-z0-9_./:=,@-]+$ ]]; then out+=" $word"; else out+=" '$word'"; fi
  done
  printf '%s' "${out# }"
}

fleet() { shown kubectl mcp get; }

cause() { shown kubectl mcp why orders; }

entry() { shown kubectl mcp why tool/get-warnings; }

use() {
  shown kubectl mcp tools weather
  shown kubectl mcp call weather get_forecast city=Bern days=4
  shown kubectl mcp config weather --client cursor --command kubectl
}

# record PART runs its commands and fills it in wherever a page has it.
record() {
  local page
  { printf '```\n' && "$1" | sed -e '${/^$/d}' && printf '```\n'; } >"$work/$1"
  cat "$work/$1"
  for page in "${PAGES[@]}"; do
    awk -v part="<!-- session $1 -->" -v text="$work/$1" '
      $0 == part { print; print ""; while ((getline line < text) > 0) print line; close(text); print ""; inside = 1; next }
      $0 == "<!-- end session -->" { inside = 0 }
      !inside { print }
    ' "$page" >"$work/page"
    cat "$work/page" >"$page"
  done
}

servers
await
record fleet
record cause
record entry
record use
