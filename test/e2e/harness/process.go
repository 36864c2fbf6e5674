// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// Freeze stops the processes of the pod's containers by SIGSTOP: they keep
// their sockets and answer nothing. It returns what thaws them, and skips the
// spec where the tests do not run on the pod's node.
func Freeze(pod *corev1.Pod) (thaw func()) {
	GinkgoHelper()
	pids := processesOf(pod)
	if len(pids) == 0 {
		Skip("no process of pod " + pod.Name + " on this machine: freezing needs root on its node")
	}
	for _, pid := range pids {
		Expect(syscall.Kill(pid, syscall.SIGSTOP)).To(Succeed())
	}
	thaw = func() {
		for _, pid := range pids {
			// The kubelet may have killed it meanwhile.
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	DeferCleanup(thaw)
	return thaw
}

// Kill kills the processes of the pod's containers, as a crash would.
func Kill(pod *corev1.Pod) {
	GinkgoHelper()
	pids := processesOf(pod)
	if len(pids) == 0 {
		Skip("no process of pod " + pod.Name + " on this machine: killing needs root on its node")
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// processesOf are the pod's processes but for its sandbox. A control group
// carries the pod's UID, with '_' for '-' under the systemd driver.
func processesOf(pod *corev1.Pod) []int {
	uid := string(pod.UID)
	names := [][]byte{[]byte("pod" + uid), []byte("pod" + strings.ReplaceAll(uid, "-", "_"))}
	groups, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	var pids []int
	for _, group := range groups {
		raw, err := os.ReadFile(group)
		if err != nil || (!bytes.Contains(raw, names[0]) && !bytes.Contains(raw, names[1])) {
			continue
		}
		dir := filepath.Dir(group)
		if comm, _ := os.ReadFile(filepath.Join(dir, "comm")); strings.TrimSpace(string(comm)) == "pause" {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
