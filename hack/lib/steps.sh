# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by hack/demo.sh and hack/e2e.sh: steps that are shown with their
# time, and the programs that the steps use.

# step TITLE COMMAND... runs a command and says how long it took.
step() {
  local title=$1 start=$SECONDS
  shift
  printf '\n==> %s\n' "$title"
  "$@"
  printf '    %s: %d s\n' "$title" $((SECONDS - start))
}

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# cluster COMMAND... runs hack/cluster, the cluster on this machine.
cluster() { go run -C "$ROOT/hack/cluster" . "$@"; }

# images COMMAND... runs hack/images, which makes images without Docker.
images() { go run -C "$ROOT/hack/images" . "$@"; }

# pick_target says on which cluster all of this happens: the one of KUBECONFIG
# where that is set, else the one that hack/cluster runs on this machine.
pick_target() {
  LOCAL_KUBECONFIG=$(cluster kubeconfig)
  if [[ -n ${KUBECONFIG:-} && $KUBECONFIG != "$LOCAL_KUBECONFIG" ]]; then
    LOCAL=
  else
    LOCAL=yes
    export KUBECONFIG=$LOCAL_KUBECONFIG
  fi
}

# pick_kubectl finds kubectl: the machine's own for a cluster of one's own,
# else the one that belongs to the local cluster.
pick_kubectl() {
  if [[ -z $LOCAL ]] && command -v kubectl >/dev/null; then
    KUBECTL=kubectl
  else
    KUBECTL=$(cluster assets)/kubectl
  fi
  export KUBECTL
}

local_cluster_up() { cluster status >/dev/null 2>&1; }

# use_cluster picks kubectl, and starts the local cluster where that is the
# target and does not run. $started says that it was started here.
use_cluster() {
  if [[ -n $LOCAL ]] && ! local_cluster_up; then
    started=yes
    step 'Start the cluster' cluster up
  fi
  pick_kubectl
}
