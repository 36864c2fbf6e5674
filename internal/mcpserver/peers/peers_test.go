// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const self, other = "192.0.2.1:8081", "192.0.2.2:8081"

// names is a lookup that says what a test tells it to.
type names struct {
	addresses []string
	err       error
	lookups   atomic.Int64
}

func (n *names) resolve(context.Context) ([]string, error) {
	n.lookups.Add(1)
	return n.addresses, n.err
}

func at(n *names) *Peers {
	p := New(n.resolve, slog.New(slog.DiscardHandler))
	p.At(self)
	p.pause = time.Nanosecond
	return p
}

// age lets what was looked up grow older.
func (p *Peers) age(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = p.at.Add(-by)
}

func TestFind(t *testing.T) {
	n := &names{addresses: []string{self, other}}
	p := at(n)
	find := func(hash string, want string, wantErr error) {
		t.Helper()
		if got, err := p.Find(t.Context(), hash); got != want || !errors.Is(err, wantErr) {
			t.Errorf("got %q, %v; want %q, %v", got, err, want, wantErr)
		}
	}
	lookups := func(want int64) {
		t.Helper()
		if got := n.lookups.Load(); got != want {
			t.Errorf("%d lookups, want %d", got, want)
		}
	}
	find(Hash(other), other, nil)
	find(Hash(other), other, nil)
	lookups(1)
	find("nobody", "", ErrGone)
	find("", "", ErrGone)
	lookups(1) // That is no hash.
	n.addresses = []string{self}
	p.age(fresh)
	find(Hash(other), "", ErrGone)
	lookups(2) // One that was known is gone when it is not there.
	n.addresses = []string{self, other}
	find(Hash(other), other, nil)
	n.err = errors.New("no DNS")
	p.age(fresh)
	find(Hash(other), other, nil) // What was known stays.
	find(Hash("192.0.2.3:8081"), "", ErrUnknown)
}

// TestNewcomers: name servers know a new replica late.
func TestNewcomers(t *testing.T) {
	const third = "192.0.2.3:8081"
	p := New(nil, slog.New(slog.DiscardHandler))
	count := 0
	p.resolve = func(context.Context) ([]string, error) {
		if count++; count < 10 {
			return []string{self, other}, nil
		}
		return []string{self, other, third}, nil
	}
	p.At(self)
	p.pause = time.Nanosecond
	if got, err := p.Find(t.Context(), Hash(third)); got != third || err != nil || count != 10 {
		t.Errorf("got %q, %v after %d lookups", got, err, count)
	}
	nobody := Hash("192.0.2.4:8081")
	if _, err := p.Find(t.Context(), nobody); !errors.Is(err, ErrGone) || count != 10+1+looks {
		t.Errorf("got %v after %d lookups", err, count)
	}
	if _, err := p.Find(t.Context(), nobody); !errors.Is(err, ErrGone) || count != 10+2+looks {
		t.Errorf("again: got %v after %d lookups", err, count)
	}
	t.Run("the client leaves", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p.pause = time.Hour
		if _, err := p.Find(ctx, Hash("192.0.2.5:8081")); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("too many wait", func(t *testing.T) {
		for range maxWaiting {
			p.waiting <- struct{}{}
		}
		if _, err := p.Find(t.Context(), Hash("192.0.2.6:8081")); !errors.Is(err, ErrGone) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("what is gone is not remembered without bounds", func(t *testing.T) {
		for i := range 2 * maxPast {
			p.bury(strconv.Itoa(i))
		}
		if len(p.past) > maxPast {
			t.Errorf("%d hashes", len(p.past))
		}
	})
}

func TestElsewhere(t *testing.T) {
	p := at(&names{})
	passed := context.WithValue(t.Context(), forwarded{}, true)
	for _, tt := range []struct {
		ctx  context.Context
		hash string
		want bool
	}{
		{t.Context(), Hash(other), true}, {t.Context(), "x", true}, {t.Context(), "", false},
		{t.Context(), Hash(self), false}, {passed, Hash(other), false},
	} {
		if got := p.Elsewhere(tt.ctx, tt.hash); got != tt.want {
			t.Errorf("%q: got %t", tt.hash, got)
		}
	}
	alone := New(nil, slog.New(slog.DiscardHandler))
	alone.At(self)
	if alone.Elsewhere(t.Context(), Hash(other)) || alone.Self() != "" || !alone.Settled() {
		t.Error("one without peers has some")
	}
	if _, err := alone.Find(t.Context(), Hash(other)); !errors.Is(err, ErrGone) {
		t.Errorf("got %v", err)
	}
}

func TestHash(t *testing.T) {
	if Hash(self) == Hash(other) || !isHash(Hash(self)) || isHash("x") || isHash("ABCDEFGH") {
		t.Errorf("got %q, %q", Hash(self), Hash(other))
	}
}

func TestJoinEnds(t *testing.T) {
	for name, n := range map[string]*names{"it is there": {addresses: []string{other, self}}, "there is no Service": {}} {
		t.Run(name, func(t *testing.T) {
			p := at(n)
			if p.Settled() {
				t.Error("it is settled before it looked")
			}
			p.Join(t.Context())
			if !p.Settled() || n.lookups.Load() != 1 {
				t.Errorf("%d lookups, settled %t", n.lookups.Load(), p.Settled())
			}
		})
	}
	t.Run("the server stops", func(t *testing.T) {
		p := at(&names{addresses: []string{other}})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p.Join(ctx)
		if p.Settled() {
			t.Error("it found itself")
		}
	})
}

func TestDNS(t *testing.T) {
	got, err := DNS("localhost", "8081")(t.Context())
	if err != nil || len(got) == 0 || !strings.HasSuffix(got[0], ":8081") {
		t.Errorf("got %v, %v", got, err)
	}
}

// forwardTo passes a request on to a replica at address.
func forwardTo(t *testing.T, address string, r *http.Request, body []byte) (*httptest.ResponseRecorder, error) {
	t.Helper()
	p := at(&names{addresses: []string{self, address}})
	t.Cleanup(p.Close)
	w := httptest.NewRecorder()
	w.Header().Set("Access-Control-Allow-Origin", "x")
	return w, p.Forward(w, r, Hash(address), body)
}

func TestForward(t *testing.T) {
	var seen *http.Request
	var read []byte
	server := httptest.NewServer(Receive(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r
		read, _ = io.ReadAll(r.Body)
		w.Header().Set("Access-Control-Allow-Origin", "x")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "answered")
	})))
	defer server.Close()
	r := httptest.NewRequest(http.MethodPost, "http://front.example.com/mcp", strings.NewReader("was read"))
	for name, value := range map[string]string{
		"Authorization": "Bearer t", "X-Forwarded-For": "198.51.100.1", "Forwarded": "for=x", "Last-Event-Id": "1-2",
		"Connection": "X-Hop", "X-Hop": "1", "Origin": "https://a",
	} {
		r.Header.Set(name, value)
	}
	w, err := forwardTo(t, server.Listener.Addr().String(), r, []byte("was read"))
	if err != nil || w.Code != http.StatusTeapot || w.Body.String() != "answered" || len(w.Header().Values("Access-Control-Allow-Origin")) != 1 {
		t.Errorf("got %d, %v, %v", w.Code, w.Header(), err)
	}
	if seen.URL.Path != "/mcp" || seen.Host != "front.example.com" || string(read) != "was read" {
		t.Errorf("came as %s %s: %s", seen.Host, seen.URL.Path, read)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer t", "X-Forwarded-For": "198.51.100.1", "Forwarded": "for=x", "Last-Event-Id": "1-2", "Origin": "https://a", "X-Hop": "",
	} {
		if got := seen.Header.Get(name); got != want {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if at(&names{}).Elsewhere(seen.Context(), Hash(other)) {
		t.Error("it would be passed on again")
	}
}

func TestForwardFails(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	_ = listener.Close()
	breaking := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer breaking.Close()
	for name, tt := range map[string]struct {
		address string
		want    error
	}{"nobody listens": {closed, ErrGone}, "it breaks off": {breaking.Listener.Addr().String(), ErrBroken}} {
		t.Run(name, func(t *testing.T) {
			w, err := forwardTo(t, tt.address, httptest.NewRequest(http.MethodPost, "/mcp", nil), []byte("{}"))
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v", err)
			}
			if w.Body.Len() > 0 || w.Header().Get("Access-Control-Allow-Origin") != "x" {
				t.Errorf("something was written: %v %s", w.Header(), w.Body)
			}
		})
	}
}
