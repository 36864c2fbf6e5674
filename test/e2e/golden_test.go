// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/gomega"
)

// goldenVariable of the environment makes tests write what they see.
const goldenVariable = "UPDATE_GOLDEN"

// expectGolden compares text with what is kept in testdata under folder and name.
func expectGolden(g Gomega, folder, name, text string) {
	path := filepath.Join("testdata", folder, name+".txt")
	if os.Getenv(goldenVariable) != "" {
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(text), 0o644)).To(Succeed())
		return
	}
	kept, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred(), "set %s=1 to keep it", goldenVariable)
	g.Expect(text).To(Equal(string(kept)), "%s differs (set %s=1 to keep the new one)", path, goldenVariable)
}

// What differs from run to run, and what stands for it.
var masks = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\b([a-z-]+-mcp)-[0-9a-f]{6,10}-[a-z0-9]{5}\b`), "$1-POD"},
	{regexp.MustCompile(`\b[0-9]+(s|m|h|d)([0-9]+(s|m|h))? ago\b`), "AGE ago"},
	{regexp.MustCompile(`, since [0-9dhms]+\.`), ", since AGE."},
	{regexp.MustCompile(`v1:sha256:[0-9a-f]{64}`), "DIGEST"},
	{regexp.MustCompile(`sha256:[0-9a-f]{64}`), "DIGEST"},
}

// masked is what a run prints of a namespace without what differs from run to
// run, and without evidence: the words of kubelets, schedulers and programs are
// theirs.
func masked(text, namespace string) string {
	text = strings.ReplaceAll(text, namespace, "team-a")
	for _, m := range masks {
		text = m.pattern.ReplaceAllString(text, m.by)
	}
	var out []string
	evidence := false
	for line := range strings.SplitSeq(text, "\n") {
		if line == "Evidence:" || line == "" {
			evidence = line != ""
		}
		if !evidence && !strings.HasPrefix(line, "    - ") && (line != "" || len(out) == 0 || out[len(out)-1] != "") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
