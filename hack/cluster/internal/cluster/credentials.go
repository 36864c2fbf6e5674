// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/base64"
	"os"

	"github.com/espalier-dev/espalier/hack/cluster/internal/pki"
)

// clients are the certificates for users of the API server. Those with a kubeconfig of
// their own are named after the component.
var clients = []struct {
	name, user string
	groups     []string
	kubeconfig bool
}{
	{"admin", "kubernetes-admin", []string{"system:masters"}, true},
	{"controller-manager", "system:kube-controller-manager", nil, true},
	{"scheduler", "system:kube-scheduler", nil, true},
	{"kube-proxy", "system:kube-proxy", nil, true},
	{"kube-router", "system:kube-router", []string{"system:masters"}, true},
	{"kubelet", "system:node:" + nodeName, []string{"system:nodes"}, true},
	{"kubelet-client", "kube-apiserver-kubelet-client", []string{"system:masters"}, false},
}

func (c *Cluster) writeCredentials() error {
	dir := c.path("pki")
	authority, err := pki.NewAuthority(dir, "ca")
	if err != nil {
		return err
	}
	err = authority.Server("apiserver",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc."+domain,
		"localhost", "127.0.0.1", nodeIP, apiServiceIP)
	if err != nil {
		return err
	}
	if err := authority.Server("kubelet-server", nodeName, nodeIP); err != nil {
		return err
	}
	if err := c.writeClients(authority); err != nil {
		return err
	}
	if err := writeFrontProxy(dir); err != nil {
		return err
	}
	return pki.ServiceAccountKeys(dir, "sa")
}

func (c *Cluster) writeClients(authority *pki.Authority) error {
	for _, client := range clients {
		if err := authority.Client(client.name, client.user, client.groups...); err != nil {
			return err
		}
		if !client.kubeconfig {
			continue
		}
		if err := c.writeKubeconfig(client.name); err != nil {
			return err
		}
	}
	return nil
}

// writeFrontProxy makes the credentials with which the API server speaks to aggregated
// APIs, from an authority of their own: nobody else may assert a user's name.
func writeFrontProxy(dir string) error {
	authority, err := pki.NewAuthority(dir, "front-proxy-ca")
	if err != nil {
		return err
	}
	return authority.Client("front-proxy-client", "front-proxy-client")
}

// The certificates are embedded, so that a kubeconfig can be copied elsewhere.
const kubeconfigTemplate = `apiVersion: v1
kind: Config
clusters:
- name: espalier
  cluster:
    server: {{.Server}}
    certificate-authority-data: {{.CA}}
users:
- name: {{.User}}
  user:
    client-certificate-data: {{.Cert}}
    client-key-data: {{.Key}}
contexts:
- name: espalier
  context: {cluster: espalier, user: {{.User}}}
current-context: espalier
`

func (c *Cluster) writeKubeconfig(name string) error {
	values := map[string]string{"Server": apiServerURL, "User": name}
	for key, file := range map[string]string{"CA": "ca.crt", "Cert": name + ".crt", "Key": name + ".key"} {
		data, err := os.ReadFile(c.pki(file))
		if err != nil {
			return err
		}
		values[key] = base64.StdEncoding.EncodeToString(data)
	}
	return writeTemplate(c.path(name+".kubeconfig"), kubeconfigTemplate, values)
}
