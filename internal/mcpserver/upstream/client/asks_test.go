// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// questioner is a legacy server that asks on the stream of a call, and answers
// the call with what it was answered.
func questioner(t *testing.T, ask string) (Options, *fakemcp.Server, chan struct{}) {
	t.Helper()
	f := fakemcp.New()
	f.Settings.Legacy, f.Settings.Modern = true, false
	replies := make(chan string, 10)
	asked := make(chan struct{}, 10)
	f.On(fakemcp.Reply, func(c *fakemcp.Call) {
		requests := f.Requests()
		replies <- string(requests[len(requests)-1].Body)
		c.Text(http.StatusAccepted, "", "")
	})
	f.On("tools/call", func(c *fakemcp.Call) {
		c.Stream(fakemcp.Data(ask))
		asked <- struct{}{}
		select {
		case reply := <-replies:
			c.Send(fakemcp.Data(c.Response(map[string]any{"content": []any{}, "reply": reply})))
		case <-c.R.Context().Done():
		}
	})
	web := httptest.NewServer(f)
	t.Cleanup(web.Close)
	t.Cleanup(f.Release)
	o := options(web.URL)
	o.Protocol = serverconfig.ProtocolLegacy
	return o, f, asked
}

const elicitation = `{"jsonrpc":"2.0","id":"q-1","method":"elicitation/create","params":{"message":"who?"}}`

// TestServerAsksItsClient: the one client of a session, with its capabilities; who
// shares a session is not asked.
func TestServerAsksItsClient(t *testing.T) {
	for name, test := range map[string]struct {
		ask, want string
		asking    *Asking
	}{
		"shared":         {elicitation, `{"jsonrpc":"2.0","id":"q-1","error":{"code":-32601,"message":"method not found"}}`, nil},
		"shared, a ping": {`{"jsonrpc":"2.0","id":7,"method":"ping"}`, `{"jsonrpc":"2.0","id":7,"result":{}}`, nil},
		"asked": {elicitation, `{"jsonrpc":"2.0","id":"q-1","result":{"action": "accept"}}`, &Asking{Ask: func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			if method != mcp.MethodElicit || string(params) != `{"message":"who?"}` {
				return nil, errors.New("asked otherwise")
			}
			return json.RawMessage(`{"action": "accept"}`), nil
		}}},
		"refused": {elicitation, `{"jsonrpc":"2.0","id":"q-1","error":{"code":-1,"message":"no","data":{"a":1}}}`, &Asking{Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return nil, &wire.Error{Code: -1, Message: "no", Data: json.RawMessage(`{"a":1}`)}
		}}},
		"failed": {elicitation, `{"jsonrpc":"2.0","id":"q-1","error":{"code":-32603,"message":"the client cannot be asked"}}`, &Asking{Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return nil, errors.New("secret words")
		}}},
		"something else": {`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}`, &Asking{}},
	} {
		t.Run(name, func(t *testing.T) {
			o, f, _ := questioner(t, test.ask)
			if o.Asking = test.asking; o.Asking != nil {
				o.Asking.Capabilities = []byte(`{"elicitation":{ }}`)
			}
			s := mustConnect(t, o)
			raw, err := s.Call(t.Context(), &Call{Tool: "a", Args: []byte("{}")})
			if err != nil {
				t.Fatal(err)
			}
			var result struct{ Reply string }
			if err := json.Unmarshal(raw, &result); err != nil || result.Reply != test.want {
				t.Errorf("answered %s, %v", result.Reply, err)
			}
			declared := `"capabilities":{}`
			if o.Asking != nil {
				declared = `"capabilities":{"elicitation":{ }}`
			}
			for _, r := range f.Requests() {
				if r.Method == mcp.MethodInitialize && !strings.Contains(string(r.Body), declared) {
					t.Errorf("declared by %s", r.Body)
				}
			}
		})
	}
}

// TestServerTakesItsQuestionBack: the client hears so, and nothing is answered.
func TestServerTakesItsQuestionBack(t *testing.T) {
	o, f, asked := questioner(t, elicitation)
	ended := make(chan struct{})
	o.Asking = &Asking{Ask: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		defer close(ended)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	f.On("tools/call", func(c *fakemcp.Call) {
		c.Stream(fakemcp.Data(elicitation), fakemcp.Data(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q-1"}}`))
		<-ended
		c.Send(fakemcp.Data(c.Response(map[string]any{"content": []any{}})))
	})
	_ = asked
	s := mustConnect(t, o)
	if _, err := s.Call(t.Context(), &Call{Tool: "a", Args: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	s.Close(context.Background())
	for _, r := range f.Requests() {
		if strings.Contains(string(r.Body), `"q-1"`) {
			t.Errorf("answered %s", r.Body)
		}
	}
}

// TestClosingAborts what is pending, questions as well as calls.
func TestClosingAborts(t *testing.T) {
	for name, end := range map[string]func(*Session){
		"close": func(s *Session) { s.Close(context.Background()) }, "abort": (*Session).Abort,
	} {
		t.Run(name, func(t *testing.T) {
			o, f, asked := questioner(t, elicitation)
			o.Asking = &Asking{Ask: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}}
			s := mustConnect(t, o)
			failed := make(chan error, 1)
			go func() {
				_, err := s.Call(context.Background(), &Call{Tool: "a", Args: []byte("{}")})
				failed <- err
			}()
			<-asked
			end(s)
			select {
			case err := <-failed:
				if ReasonOf(err) != ConnectionLost || ErrorOf(err).Phase != PhaseCall {
					t.Errorf("got %v", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("the call goes on")
			}
			deletes := 0
			for _, r := range f.Requests() {
				if r.HTTP == http.MethodDelete {
					deletes++
				}
			}
			if want := map[string]int{"close": 1, "abort": 0}[name]; deletes != want {
				t.Errorf("the session was ended %d times", deletes)
			}
		})
	}
}

// TestChildIsAborted at once, where it would end by itself when it is closed.
func TestChildIsAborted(t *testing.T) {
	closed, aborted := mustStart(t, "legacy"), mustStart(t, "legacy")
	closed.Close(context.Background())
	if state := closed.child.State(); state.Running || state.Signal != "" || state.ExitCode != 0 {
		t.Errorf("closed: %+v", state)
	}
	aborted.Abort()
	if state := aborted.child.State(); state.Signal != "KILL" {
		t.Errorf("aborted: %+v", state)
	}
}
