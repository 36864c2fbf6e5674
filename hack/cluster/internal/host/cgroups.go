// SPDX-License-Identifier: Apache-2.0

package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// podGroups are the control groups that the kubelet and containerd make, on version 1
// (one tree per controller) and on version 2 (a single tree).
func podGroups() []string {
	var groups []string
	for _, pattern := range []string{"/sys/fs/cgroup/kubepods", "/sys/fs/cgroup/*/kubepods", "/sys/fs/cgroup/k8s.io", "/sys/fs/cgroup/*/k8s.io"} {
		matches, _ := filepath.Glob(pattern)
		groups = append(groups, matches...)
	}
	return groups
}

// RemovePodGroups kills whatever still runs in a pod's control group and removes the
// groups. A container outlives its shim and containerd; this is where none escapes.
func RemovePodGroups() {
	for range 50 {
		groups := podGroups()
		if len(groups) == 0 {
			return
		}
		for _, group := range groups {
			killTree(group)
			removeTree(group)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func killTree(root string) {
	for _, dir := range dirs(root) {
		data, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for field := range strings.FieldsSeq(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// removeTree removes the groups from the leaves up: only an empty one can be removed.
func removeTree(root string) {
	all := dirs(root)
	slices.Reverse(all)
	for _, dir := range all {
		_ = os.Remove(dir)
	}
}

func dirs(root string) []string {
	var found []string
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			found = append(found, path)
		}
		return nil
	})
	return found
}
