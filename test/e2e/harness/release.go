// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// InstallationsVariable names the folder that hack/lib/installations.sh makes.
const InstallationsVariable = "E2E_INSTALLATIONS"

var (
	serverFlag   = regexp.MustCompile(`--server-image=(\S+)`)
	managerImage = regexp.MustCompile(`image: (\S+/manager\S*)`)
)

// Release is all that an installation of the operator by kubectl applies.
type Release struct {
	YAML string
	// Manager and Server are the images of the operator and the shared server.
	Manager, Server string
}

// Release reads one of the folder.
func (c *Cluster) Release(name string) Release {
	GinkgoHelper()
	raw := installation(name + ".yaml")
	server, manager := serverFlag.FindStringSubmatch(raw), managerImage.FindStringSubmatch(raw)
	Expect(server).NotTo(BeNil(), "%s says no server image", name)
	Expect(manager).NotTo(BeNil(), "%s says no image of the operator", name)
	return Release{YAML: raw, Manager: manager[1], Server: server[1]}
}

// installation reads a file of the folder.
func installation(name string) string {
	GinkgoHelper()
	folder := os.Getenv(InstallationsVariable)
	Expect(folder).NotTo(BeEmpty(), InstallationsVariable+" is not set: run 'make test-e2e'")
	raw, err := os.ReadFile(filepath.Join(folder, name))
	Expect(err).NotTo(HaveOccurred(), "hack/e2e.sh makes it; what soaks alone need with E2E_SOAK=1")
	return string(raw)
}

// Before is what an upgrade begins with: the commit before this one.
type Before struct {
	// Commit is which one it is, for people.
	Commit string
	// Chart is the folder of its own chart.
	Chart string
	// Installation names its operator, and the shared server of this tree: what
	// is upgraded is the operator alone.
	*Installation
}

// Before reads it.
func (in *Installation) Before() *Before {
	GinkgoHelper()
	return &Before{
		Commit: strings.TrimSpace(installation("before/commit")), Chart: filepath.Join(os.Getenv(InstallationsVariable), "before", "chart"),
		Installation: in.WithManager(strings.TrimSpace(installation("before/manager"))),
	}
}

// WithServer is the installation with the server image of another.
func (i Release) WithServer(other Release) Release {
	return i.WithServerImage(other.Server)
}

// WithServerImage is the installation with another server image.
func (i Release) WithServerImage(image string) Release {
	return Release{YAML: strings.ReplaceAll(i.YAML, i.Server, image), Manager: i.Manager, Server: image}
}

// ApplyRelease applies one and waits until its operator leads.
func (c *Cluster) ApplyRelease(ctx context.Context, i Release) {
	GinkgoHelper()
	_, err := c.kubectl(ctx, i.YAML, "apply", "--server-side", "--force-conflicts", "--filename=-")
	Expect(err).NotTo(HaveOccurred())
	_, err = c.kubectl(ctx, "", "--namespace", OperatorNamespace, "rollout", "status", "deployment/"+OperatorDeployment, "--timeout="+OperatorTimeout.String())
	Expect(err).NotTo(HaveOccurred())
	c.AwaitOperator(ctx)
}
