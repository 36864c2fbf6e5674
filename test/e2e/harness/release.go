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

var serverFlag = regexp.MustCompile(`--server-image=(\S+)`)

// Release is all that an installation of the operator by kubectl applies.
type Release struct {
	YAML string
	// Server is the image of the shared server.
	Server string
}

// Release reads one of the folder. The spec is skipped where there is none.
func (c *Cluster) Release(name string) Release {
	GinkgoHelper()
	folder := os.Getenv(InstallationsVariable)
	if folder == "" {
		Skip(InstallationsVariable + " is not set: hack/e2e.sh makes installations with E2E_SOAK=1")
	}
	raw, err := os.ReadFile(filepath.Join(folder, name+".yaml"))
	Expect(err).NotTo(HaveOccurred())
	found := serverFlag.FindSubmatch(raw)
	Expect(found).NotTo(BeNil(), "%s says no server image", name)
	return Release{YAML: string(raw), Server: string(found[1])}
}

// WithServer is the installation with the server image of another.
func (i Release) WithServer(other Release) Release {
	return i.WithServerImage(other.Server)
}

// WithServerImage is the installation with another server image.
func (i Release) WithServerImage(image string) Release {
	return Release{YAML: strings.ReplaceAll(i.YAML, i.Server, image), Server: image}
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
