// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"slices"
	"strings"
	"syscall"
)

// MountsUnder lists the mount points at or below dir, innermost first.
func MountsUnder(dir string) []string {
	data, _ := os.ReadFile("/proc/self/mountinfo")
	return mountPoints(string(data), dir)
}

func mountPoints(mountinfo, dir string) []string {
	var points []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := unescapeMount(fields[4])
		if point == dir || strings.HasPrefix(point, dir+"/") {
			points = append(points, point)
		}
	}
	// Later mounts may cover earlier ones, so undo them in the opposite order.
	slices.Reverse(points)
	return points
}

// Unmount detaches everything mounted at or below dir, even what is still in use.
func Unmount(dir string) {
	for range 3 {
		points := MountsUnder(dir)
		if len(points) == 0 {
			return
		}
		for _, point := range points {
			_ = syscall.Unmount(point, syscall.MNT_DETACH|umountNoFollow)
		}
	}
}

// umountNoFollow is UMOUNT_NOFOLLOW, which package syscall does not name.
const umountNoFollow = 0x8

// unescapeMount undoes the octal escapes that the kernel writes for blanks.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
