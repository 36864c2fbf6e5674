// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

// TestResume: a stream that ends in good order after an event with an id goes
// on in another; one without an id, or that breaks, fails at once.
func TestResume(t *testing.T) {
	const begun = "id: e-1\nretry: 1\ndata: \n\n"
	tests := map[string]struct {
		first  func(c *fakemcp.Call)
		gets   []string
		reason Reason
	}{
		"in good order": {first: func(c *fakemcp.Call) { c.Stream(begun) }, gets: []string{"e-1"}},
		"no id":         {first: func(c *fakemcp.Call) { c.Stream(": hello\n\n") }, reason: ConnectionLost},
		"broken": {first: func(c *fakemcp.Call) {
			c.Stream(begun)
			c.Drop()
		}, reason: ConnectionLost},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fake := fakemcp.New()
			web := httptest.NewServer(fake)
			t.Cleanup(web.Close)
			answer := make(chan string, 1)
			fake.On(mcp.MethodToolsCall, func(c *fakemcp.Call) {
				answer <- c.Response(map[string]any{"content": []any{}})
				test.first(c)
			})
			fake.On(fakemcp.GET, func(c *fakemcp.Call) { c.Stream(fakemcp.Data(<-answer)) })
			s := mustConnect(t, options(web.URL))
			_, err := s.Call(t.Context(), &Call{Tool: "alpha", Args: []byte("{}")})
			if test.reason == "" && err != nil || test.reason != "" && (err == nil || ReasonOf(err) != test.reason) {
				t.Errorf("got %v, want %q", err, test.reason)
			}
			var gets []string
			for _, r := range fake.Requests() {
				if r.HTTP == http.MethodGet {
					gets = append(gets, r.Header.Get("Last-Event-ID"))
				}
			}
			if fmt.Sprint(gets) != fmt.Sprint(test.gets) {
				t.Errorf("asked to go on after %q, want %q", gets, test.gets)
			}
		})
	}
}

// TestResumeEnds: a server that promises more each time and has nothing is
// given up.
func TestResumeEnds(t *testing.T) {
	fake := fakemcp.New()
	web := httptest.NewServer(fake)
	t.Cleanup(web.Close)
	var gets atomic.Int32
	fake.On(mcp.MethodToolsCall, func(c *fakemcp.Call) { c.Stream("id: same\nretry: 1\ndata: \n\n") })
	fake.On(fakemcp.GET, func(c *fakemcp.Call) {
		gets.Add(1)
		c.Stream("id: same\ndata: \n\n")
	})
	s := mustConnect(t, options(web.URL))
	if _, err := s.Call(t.Context(), &Call{Tool: "alpha", Args: []byte("{}")}); ReasonOf(err) != ConnectionLost {
		t.Errorf("got %v", err)
	}
	if n := gets.Load(); n != maxResumes {
		t.Errorf("%d streams", n)
	}
}

// TestDiscoverAgain: a modern server that refuses the version and names the
// same is asked once more, and never to initialize.
func TestDiscoverAgain(t *testing.T) {
	fake := fakemcp.New()
	fake.Settings.Modern, fake.Settings.Legacy = true, false
	web := httptest.NewServer(fake)
	t.Cleanup(web.Close)
	var asked atomic.Int32
	fake.On(mcp.MethodDiscover, func(c *fakemcp.Call) {
		if asked.Add(1) > 1 {
			c.WellBehaved()
			return
		}
		c.Error(http.StatusBadRequest, mcp.CodeUnsupportedProtocolVersion, "no", map[string]any{"supported": mcp.ModernVersions})
	})
	s := mustConnect(t, options(web.URL))
	if s.Version() != mcp.ModernVersions[0] {
		t.Errorf("version %q", s.Version())
	}
	for _, r := range fake.Requests() {
		if r.Method == mcp.MethodInitialize {
			t.Error("it was asked to initialize")
		}
	}
}
