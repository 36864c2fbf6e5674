// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// writer writes results as YAML with comments.
type writer struct {
	namespace string
	// file that was imported.
	file string
	// reference: Secrets are not written.
	reference bool
	// apart: Secrets go to a file of their own.
	apart bool
}

type metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

type manifest struct {
	APIVersion string               `json:"apiVersion"`
	Kind       string               `json:"kind"`
	Metadata   metadata             `json:"metadata"`
	Spec       *mcpv1.MCPServerSpec `json:"spec,omitempty"`
}

// all writes the servers, and the Secrets where they go to a file of their
// own.
func (w *writer) all(results []*result) (servers, secrets string, err error) {
	var s, apart strings.Builder
	fmt.Fprintf(&s, "# Made by \"kubectl mcp import\" of %s.\n", w.file)
	for _, r := range results {
		if r.leftOut == "" && len(r.secret.keys) > 0 {
			text, err := w.secret(r)
			switch {
			case err != nil:
				return "", "", err
			case w.reference:
			case w.apart:
				apart.WriteString(text)
			default:
				s.WriteString(text)
			}
		}
		text, err := w.server(r)
		if err != nil {
			return "", "", err
		}
		s.WriteString(text)
	}
	return s.String(), apart.String(), nil
}

// server writes one; what is left out stands as a comment.
func (w *writer) server(r *result) (string, error) {
	var b strings.Builder
	if r.leftOut != "" {
		fmt.Fprintf(&b, "# %s is left out: %s.\n", printable(r.from), r.leftOut)
	} else if r.from != r.name {
		fmt.Fprintf(&b, "# %s\n", printable(r.from))
	}
	for _, note := range r.notes {
		fmt.Fprintf(&b, "# - %s.\n", note)
	}
	if r.leftOut == "" && w.reference {
		for _, k := range r.secret.keys {
			fmt.Fprintf(&b, "# - the Secret %s needs the key %s.\n", r.secret.name, k.key)
		}
	}
	out, err := yaml.Marshal(manifest{
		APIVersion: mcpv1.GroupVersion.String(), Kind: "MCPServer",
		Metadata: metadata{r.name, w.namespace}, Spec: &r.spec,
	})
	if err != nil {
		return "", err
	}
	if r.leftOut == "" {
		return "---\n" + b.String() + string(out), nil
	}
	if r.spec.Type != "" {
		b.WriteString("#\n")
		for line := range strings.Lines(string(out)) {
			b.WriteString("# " + line)
		}
	}
	return "\n" + b.String(), nil
}

// secret writes the Secret of one; keys that are not known stand as comments.
func (w *writer) secret(r *result) (string, error) {
	data := map[string]string{}
	var missing []kept
	for _, k := range r.secret.keys {
		if len(k.open) > 0 {
			missing = append(missing, k)
		} else {
			data[k.key] = k.value
		}
	}
	head, err := yaml.Marshal(manifest{APIVersion: "v1", Kind: "Secret", Metadata: metadata{r.secret.name, w.namespace}})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("---\n")
	b.Write(head)
	b.WriteString("type: Opaque\n")
	if len(data) > 0 {
		body, err := yaml.Marshal(map[string]any{"stringData": data})
		if err != nil {
			return "", err
		}
		b.Write(body)
	} else {
		b.WriteString("stringData: {}\n")
	}
	slices.SortFunc(missing, func(a, b kept) int { return strings.Compare(a.key, b.key) })
	for _, k := range missing {
		fmt.Fprintf(&b, "# Fill in %s: %s.\n", k.key, r.asked[k.key])
	}
	return b.String(), nil
}
