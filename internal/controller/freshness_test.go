// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// TestOwnWrites: an object is behind until the cache has this controller's own
// write of it or a later one; a namesake and an unknown object are not.
func TestOwnWrites(t *testing.T) {
	at := func(uid, version string) *mcpv1.MCPTool {
		return &mcpv1.MCPTool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: types.UID(uid), ResourceVersion: version}}
	}
	for name, test := range map[string]struct {
		cached *mcpv1.MCPTool
		want   bool
	}{
		"before the write":   {at("1", "99"), true},
		"the write":          {at("1", "100"), false},
		"a later one":        {at("1", "1000"), false},
		"a namesake":         {at("2", "99"), false},
		"no number":          {at("1", "x"), false},
		"fewer digits count": {at("1", "9"), true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newOwnWrites()
			if w.behind(test.cached) {
				t.Error("behind without a write")
			}
			w.note(at("1", "100"))
			if got := w.behind(test.cached); got != test.want {
				t.Errorf("behind is %v, want %v", got, test.want)
			}
			w.forget(client.ObjectKeyFromObject(test.cached))
			if w.behind(test.cached) {
				t.Error("behind after it was forgotten")
			}
		})
	}
}
