// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// pidOf reads si_pid, which follows three integers and padding to the size of
// a pointer in the layout of the kernel on 64-bit machines.
func pidOf(info *unix.Siginfo) int {
	const offset = 16
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), offset))) //nolint:gosec // the kernel's own layout
}
