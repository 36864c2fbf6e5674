// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/plugin/clientconfig"
	"github.com/espalier-dev/espalier/internal/plugin/operator"
)

var serverKind = mcpv1.GroupVersion.WithKind("MCPServer")

// write prints rows for programs. What a person has to know beside goes to
// standard error.
func (o *options) write(rows []Row, state operator.State) error {
	for _, namespace := range namespacesOf(rows) {
		if life := state.Of(namespace); life.Down() {
			fmt.Fprintf(o.ErrOut, "warning: %s\n", life)
			break
		}
	}
	if o.output == formatClientConfig {
		return o.writeClientConfig(rows)
	}
	printer := o.printer()
	if o.output == formatName || o.watch {
		for _, row := range rows {
			if err := printer.PrintObj(named(row.Server), o.Out); err != nil {
				return err
			}
		}
		return nil
	}
	if len(o.names) == 1 && len(rows) == 1 {
		return printer.PrintObj(named(rows[0].Server), o.Out)
	}
	list := &mcpv1.MCPServerList{}
	list.SetGroupVersionKind(mcpv1.GroupVersion.WithKind("MCPServerList"))
	list.Items = []mcpv1.MCPServer{}
	for _, row := range rows {
		list.Items = append(list.Items, *named(row.Server))
	}
	return printer.PrintObj(list, o.Out)
}

func (o *options) printer() printers.ResourcePrinter {
	var printer printers.ResourcePrinter
	switch o.output {
	case formatJSON:
		printer = &printers.JSONPrinter{}
	case formatYAML:
		printer = &printers.YAMLPrinter{}
	default:
		return &printers.NamePrinter{}
	}
	return &printers.OmitManagedFieldsPrinter{Delegate: printer}
}

// named is server with its kind, which typed clients leave out.
func named(server *mcpv1.MCPServer) *mcpv1.MCPServer {
	out := server.DeepCopy()
	out.TypeMeta = metav1.TypeMeta{APIVersion: mcpv1.GroupVersion.String(), Kind: serverKind.Kind}
	return out
}

// writeClientConfig prints what a client needs to connect. A URL for clients
// outside the cluster is preferred; the Service's is for those inside.
func (o *options) writeClientConfig(rows []Row) error {
	var entries []clientconfig.Entry
	taken := map[string]int{}
	for _, row := range rows {
		taken[row.Server.Name]++
	}
	for _, row := range rows {
		server := row.Server
		url := server.Spec.PublicURL
		if url == "" {
			url = server.Status.URL
			switch {
			case url == "":
				fmt.Fprintf(o.ErrOut, "%s/%s has no URL yet, and is left out.\n", server.Namespace, server.Name)
				continue
			case server.Spec.Type != mcpv1.TypeExternal:
				fmt.Fprintf(o.ErrOut, "%s/%s has no spec.publicURL: its URL works inside the cluster. From elsewhere use \"kubectl mcp config\".\n", server.Namespace, server.Name)
			}
		}
		if server.Spec.Auth != nil || row.Reason == mcpv1.ReasonAuthRequired {
			fmt.Fprintf(o.ErrOut, "%s/%s wants a credential: give the client one.\n", server.Namespace, server.Name)
		}
		name := server.Name
		if taken[name] > 1 {
			name = server.Namespace + "-" + name
		}
		entries = append(entries, clientconfig.Entry{Name: name, URL: url})
	}
	text, err := clientconfig.Generic(entries)
	if err != nil {
		return err
	}
	_, err = o.Out.Write(text)
	return err
}

func namespacesOf(rows []Row) []string {
	out := make([]string, 0, len(rows))
	for _, row := range rows {
		out = append(out, row.Server.Namespace)
	}
	return out
}
