# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Sourced: installs the operator from config/default, and removes it.

# operator_yaml prints what is installed, with the images that were built. One
# pod of the operator is enough where nodes are few.
operator_yaml() {
  "$("$ROOT/hack/tool" kustomize)" build "$ROOT/config/default" |
    sed -e "s#ghcr.io/espalier-dev/manager:dev#${MANAGER_IMAGE:-ghcr.io/espalier-dev/manager:dev}#" \
      -e "s#ghcr.io/espalier-dev/server:dev#${SERVER_IMAGE:-ghcr.io/espalier-dev/server:dev}#" \
      -e 's#^  replicas: 2$#  replicas: 1#'
}

install_operator() {
  operator_yaml | "$KUBECTL" apply --server-side --force-conflicts -f - >/dev/null
  "$KUBECTL" wait --for=condition=Established --timeout=60s \
    crd/mcpservers.mcp.espalier.dev crd/mcptools.mcp.espalier.dev \
    crd/mcpresources.mcp.espalier.dev crd/mcpprompts.mcp.espalier.dev >/dev/null
  "$KUBECTL" -n espalier-system rollout status deployment/espalier-manager --timeout=180s
}

# uninstall_operator deletes servers first, while the operator runs, then the rest.
uninstall_operator() {
  "$KUBECTL" delete mcptools,mcpresources,mcpprompts,mcpservers --all --all-namespaces --ignore-not-found --timeout=60s 2>/dev/null || true
  operator_yaml | "$KUBECTL" delete --ignore-not-found --timeout=120s -f - >/dev/null
}
