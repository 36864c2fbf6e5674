// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/hack/cluster/internal/build"
)

func newCluster(t *testing.T) *Cluster {
	t.Setenv("ESPALIER_CLUSTER_DIR", t.TempDir())
	t.Setenv("ESPALIER_CACHE", t.TempDir())
	c, err := New(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSetsNameTheVersionsOfTheirModules holds the versions written here, which become
// image tags and what programs say of themselves, to those that are really built.
func TestSetsNameTheVersionsOfTheirModules(t *testing.T) {
	for module, line := range map[string]string{
		"kubernetes":     "k8s.io/kubernetes " + kubernetesVersion,
		"containerd":     "github.com/containerd/containerd/v2 " + containerdVersion,
		"coredns":        "github.com/coredns/coredns " + coreDNSVersion,
		"metrics-server": "sigs.k8s.io/metrics-server " + metricsVersion,
	} {
		data, err := os.ReadFile(filepath.Join("..", "..", "tools", module, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), line) {
			t.Errorf("%s does not require %q", module, line)
		}
	}
}

func TestEverySetHasItsModule(t *testing.T) {
	for _, set := range append([]build.Set{routerSet, metricsSet}, sets...) {
		if _, err := os.Stat(filepath.Join("..", "..", set.Dir, "go.mod")); err != nil {
			t.Errorf("%s: %v", set.Name, err)
		}
	}
}

func TestNodeConfigStaysInTheStateFolder(t *testing.T) {
	c := newCluster(t)
	if err := c.writeNodeConfig(binaries{containerdSet.Name: "/programs"}); err != nil {
		t.Fatal(err)
	}
	var cni struct{ Plugins []struct{ Type string } }
	data, err := os.ReadFile(c.path("cni", "conf", "10-espalier.conflist"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &cni); err != nil || len(cni.Plugins) != 2 {
		t.Errorf("%v in %s", err, data)
	}
	toml, err := os.ReadFile(c.path("containerd.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(toml)) {
		if strings.Contains(line, "/") && !strings.Contains(line, c.Dir) && !strings.Contains(line, "/programs") && !strings.Contains(line, pauseImage) {
			t.Errorf("a path outside the state folder: %s", line)
		}
	}
}

func TestCredentials(t *testing.T) {
	c := newCluster(t)
	if err := c.writeCredentials(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.api(); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(c.Kubeconfig())
	if err != nil || !strings.Contains(string(data), apiServerURL) {
		t.Errorf("kubeconfig: %v\n%s", err, data)
	}
}

func TestUsableNameservers(t *testing.T) {
	conf := "# comment\nsearch example.test\nnameserver 127.0.0.53\nnameserver ::1\nnameserver 192.0.2.7\nnameserver fd00::1\n"
	want := "nameserver 192.0.2.7\nnameserver fd00::1\n"
	if got := string(usableNameservers([]byte(conf))); got != want {
		t.Errorf("got %q", got)
	}
	if got := usableNameservers([]byte("nameserver 127.0.0.1\n")); len(got) != 0 {
		t.Errorf("got %q", got)
	}
}

func TestDNSManifestWithoutNameservers(t *testing.T) {
	values := map[string]any{"Domain": domain, "DNSServiceIP": dnsServiceIP, "Image": coreDNSImage, "Forward": false}
	got, err := render(dnsManifest, values)
	if err != nil || strings.Contains(string(got), "forward") {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("a\nb\nc\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := tail(path, 2); got != "b\nc" {
		t.Errorf("got %q", got)
	}
}
