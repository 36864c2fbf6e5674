// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
)

// registrationKind is what is different between the kinds of registrations.
// All else treats them alike.
type registrationKind struct {
	kind catalog.Kind
	// name of the controller, and plural for messages.
	name, resource string
	object         func() mcpv1.Registration
	list           func() client.ObjectList
	// describe sets what the status of this kind alone has.
	describe func(mcpv1.Registration)
}

var registrationKinds = []registrationKind{
	{
		catalog.KindTool, "mcptool", "mcptools",
		func() mcpv1.Registration { return &mcpv1.MCPTool{} },
		func() client.ObjectList { return &mcpv1.MCPToolList{} },
		describe(func(t *mcpv1.MCPTool) {
			t.Status.ToolName, t.Status.Handler = catalog.ToolName(t), catalog.Handler(t)
		}),
	},
	{
		catalog.KindResource, "mcpresource", "mcpresources",
		func() mcpv1.Registration { return &mcpv1.MCPResource{} },
		func() client.ObjectList { return &mcpv1.MCPResourceList{} },
		describe(func(r *mcpv1.MCPResource) {
			r.Status.URI, r.Status.Source = catalog.ResourceURI(r), catalog.ResourceSource(r)
		}),
	},
	{
		catalog.KindPrompt, "mcpprompt", "mcpprompts",
		func() mcpv1.Registration { return &mcpv1.MCPPrompt{} },
		func() client.ObjectList { return &mcpv1.MCPPromptList{} },
		describe(func(p *mcpv1.MCPPrompt) { p.Status.PromptName = catalog.PromptName(p) }),
	},
}

// describe is f for the objects of its kind.
func describe[T mcpv1.Registration](f func(T)) func(mcpv1.Registration) {
	return func(r mcpv1.Registration) {
		if t, ok := r.(T); ok {
			f(t)
		}
	}
}

// naming reads from the cache what names the server by serverRefs, and all
// that selects servers by label.
func (k *registrationKind) naming(ctx context.Context, reader client.Reader, namespace, server string) ([]mcpv1.Registration, error) {
	var out []mcpv1.Registration
	for _, value := range []string{server, indexSelector} {
		list := k.list()
		if err := reader.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{indexServers: value}); err != nil {
			return nil, err
		}
		items, err := objects(list)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if r, ok := item.(mcpv1.Registration); ok {
				out = append(out, r)
			}
		}
	}
	return out, nil
}
