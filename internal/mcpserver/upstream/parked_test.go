// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

func reasonOf(err error) call.Reason {
	var failure *call.Error
	if errors.As(err, &failure) {
		return failure.Reason
	}
	return ""
}

func person(subject string) *principal.Principal {
	return principal.New(principal.JWT, subject, nil, nil, time.Time{})
}

// askedBy begins a call of a modern caller and gives it with the question.
func askedBy(t *testing.T, h call.Handler, who *principal.Principal) (*call.Call, *call.Result) {
	t.Helper()
	c := toolCall("Kim", &caller{t: t, modern: true, declares: declaresAll})
	c.Caller = who
	result, err := h.Call(t.Context(), c)
	if err != nil || result.Input == nil {
		t.Fatalf("%+v, %v", result, err)
	}
	return c, result
}

// TestParkedIsBound to who was asked and to what; a state is good once, and
// what is no answer is asked again.
func TestParkedIsBound(t *testing.T) {
	_, u := asking(t, false)
	m := managing(t, hasty, u)
	h := ask(m)
	c, asked := askedBy(t, h, person("a"))
	owner, id, ok := call.ParkedIn(asked.Input.State)
	if !ok || owner != "me" || len(id) < 26 {
		t.Fatalf("state %s", asked.Input.State)
	}
	if _, other := askedBy(t, h, person("a")); string(other.Input.State) == string(asked.Input.State) {
		t.Error("two calls have one state")
	}

	theirs := *c
	theirs.Caller = person("b")
	if _, err := answered(t.Context(), t, h, &theirs, asked); reasonOf(err) != call.QuestionExpired {
		t.Errorf("another person: %v", err)
	}
	otherTool := *c
	otherTool.Tool = "other"
	if _, err := answered(t.Context(), t, h, &otherTool, asked); reasonOf(err) != call.QuestionExpired {
		t.Errorf("another tool: %v", err)
	}
	forged := *asked
	forged.Input = &call.Input{Requests: asked.Input.Requests, State: call.ParkedState("me", strings.Repeat("A", 26))}
	if _, err := answered(t.Context(), t, h, c, &forged); reasonOf(err) != call.QuestionExpired {
		t.Errorf("a forged state: %v", err)
	}

	unanswered := *c
	unanswered.State, unanswered.Responses = asked.Input.State, []byte(`{"q1":"no object","q9":{}}`)
	again, err := h.Call(t.Context(), &unanswered)
	if err != nil || again.Input == nil || string(again.Input.State) == string(asked.Input.State) || string(again.Input.Requests) != string(asked.Input.Requests) {
		t.Fatalf("%+v, %v", again, err)
	}
	if _, err := answered(t.Context(), t, h, c, asked); reasonOf(err) != call.QuestionExpired {
		t.Errorf("a used state: %v", err)
	}
	result, err := answered(t.Context(), t, h, c, again)
	if err != nil || !strings.Contains(string(result.Content), "hello Mx Kim") {
		t.Errorf("%+v, %v", result, err)
	}
	if _, err := answered(t.Context(), t, h, c, again); reasonOf(err) != call.QuestionExpired {
		t.Errorf("twice: %v", err)
	}
}

// waits is a server whose tool "ask" tells when its question ends without an
// answer.
func waits(t *testing.T) (serverconfig.Upstream, <-chan struct{}) {
	server, u := asking(t, false)
	ended := make(chan struct{}, 100)
	server.AddTool(&sdk.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		_, _, err := askName(ctx, r.Session, false, "Kim", nil)
		ended <- struct{}{}
		return nil, err
	})
	return u, ended
}

func await(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("waited for %s", what)
	}
}

// TestParkedExpires: a question that nobody answers ends, at the server too.
func TestParkedExpires(t *testing.T) {
	u, ended := waits(t)
	timing := hasty
	timing.Park = 50 * time.Millisecond
	m := managing(t, timing, u)
	c, asked := askedBy(t, ask(m), person("a"))
	await(t, "the end of the question", ended)
	if _, err := answered(t.Context(), t, ask(m), c, asked); reasonOf(err) != call.QuestionExpired {
		t.Errorf("got %v", err)
	}
	await(t, "the end of the session", emptied(m))
}

// emptied is closed when no exclusive session is left.
func emptied(m *Manager) <-chan struct{} {
	done := make(chan struct{})
	p := m.source("u").pool
	go func() {
		defer close(done)
		for {
			p.mu.Lock()
			n, freed := len(p.alive), p.freed
			p.mu.Unlock()
			if n == 0 {
				return
			}
			<-freed
		}
	}()
	return done
}

// TestParkedEndsWithItsUpstream, and with the server.
func TestParkedEndsWithItsUpstream(t *testing.T) {
	u, ended := waits(t)
	m := managing(t, hasty, u)
	askedBy(t, ask(m), person("a"))
	m.Configure(&serverconfig.Config{})
	await(t, "the end of the question", ended)

	u, ended = waits(t)
	m = managing(t, hasty, u)
	askedBy(t, ask(m), person("a"))
	m.Close()
	await(t, "the end of the question", ended)
}

// TestParkedAreBounded: one more is refused, and one that is answered makes
// room.
func TestParkedAreBounded(t *testing.T) {
	_, u := asking(t, false)
	m := managing(t, hasty, u)
	m.source("u").pool.max = 2 * maxParked
	h := ask(m)
	type parkedCall struct {
		c     *call.Call
		asked *call.Result
	}
	var mu sync.Mutex
	var all []parkedCall
	var work sync.WaitGroup
	for i := range maxParked {
		work.Go(func() {
			c, asked := askedBy(t, h, person(fmt.Sprint(i)))
			mu.Lock()
			defer mu.Unlock()
			all = append(all, parkedCall{c, asked})
		})
	}
	work.Wait()
	c := toolCall("Kim", &caller{t: t, modern: true, declares: declaresAll})
	if _, err := h.Call(t.Context(), c); reasonOf(err) != call.ConcurrencyLimit {
		t.Fatalf("one more: %v", err)
	}
	if result, err := answered(t.Context(), t, h, all[0].c, all[0].asked); err != nil || result.IsError {
		t.Fatalf("%+v, %v", result, err)
	}
	if _, err := h.Call(t.Context(), c); err != nil {
		t.Errorf("after one was answered: %v", err)
	}
}

// TestExclusiveSessions are reused by their client, made room for, and end
// when nobody uses them.
func TestExclusiveSessions(t *testing.T) {
	server, u := asking(t, false)
	timing := hasty
	timing.Idle = time.Hour
	m := managing(t, timing, u)
	m.source("u").pool.max = 2
	h := ask(m)
	whole := func(who string) {
		t.Helper()
		c, asked := askedBy(t, h, person(who))
		if result, err := answered(t.Context(), t, h, c, asked); err != nil || result.IsError {
			t.Fatalf("%+v, %v", result, err)
		}
	}
	sessions := func() map[string]bool {
		out := map[string]bool{}
		for s := range server.Sessions() {
			out[s.ID()] = true
		}
		return out
	}
	whole("a")
	first := sessions()
	whole("a")
	if got := sessions(); len(got) != 2 || fmt.Sprint(got) != fmt.Sprint(first) {
		t.Errorf("%v after %v: the session is not used again", got, first)
	}
	whole("b")
	if n := m.source("u").pool.size(); n != 2 {
		t.Errorf("%d sessions of clients", n)
	}
	// The one that was idle longest makes room, those in use do not.
	_, _ = askedBy(t, h, person("c"))
	_, _ = askedBy(t, h, person("d"))
	c := toolCall("Kim", &caller{t: t, modern: true, declares: declaresAll})
	c.Caller = person("e")
	if _, err := h.Call(t.Context(), c); reasonOf(err) != call.ConcurrencyLimit {
		t.Errorf("one more: %v", err)
	}
}

// TestIdleSessionEnds.
func TestIdleSessionEnds(t *testing.T) {
	_, u := asking(t, false)
	timing := hasty
	timing.Idle = 10 * time.Millisecond
	m := managing(t, timing, u)
	who := &caller{t: t, declares: declaresAll, session: "s", answer: answering}
	if result, err := ask(m).Call(t.Context(), toolCall("Kim", who)); err != nil || result.IsError {
		t.Fatalf("%+v, %v", result, err)
	}
	await(t, "the end of the idle session", emptied(m))
}

// TestSessionOfClientEnds with its client's own.
func TestSessionOfClientEnds(t *testing.T) {
	_, u := asking(t, false)
	m := managing(t, hasty, u)
	who := &caller{t: t, declares: declaresAll, session: "s", answer: answering}
	if result, err := ask(m).Call(t.Context(), toolCall("Kim", who)); err != nil || result.IsError {
		t.Fatalf("%+v, %v", result, err)
	}
	m.SessionEnded("other")
	if n := m.source("u").pool.size(); n != 1 {
		t.Errorf("%d sessions", n)
	}
	m.SessionEnded("s")
	await(t, "its end", emptied(m))
}

// TestStateIsNotOurs: what is no state of this server's is passed by.
func TestStateIsNotOurs(t *testing.T) {
	for _, raw := range []string{"", "null", `"x"`, `"espalier1.noid"`, `"espalier1."`, `"` + strings.Repeat("espalier1.a.b", 50) + `"`, `{"a":1}`} {
		if call.IsParked([]byte(raw)) {
			t.Errorf("%s is taken for ours", raw)
		}
	}
	if owner, id, ok := call.ParkedIn(wire.AppendString(nil, "espalier1.o.i.d")); !ok || owner != "o" || id != "i.d" {
		t.Errorf("%q %q %t", owner, id, ok)
	}
}
