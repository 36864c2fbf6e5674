// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWithoutOursKeepsTheRulesOfOthers(t *testing.T) {
	rules := strings.Join([]string{
		"*filter",
		":FORWARD DROP [0:0]",
		":KUBE-FORWARD - [0:0]",
		":DOCKER-USER - [0:0]",
		"[1:2] -A FORWARD -j KUBE-FORWARD",
		"[1:2] -A FORWARD -j DOCKER-USER",
		"[0:0] -A FORWARD -j ESPALIER-FORWARD",
		"[0:0] -A DOCKER-USER -j RETURN",
		"COMMIT",
		"*nat",
		`-A POSTROUTING -s 10.244.0.2/32 -m comment --comment "name: \"espalier\"" -j CNI-0123`,
		"COMMIT", "",
	}, "\n")
	want := strings.Join([]string{
		"*filter",
		":FORWARD DROP [0:0]",
		":DOCKER-USER - [0:0]",
		"[1:2] -A FORWARD -j DOCKER-USER",
		"[0:0] -A DOCKER-USER -j RETURN",
		"COMMIT",
		"*nat",
		"COMMIT", "",
	}, "\n")
	kept, removed := withoutOurs(rules)
	if string(kept) != want || !removed {
		t.Errorf("removed %v, kept:\n%s", removed, kept)
	}
	if again, removed := withoutOurs(want); removed || string(again) != want {
		t.Error("touches rules of others alone")
	}
}

func TestMountPointsInnermostFirst(t *testing.T) {
	info := strings.Join([]string{
		"20 1 8:1 / / rw - ext4 /dev/a rw",
		"30 20 0:5 / /state/kubelet/pods/1/volumes rw - tmpfs tmpfs rw",
		"31 30 0:6 / /state/kubelet/pods/1/volumes/a\\040b rw - tmpfs tmpfs rw",
		"32 20 0:7 / /state-of-another rw - tmpfs tmpfs rw", "",
	}, "\n")
	got := mountPoints(info, "/state")
	want := []string{"/state/kubelet/pods/1/volumes/a b", "/state/kubelet/pods/1/volumes"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestMissingPackages(t *testing.T) {
	got := missingPackages(func(program string) (string, error) {
		if program == "runc" || program == "ip" {
			return "", errors.New("not found")
		}
		return "/bin/" + program, nil
	})
	if want := []string{"runc", "iproute2"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestRemoveResultsSparesOtherNetworks(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"espalier-abc-eth0", "cni-loopback-abc-lo", "other-def-eth0", "cni-loopback-def-lo"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	removeResults(dir, "espalier")
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(left) != 2 || filepath.Base(left[0]) != "cni-loopback-def-lo" || filepath.Base(left[1]) != "other-def-eth0" {
		t.Errorf("left %v", left)
	}
}

func TestRemoveLinksInto(t *testing.T) {
	dir := t.TempDir()
	for link, target := range map[string]string{"ours": "/state/pod-logs/x", "theirs": "/var/log/pods/x", "similar": "/state2/x"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	removeLinksInto(dir, "/state")
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(left) != 2 || filepath.Base(left[0]) != "similar" {
		t.Errorf("left %v", left)
	}
}

func TestRemoveDeadSockets(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"alive", "dead"} {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, name)})
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		if name == "dead" {
			listener.SetUnlinkOnClose(false)
			_ = listener.Close()
		}
	}
	removeDeadSockets(dir)
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(left) != 2 || filepath.Base(left[0]) != "alive" || filepath.Base(left[1]) != "file" {
		t.Errorf("left %v", left)
	}
}
