// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"testing"
)

func toolOf(t *testing.T, definition string) Tool {
	t.Helper()
	tool, err := Of([]byte(definition))
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func TestPinBroken(t *testing.T) {
	promised := toolOf(t, `{"name":"q","description":"Query.","inputSchema":{"type":"object"}}`)
	reworded := toolOf(t, `{"name":"q","description":"Query all.","inputSchema":{"type":"object"}}`)
	titled := toolOf(t, `{"name":"q","title":"Q","description":"Query.","inputSchema":{"type":"object"}}`)
	schema := Fields{InputSchema: promised.Fields.InputSchema}
	tests := map[string]struct {
		pin   Pin
		found Tool
		parts []string
		want  bool
	}{
		"the same":                        {Pin{Name: "q", Digest: promised.Digest}, promised, nil, false},
		"another":                         {Pin{Name: "q", Digest: promised.Digest}, reworded, nil, true},
		"another, and where":              {Pin{Name: "q", Digest: promised.Digest, Fields: promised.Fields}, reworded, []string{"description"}, true},
		"a part that was absent":          {Pin{Name: "q", Digest: promised.Digest, Fields: promised.Fields}, titled, []string{"title"}, true},
		"only the schema is pinned":       {Pin{Name: "q", Fields: schema}, reworded, nil, false},
		"a pinned part that is another":   {Pin{Name: "q", Fields: Fields{Description: promised.Fields.Description}}, reworded, []string{"description"}, true},
		"a pinned part that is not there": {Pin{Name: "q", Fields: Fields{Title: titled.Fields.Title}}, promised, []string{"title"}, true},
		"nothing of the tool is pinned":   {Pin{Name: "q", UpstreamDigest: promised.Digest}, reworded, nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			parts, broken := test.pin.Broken(test.found)
			if broken != test.want || !slices.Equal(parts, test.parts) {
				t.Errorf("broken %t in %v, want %t in %v", broken, parts, test.want, test.parts)
			}
		})
	}
}

func TestPinConsistent(t *testing.T) {
	tool := toolOf(t, `{"name":"q","description":"Query."}`)
	for _, test := range []struct {
		pin  Pin
		want bool
	}{
		{Pin{Name: "q", Digest: tool.Digest, Fields: tool.Fields}, true},
		{Pin{Name: "q", Digest: tool.Digest}, true},
		{Pin{Name: "q", Fields: tool.Fields}, true},
		{Pin{Name: "r", Digest: tool.Digest, Fields: tool.Fields}, false},
		{Pin{Name: "q", Digest: tool.Digest, Fields: Fields{Title: tool.Fields.Description}}, false},
	} {
		if got := test.pin.Consistent(); got != test.want {
			t.Errorf("%+v: %t", test.pin, got)
		}
	}
}
