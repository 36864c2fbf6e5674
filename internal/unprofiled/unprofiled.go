// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unprofiled switches the sampling of allocations off for a program
// that imports it, from the beginning: the table of samples alone takes 1.4 MiB
// once there is one. It imports nothing but the runtime, so that it is
// initialized before what allocates.
package unprofiled

import "runtime"

// rate is Go's default.
var rate = runtime.MemProfileRate

func init() { runtime.MemProfileRate = 0 }

// Not samples allocations after all, those from now on.
func Not() { runtime.MemProfileRate = rate }
