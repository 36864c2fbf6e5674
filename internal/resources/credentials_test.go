// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/espalier-dev/espalier/internal/catalog"
)

// TestCredentials walks through DESIGN's rules: the first tool that names a
// Secret rolls the pods once; what is mounted stays until the next rollout.
func TestCredentials(t *testing.T) {
	a, b, other := secret("a", "k"), secret("b", "k"), secret("a", "k2")
	whole := secret("keys", "") // of API keys
	steps := []struct {
		name   string
		refs   []catalog.Ref
		change func(*TemplateInput, *Options)
		rolls  bool
		mounts Mounts
	}{
		{"no tool names one", nil, nil, true, nil}, // the first Deployment
		{"nothing changes", nil, nil, false, nil},
		{"the first tool", []catalog.Ref{a}, nil, true, Mounts{a}},
		{"a second one with that key", []catalog.Ref{a}, nil, false, Mounts{a}},
		{"another Secret", []catalog.Ref{a, b}, nil, true, Mounts{a, b}},
		{"one of two goes", []catalog.Ref{b}, nil, false, Mounts{a, b}},
		{"both go", nil, nil, false, Mounts{a, b}},
		{"one comes back", []catalog.Ref{a}, nil, false, Mounts{a, b}},
		{"another key of a mounted Secret", []catalog.Ref{a, other}, nil, true, Mounts{a, other}},
		{"none needed", nil, nil, false, Mounts{a, other}},
		{"replicas are no rollout", nil, func(in *TemplateInput, _ *Options) {
			three := int32(3)
			in.Server = in.Server.DeepCopy()
			in.Server.Spec.Replicas = &three
		}, false, Mounts{a, other}},
		{"a rollout for another reason drops it", nil, func(in *TemplateInput, _ *Options) { in.EnvDigest = "new" }, true, nil},
		{"a whole Secret", []catalog.Ref{a, whole}, nil, true, Mounts{a, whole}},
		{"another whole Secret", []catalog.Ref{a, secret("keys2", "")}, nil, true, Mounts{a, secret("keys2", "")}},
		{"a whole Secret alone", []catalog.Ref{whole}, nil, true, Mounts{whole}},
		{"one key of it is another mount", []catalog.Ref{whole, secret("keys", "k")}, nil, true, Mounts{whole, secret("keys", "k")}},
		{"a new server image with one needed", []catalog.Ref{b}, func(_ *TemplateInput, o *Options) { o.ServerImage = "new" }, true, Mounts{b}},
	}
	in, o := TemplateInput{Server: server(t, `{}`)}, options()
	var live *appsv1.Deployment
	for _, step := range steps {
		in.Refs = step.refs
		if step.change != nil {
			step.change(&in, &o)
		}
		d, err := o.Deployment(in, live)
		if err != nil {
			t.Fatal(err)
		}
		rolls := live == nil || Hash(d.Spec.Template) != Hash(live.Spec.Template)
		if rolls != step.rolls {
			t.Errorf("%s: rolls %v, want %v", step.name, rolls, step.rolls)
		}
		got := MountsOf(&d.Spec.Template.Spec)
		if diff := cmp.Diff(step.mounts, got); diff != "" {
			t.Errorf("%s: mounts (-want +got):\n%s", step.name, diff)
		}
		if !got.Covers(step.refs) {
			t.Errorf("%s: %v are not mounted", step.name, step.refs)
		}
		live = d
	}
}

// TestCredentialsFirst: a Deployment that is made with credentials mounts them
// at once, and the same input then changes nothing.
func TestCredentialsFirst(t *testing.T) {
	in := TemplateInput{Server: server(t, `{}`), Refs: []catalog.Ref{configMap("ca", "x"), secret("a", "k")}}
	first, err := options().Deployment(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := options().Deployment(in, first)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("(-first +again):\n%s", diff)
	}
}

func TestMountsCover(t *testing.T) {
	mounts := Mounts(catalog.SortRefs([]catalog.Ref{secret("a", "k"), secret("b", "k"), configMap("a", "k")}))
	tests := map[string]struct {
		refs []catalog.Ref
		want bool
	}{
		"nothing":        {nil, true},
		"all":            {mounts, true},
		"one":            {[]catalog.Ref{secret("b", "k")}, true},
		"another key":    {[]catalog.Ref{secret("b", "k2")}, false},
		"another kind":   {[]catalog.Ref{configMap("b", "k")}, false},
		"one is missing": {[]catalog.Ref{secret("a", "k"), secret("c", "k")}, false},
	}
	for name, test := range tests {
		if got := mounts.Covers(test.refs); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
