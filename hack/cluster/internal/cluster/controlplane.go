// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/espalier-dev/espalier/hack/cluster/internal/proc"

// The components, by the names that logs and restart know them by.
const (
	etcd              = "etcd"
	apiServer         = "apiserver"
	controllerManager = "controller-manager"
	scheduler         = "scheduler"
)

func (c *Cluster) etcd(bins binaries) proc.Command {
	return c.command(etcd, bins.program(assetsSet, "etcd"),
		"--name="+nodeName,
		"--data-dir="+c.path("etcd"),
		"--listen-client-urls="+etcdURL,
		"--advertise-client-urls="+etcdURL,
		"--listen-peer-urls="+etcdPeerURL,
		"--initial-advertise-peer-urls="+etcdPeerURL,
		"--initial-cluster="+nodeName+"="+etcdPeerURL,
		"--log-level=warn",
		// A cluster that is thrown away after a crash of the machine need not survive it.
		"--unsafe-no-fsync",
	)
}

func (c *Cluster) apiServer(bins binaries) proc.Command {
	return c.command(apiServer, bins.program(assetsSet, "kube-apiserver"),
		"--etcd-servers="+etcdURL,
		"--bind-address="+nodeIP,
		"--advertise-address="+nodeIP,
		"--secure-port=6443",
		"--tls-cert-file="+c.pki("apiserver.crt"),
		"--tls-private-key-file="+c.pki("apiserver.key"),
		"--client-ca-file="+c.pki("ca.crt"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--service-cluster-ip-range="+serviceCIDR,
		"--service-account-issuer=https://kubernetes.default.svc."+domain,
		"--service-account-key-file="+c.pki("sa.pub"),
		"--service-account-signing-key-file="+c.pki("sa.key"),
		"--kubelet-certificate-authority="+c.pki("ca.crt"),
		"--kubelet-client-certificate="+c.pki("kubelet-client.crt"),
		"--kubelet-client-key="+c.pki("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		// Aggregated APIs, such as a metrics server's, are told the user by these.
		"--requestheader-client-ca-file="+c.pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+c.pki("front-proxy-client.crt"),
		"--proxy-client-key-file="+c.pki("front-proxy-client.key"),
		"--enable-aggregator-routing=true",
	)
}

func (c *Cluster) controllerManager(bins binaries) proc.Command {
	config := c.path("controller-manager.kubeconfig")
	return c.command(controllerManager, bins.program(assetsSet, "kube-controller-manager"),
		"--kubeconfig="+config,
		"--authentication-kubeconfig="+config,
		"--authorization-kubeconfig="+config,
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+c.pki("sa.key"),
		"--root-ca-file="+c.pki("ca.crt"),
		"--cluster-signing-cert-file="+c.pki("ca.crt"),
		"--cluster-signing-key-file="+c.pki("ca.key"),
		"--allocate-node-cidrs=true",
		"--cluster-cidr="+podCIDR,
		"--node-cidr-mask-size=24",
		"--service-cluster-ip-range="+serviceCIDR,
		"--horizontal-pod-autoscaler-sync-period=5s",
		"--kube-api-qps=100",
		"--kube-api-burst=200",
	)
}

func (c *Cluster) scheduler(bins binaries) proc.Command {
	config := c.path("scheduler.kubeconfig")
	return c.command(scheduler, bins.program(nodeSet, "kube-scheduler"),
		"--kubeconfig="+config,
		"--authentication-kubeconfig="+config,
		"--authorization-kubeconfig="+config,
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
	)
}

func (c *Cluster) command(name, path string, args ...string) proc.Command {
	return proc.Command{Name: name, Path: path, Args: args, Log: c.logFile(name)}
}
