// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/credentials"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/openapi"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

func TestOperation(t *testing.T) {
	query := func(style openapi.Style, explode bool) openapi.Param {
		return openapi.Param{Arg: "a", Name: "n a", In: openapi.InQuery, Style: style, Explode: explode}
	}
	other := openapi.Param{Arg: "b", Name: "b", In: openapi.InQuery, Style: openapi.StyleForm, Explode: true}
	path := func(explode bool) openapi.Param {
		return openapi.Param{Arg: "id", Name: "id", In: openapi.InPath, Style: openapi.StyleSimple, Explode: explode}
	}
	header := openapi.Param{Arg: "h", Name: "X-H", In: openapi.InHeader, Style: openapi.StyleSimple}
	tests := []struct {
		name   string
		params []openapi.Param
		body   *openapi.Body
		args   string
		// want is path, query, header and body; or the reason of a refusal.
		want   [4]string
		reason call.Reason
	}{
		{"number", []openapi.Param{query(openapi.StyleForm, true)}, nil, `{"a":1.50}`, [4]string{"/x", "n+a=1.5"}, ""},
		{"list", []openapi.Param{query(openapi.StyleForm, true)}, nil, `{"a":["x&y",null,true]}`, [4]string{"/x", "n+a=x%26y&n+a=true"}, ""},
		{"list by commas", []openapi.Param{query(openapi.StyleForm, false)}, nil, `{"a":[1,"2,3"]}`, [4]string{"/x", "n+a=1,2%2C3"}, ""},
		{"list by spaces", []openapi.Param{query(openapi.StyleSpace, false)}, nil, `{"a":[1,2]}`, [4]string{"/x", "n+a=1%202"}, ""},
		{"list by pipes", []openapi.Param{query(openapi.StylePipe, false)}, nil, `{"a":[1,2]}`, [4]string{"/x", "n+a=1%7C2"}, ""},
		{"empty list", []openapi.Param{query(openapi.StyleForm, false)}, nil, `{"a":[]}`, [4]string{"/x"}, ""},
		{"null and absent", []openapi.Param{query(openapi.StyleForm, true), other}, nil, `{"a":null}`, [4]string{"/x"}, ""},
		{"object", []openapi.Param{query(openapi.StyleForm, true)}, nil, `{"a":{"k":1,"j":[2]}}`, [4]string{"/x", "j=%5B2%5D&k=1"}, ""},
		{"object by commas", []openapi.Param{query(openapi.StyleForm, false)}, nil, `{"a":{"k":1,"j":"&"}}`, [4]string{"/x", "n+a=j,%26,k,1"}, ""},
		{"object in another's place", []openapi.Param{query(openapi.StyleForm, true), other}, nil, `{"a":{"b":1}}`, [4]string{}, call.InvalidArguments},
		{"deep object", []openapi.Param{query(openapi.StyleDeep, true)}, nil, `{"a":{"k":{"l":1},"m":[1,2]}}`, [4]string{"/x", "n+a%5Bk%5D%5Bl%5D=1&n+a%5Bm%5D=1&n+a%5Bm%5D=2"}, ""},
		{"JSON", []openapi.Param{query(openapi.StyleJSON, false)}, nil, `{"a":{"k":"<&>"}}`, [4]string{"/x", "n+a=%7B%22k%22%3A%22%3C%26%3E%22%7D"}, ""},
		{"path", []openapi.Param{path(false)}, nil, `{"id":"a/b ?"}`, [4]string{"/x/a%2Fb%20%3F"}, ""},
		{"list in the path", []openapi.Param{path(false)}, nil, `{"id":[1,2]}`, [4]string{"/x/1%2C2"}, ""},
		{"object in the path", []openapi.Param{path(true)}, nil, `{"id":{"a":1}}`, [4]string{"/x/a=1"}, ""},
		{"out of the path", []openapi.Param{path(false)}, nil, `{"id":"../y"}`, [4]string{}, call.InvalidArguments},
		{"nothing in the path", []openapi.Param{path(false)}, nil, `{"id":""}`, [4]string{}, call.InvalidArguments},
		{"header", []openapi.Param{header}, nil, `{"h":[1,"b"]}`, [4]string{"/x", "", "1,b"}, ""},
		{"line break in a header", []openapi.Param{header}, nil, `{"h":"a\nb"}`, [4]string{}, call.InvalidArguments},
		{"JSON body as it was written", nil, &openapi.Body{Arg: "a", Kind: openapi.BodyJSON}, `{"a": {"z":1.0,"b":12345678901234567890}}`, [4]string{"/x", "", "", `{"z":1.0,"b":12345678901234567890}`}, ""},
		{"null body", nil, &openapi.Body{Arg: "a", Kind: openapi.BodyJSON}, `{"a":null}`, [4]string{"/x", "", "", `null`}, ""},
		{"text body", nil, &openapi.Body{Arg: "a", MediaType: "text/plain", Kind: openapi.BodyText}, `{"a":"b"}`, [4]string{"/x", "", "", "b"}, ""},
		{"form that is none", nil, &openapi.Body{Arg: "a", Kind: openapi.BodyForm}, `{"a":"b"}`, [4]string{}, call.InvalidArguments},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			backend := newRecorder(t, nil)
			request := &openapi.Request{Method: "POST", URL: backend.URL + "/x", Params: tt.params, Body: tt.body}
			if len(tt.params) > 0 && tt.params[0].In == openapi.InPath {
				request.URL += "/{id}"
			}
			handler, err := NewFactory(credentials.New(t.TempDir()), "test").Operation("tool", request, &serverconfig.Connection{})
			if err != nil {
				t.Fatal(err)
			}
			args, err := wire.Decode([]byte(tt.args))
			if err != nil {
				t.Fatal(err)
			}
			_, err = handler.Call(context.Background(), &call.Call{Args: args.(map[string]any), RawArgs: []byte(tt.args), MaxBytes: 1 << 20, Caller: principal.Nobody()})
			if tt.reason != "" {
				if reason(err) != tt.reason || len(backend.requests()) > 0 {
					t.Fatalf("got %v after %d requests", err, len(backend.requests()))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := backend.requests()[0]
			if diff := cmp.Diff(tt.want, [4]string{got.Path, got.Query, got.Header.Get("X-H"), got.Body}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOperationHeaders(t *testing.T) {
	backend := newRecorder(t, nil)
	fixed := "ours"
	handler, err := NewFactory(credentials.New(t.TempDir()), "test").Operation("tool", &openapi.Request{
		Method: "GET", URL: backend.URL, Params: []openapi.Param{{Arg: "h", Name: "x-key", In: openapi.InHeader, Style: openapi.StyleSimple}},
	}, &serverconfig.Connection{Headers: []serverconfig.Value{{Name: "X-Key", Value: &fixed}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := handler.Call(context.Background(), &call.Call{Args: map[string]any{"h": "theirs"}, MaxBytes: 1 << 20, Caller: principal.Nobody()}); err != nil {
		t.Fatal(err)
	}
	if got := backend.requests()[0].Header["X-Key"]; len(got) != 1 || got[0] != fixed {
		t.Errorf("sent %q", got)
	}
}
