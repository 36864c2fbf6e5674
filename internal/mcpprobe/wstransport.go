// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// openWebSocket upgrades to a WebSocket, which lives until it is closed.
func (e *exchange) openWebSocket(ctx context.Context) *failure {
	began := time.Now()
	defer func() { e.took(StepUpgrade, began) }()
	c := &call{step: StepUpgrade}
	header := e.header.Clone()
	for _, name := range []string{"Accept", "Accept-Encoding", "Content-Type"} {
		header.Del(name)
	}
	u := e.currentURL()
	socket, resp, err := websocket.Dial(tracked(ctx, &c.at, new(atomic.Bool)), u.String(), &websocket.DialOptions{ //nolint:bodyclose // The library has read it.
		HTTPClient: &http.Client{
			Transport: e.transport,
			// Where it leads would get the credentials.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		HTTPHeader: header, Host: e.target.Host, Subprotocols: []string{"mcp"},
	})
	if err != nil {
		return e.notUpgraded(ctx, c, resp, err)
	}
	socket.SetReadLimit(-1) // The bounds are ours.
	l := e.newLink(resp)
	l.write = func(ctx context.Context, c *call, body []byte) *failure {
		if err := socket.Write(ctx, websocket.MessageText, body); err != nil {
			return networkFailure(ctx, err, c.step, phaseConnected, false, 0)
		}
		return nil
	}
	l.close = func() {
		// The peer is given a moment to say goodbye, and no more.
		timer := time.AfterFunc(e.bounds.EndTime, func() { _ = socket.CloseNow() })
		_ = socket.Close(websocket.StatusNormalClosure, "")
		timer.Stop()
		<-l.done
	}
	// The library ends a connection together with the context of a read.
	reading := context.WithoutCancel(ctx)
	go l.read(func() ([]byte, *failure) {
		kind, r, err := socket.Reader(reading)
		if err != nil {
			if websocket.CloseStatus(err) != -1 {
				return nil, &failure{outcome: StreamEnded}
			}
			return nil, networkFailure(reading, err, StepUpgrade, phaseConnected, false, 0)
		}
		if kind != websocket.MessageText {
			return nil, &failure{outcome: NotMCP, flaw: FlawNotJSON}
		}
		data, err := io.ReadAll(&boundReader{ctx: e.life, r: r, left: e.bounds.BodyBytes, limit: e.bounds.BodyBytes, budget: e.total})
		if err != nil {
			return nil, bodyFailure(e.life, err, StepUpgrade)
		}
		return data, nil
	})
	e.link = l
	return nil
}

// notUpgraded judges what came in place of the upgrade.
func (e *exchange) notUpgraded(ctx context.Context, c *call, resp *http.Response, err error) *failure {
	if resp == nil {
		f := networkFailure(ctx, err, c.step, phase(c.at.Load()), e.currentURL().Scheme == "http" && e.transport.sawTLS.Load(), e.bounds.HeaderBytes)
		if f.outcome == ConnectionLost && e.transport.refusesCert() {
			f.outcome, f.step = TLSClientCertificate, StepTLS
		}
		return f
	}
	j := &judge{exchange: e, call: c, resp: resp, cancel: func() {}}
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		return j.fail(NotMCP, FlawNotHTTP, "")
	case resp.StatusCode/100 == 3:
		return j.fail(Redirected, "", "")
	}
	return j.refusal(ctx)
}
