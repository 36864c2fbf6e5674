// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// Seal makes the file system of a pod's projected volume read-only, as a fault
// of it would. The kubelet that cannot write it makes another, which the
// containers that run do not see: they keep what they have until the pod is
// replaced. The spec is skipped where the tests do not run on the pod's node.
func Seal(pod *corev1.Pod, volume string) {
	GinkgoHelper()
	found, err := filepath.Glob("/var/lib/*/kubelet/pods/" + string(pod.UID) + "/volumes/kubernetes.io~projected/" + volume)
	Expect(err).NotTo(HaveOccurred())
	if len(found) != 1 || os.Getuid() != 0 {
		Skip("no volume " + volume + " of pod " + pod.Name + " on this machine: sealing needs root on its node")
	}
	Expect(syscall.Mount("", found[0], "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")).To(Succeed())
}
