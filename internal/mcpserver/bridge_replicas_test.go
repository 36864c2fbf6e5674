// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/peers"
)

// turning sends each request to the next replica.
type turning struct {
	fleet *fleet
	next  atomic.Int64
}

func (t *turning) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	replica := t.fleet.replicas[int(t.next.Add(1))%len(t.fleet.replicas)]
	r.URL.Host = replica.server.Addr().String()
	return replica.client.Transport.RoundTrip(r)
}

// TestQuestionsCrossReplicas: clients of both eras before servers of both eras,
// each request at another replica than the one before.
func TestQuestionsCrossReplicas(t *testing.T) {
	for _, upstream := range []bool{false, true} {
		for _, version := range []string{mcp.Version20251125, mcp.Version20260728} {
			t.Run(fmt.Sprintf("modern upstream %t, client %s", upstream, version), func(t *testing.T) {
				_, u := inquirer(t, upstream)
				f := startFleet(t, fronting(u), hurried)
				for _, replica := range f.replicas {
					replica.lists("ask", "own")
				}
				web := &http.Client{Transport: &turning{fleet: f}}
				clients := []*asked{f.replicas[0].asked("a", version, web), f.replicas[0].asked("b", version, web)}
				var work sync.WaitGroup
				for i := range 6 {
					for _, c := range clients {
						work.Go(func() { c.call(i, false) })
					}
				}
				work.Wait()
			})
		}
	}
}

// asking makes a call of "ask" by a modern client that can be asked; more are
// members of its params, with a comma before them.
func (f *fixture) asking(more string) *http.Request {
	const declared = `"_meta":{"` + mcp.MetaProtocolVersion + `":"` + mcp.Version20260728 + `","` + mcp.MetaClientCapabilities + `":{"elicitation":{}}}`
	r := f.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"who":"a/1"},` + declared + more + `}}`)
	r.Header.Set("Mcp-Protocol-Version", mcp.Version20260728)
	r.Header.Set("Mcp-Method", "tools/call")
	r.Header.Set("Mcp-Name", "ask")
	return r
}

// parkedAt begins a call at a replica and gives the raw state with which its
// question came.
func parkedAt(t *testing.T, f *fixture) string {
	t.Helper()
	got := f.do(f.asking(""))
	state, err := json.Marshal(got.result()["requestState"])
	must(t, err)
	if owner, _, ok := call.ParkedIn(state); !ok || owner != peers.Hash(f.server.InternalAddr().String()) {
		t.Fatalf("parked as %s: %s", state, got.body)
	}
	return string(state)
}

// TestOwnerOfQuestionIsGone: the caller hears that it has to call again; one
// that is there still answers at any replica, once.
func TestOwnerOfQuestionIsGone(t *testing.T) {
	_, u := inquirer(t, false)
	f := startFleet(t, fronting(u), hurried)
	for _, replica := range f.replicas {
		replica.lists("ask", "own")
	}
	a, b := f.replicas[0], f.replicas[1]
	retry := func(at *fixture, state string) answer {
		return at.do(at.asking(`,"inputResponses":{"q1":{"action":"accept","content":{"name":"Mx"}}},"requestState":` + state))
	}
	there := parkedAt(t, a)
	if got := retry(b, there); got.text() != "hello Mx" {
		t.Errorf("from the other replica: %s", got.body)
	}
	if got := retry(b, there); got.reason() != string(call.QuestionExpired) {
		t.Errorf("twice: %s", got.body)
	}
	gone := parkedAt(t, a)
	if got := retry(b, string(call.ParkedState("nobody", strings.Repeat("A", 26)))); got.reason() != string(call.QuestionExpired) {
		t.Errorf("there never was an owner: %s", got.body)
	}
	f.remove(0)
	must(t, a.server.Stop(t.Context()))
	if got := retry(b, gone); got.reason() != string(call.QuestionExpired) || !strings.Contains(got.text(), "call again") {
		t.Errorf("the owner is gone: %s", got.body)
	}
}
