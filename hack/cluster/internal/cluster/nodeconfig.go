// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	_ "embed"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed manifests/containerd.toml
var containerdConfig string

//go:embed manifests/kubelet.yaml
var kubeletConfig string

//go:embed manifests/cni.conflist
var cniConfig string

// nodeValues are what the templates of the node's files refer to.
type nodeValues struct {
	Dir, Socket, CNIBin, PauseImage string
	CNINetwork, Bridge, NodePodCIDR string
	NodeIP, DNSServiceIP, Domain    string
}

func (c *Cluster) nodeValues(bins binaries) nodeValues {
	return nodeValues{
		Dir: c.Dir, Socket: c.socket(), CNIBin: bins[containerdSet.Name], PauseImage: pauseImage,
		CNINetwork: cniNetwork, Bridge: bridge, NodePodCIDR: nodePodCIDR,
		NodeIP: nodeIP, DNSServiceIP: dnsServiceIP, Domain: domain,
	}
}

func (c *Cluster) writeNodeConfig(bins binaries) error {
	values := c.nodeValues(bins)
	for path, text := range map[string]string{
		c.path("containerd.toml"):                     containerdConfig,
		c.path("kubelet.yaml"):                        kubeletConfig,
		c.path("cni", "conf", "10-espalier.conflist"): cniConfig,
	} {
		if err := writeTemplate(path, text, values); err != nil {
			return err
		}
	}
	return writeFile(c.path("resolv.conf"), resolvConf())
}

func render(text string, values any) ([]byte, error) {
	parsed, err := template.New("").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	err = parsed.Execute(&buffer, values)
	return buffer.Bytes(), err
}

func writeTemplate(path, text string, values any) error {
	data, err := render(text, values)
	if err != nil {
		return err
	}
	return writeFile(path, data)
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}
