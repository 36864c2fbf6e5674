#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0
#
# hack/soak.sh runs what takes too long for every change. Each pass runs,
# whatever became of the ones before; the last lines say how each ended.
set -uo pipefail
cd "$(dirname "$0")/.."

# The cost of fleets, fuzz tests for a minute each, the conformance suite with
# upstreams of one era, chaos and long outages on a cluster.
passes=(
  'hack/scale -fleets=500x1,100x2,1000x2,3000x2'
  "env FUZZTIME=60s FUZZCORPUS=${ESPALIER_CACHE:-$HOME/.cache/espalier}/fuzz hack/fuzz"
  'hack/conformance.sh pinned'
  'env E2E_SOAK=1 hack/e2e.sh'
)
verdicts=()
failed=0
for pass in "${passes[@]}"; do
  printf '\n=== %s\n' "$pass"
  start=$SECONDS verdict=ok
  # A pass is a command and its arguments.
  $pass || { verdict=FAILED failed=1; }
  verdicts+=("$(printf 'SOAK %-50s %6d s  %s' "$pass" $((SECONDS - start)) "$verdict")")
done
printf '\n'
printf '%s\n' "${verdicts[@]}"
exit $failed
