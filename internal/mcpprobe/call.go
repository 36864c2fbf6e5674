// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/sse"
)

const (
	// errorBody is how much is read of a body that only explains an error,
	// and errorTime for how long.
	errorBody = 64 << 10
	errorTime = time.Second
)

// call is one JSON-RPC request, or a notification.
type call struct {
	step   Step
	method string
	params map[string]any
	// version for the header; empty for none.
	version string
	// modern adds what each modern request carries.
	modern  bool
	session string
	notify  bool
	// at is how far the connection came.
	at atomic.Int32
}

// answer is the result to a call.
type answer struct {
	result []byte
	// session that the response named.
	session string
}

// do makes a call and judges its answer.
func (e *exchange) do(ctx context.Context, c *call) (answer, *failure) {
	began := time.Now()
	defer e.took(c.step, began)
	if e.link != nil {
		return e.link.do(ctx, c)
	}
	id := int64(0)
	if !c.notify {
		id = e.ids.Add(1)
	}
	body, err := json.Marshal(request{JSONRPC: "2.0", ID: id, Method: c.method, Params: e.params(c)})
	if err != nil {
		return answer{}, &failure{outcome: InvalidTarget, step: c.step}
	}
	callCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, f := e.send(callCtx, c.step, http.MethodPost, body, e.headers(c), &c.at)
	if f != nil {
		return answer{}, f
	}
	defer func() { closeBody(resp, cancel) }()
	a := answer{}
	a.session = e.openedBy(c, resp)
	j := &judge{exchange: e, call: c, id: id, resp: resp, session: a.session, cancel: cancel}
	a.result, f = j.judge(callCtx)
	return a, f
}

// openedBy notes the session that an answer to a handshake opened. Servers make
// one for any request without a session, and then refuse it for having none:
// what was refused has to be ended too.
func (e *exchange) openedBy(c *call, resp *http.Response) string {
	switch {
	case c.step != StepInitialize && c.step != StepDiscover:
		return ""
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		return "" // It would refuse the DELETE as well.
	case c.step == StepDiscover:
		return e.opened(resp.Header, "") // Which version it speaks is not known yet.
	}
	return e.opened(resp.Header, c.version)
}

// params adds to a modern request what each of them carries.
func (e *exchange) params(c *call) map[string]any {
	if !c.modern {
		return c.params
	}
	params := map[string]any{"_meta": map[string]any{
		mcp.MetaProtocolVersion:    c.version,
		mcp.MetaClientCapabilities: struct{}{},
		mcp.MetaClientInfo:         e.clientInfo(),
	}}
	for key, value := range c.params {
		params[key] = value
	}
	return params
}

func (e *exchange) clientInfo() map[string]string {
	return map[string]string{"name": "espalier-probe", "version": e.client.opts.Version}
}

func (e *exchange) headers(c *call) http.Header {
	header := e.header.Clone()
	if c.modern {
		header.Set(mcp.HeaderMethod, c.method)
	}
	if c.modern || (c.step != StepInitialize && sendsVersion(c.version)) {
		header.Set(mcp.HeaderProtocolVersion, c.version)
	}
	if c.session != "" {
		header.Set(mcp.HeaderSessionID, c.session)
	}
	return header
}

// judge is one response under judgement.
type judge struct {
	*exchange
	call *call
	id   int64
	resp *http.Response
	// session for replies to requests of the server on this stream.
	session string
	cancel  context.CancelFunc
}

// fail begins a failure with what is known of the response.
func (j *judge) fail(outcome Outcome, flaw Flaw, text string) *failure {
	return &failure{
		outcome: outcome, flaw: flaw, step: j.call.step, status: j.resp.StatusCode,
		mediaType: mediaTypeOf(j.resp.Header), words: words(text, j.secrets),
	}
}

// judge gives the result, or says in what way there is none.
func (j *judge) judge(ctx context.Context) ([]byte, *failure) {
	if j.resp.StatusCode/100 != 2 {
		return nil, j.refusal(ctx)
	}
	if j.call.notify {
		return nil, nil
	}
	body, err := openBody(ctx, j.resp, j.bounds.BodyBytes, j.total)
	if err != nil {
		return nil, j.broken(ctx, err)
	}
	switch mediaTypeOf(j.resp.Header) {
	case typeJSON:
		return j.fromJSON(ctx, body)
	case typeSSE:
		return j.fromStream(ctx, body)
	}
	text := j.text(ctx)
	if mediaTypeOf(j.resp.Header) == typeNone && text == "" {
		return nil, j.fail(NotMCP, FlawEmpty, "")
	}
	return nil, j.fail(NotMCP, FlawMediaType, text)
}

// broken judges an error while the body was opened or read.
func (j *judge) broken(ctx context.Context, err error) *failure {
	f := bodyFailure(ctx, err, j.call.step)
	f.status, f.mediaType = j.resp.StatusCode, mediaTypeOf(j.resp.Header)
	return f
}

func (j *judge) fromJSON(ctx context.Context, body io.Reader) ([]byte, *failure) {
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, j.broken(ctx, err)
	}
	messages, flaw := parseMessages(data)
	for _, m := range messages {
		if m.answers(j.id) {
			return j.fromResponse(m)
		}
		if m.method == "" {
			flaw = FlawWrongID
		}
		j.heard(m)
	}
	if flaw == "" {
		flaw = FlawNotJSONRPC
	}
	return nil, j.fail(NotMCP, flaw, string(data[:min(len(data), errorBody)]))
}

// fromStream reads events until the answer has come. What else comes is
// answered or passed over.
func (j *judge) fromStream(ctx context.Context, body io.Reader) ([]byte, *failure) {
	events := sse.NewReader(body)
	seen := Flaw("")
	for {
		ev, err := events.Next()
		if errors.Is(err, io.EOF) {
			if seen != "" {
				return nil, j.fail(NotMCP, seen, "")
			}
			return nil, j.fail(StreamEnded, "", "")
		}
		if err != nil {
			return nil, j.broken(ctx, err)
		}
		if ev.Kind != "" && ev.Kind != "message" {
			continue
		}
		messages, flaw := parseMessages(ev.Data)
		if flaw != "" && flaw != FlawEmpty {
			seen = flaw
		}
		for _, m := range messages {
			switch {
			case m.answers(j.id):
				return j.fromResponse(m)
			case m.isRequest():
				j.reply(m)
			case m.isNotification():
				j.heard(m)
			default:
				seen = FlawWrongID
			}
		}
	}
}

// fromResponse takes the result out of the response to our request.
func (j *judge) fromResponse(m message) ([]byte, *failure) {
	if m.err != nil {
		return nil, j.rpcFailure(m.err)
	}
	if !isObject(m.result) {
		return nil, j.fail(NotMCP, FlawMissingFields, "")
	}
	if kind, ok := stringMember(m.result, "resultType"); ok && kind != "complete" {
		// A server that answers a handshake or a list with a question.
		return nil, j.fail(NotMCP, FlawMissingFields, kind)
	}
	return m.result, nil
}

// rpcFailure judges a JSON-RPC error.
func (j *judge) rpcFailure(value []byte) *failure {
	e := parseRPCError(value)
	outcome := HandshakeRejected
	switch j.call.step {
	case StepTools, StepResources, StepTemplates, StepPrompts:
		outcome = ListFailed
	}
	f := j.fail(outcome, "", e.message)
	f.rpc = e
	return f
}

// refusal judges a response whose status is not 2xx.
func (j *judge) refusal(ctx context.Context) *failure {
	text := j.text(ctx)
	messages, _ := parseMessages([]byte(text))
	var rpc *failure
	for _, m := range messages {
		if m.err != nil && m.answers(j.id) {
			rpc = j.rpcFailure(m.err)
		}
	}
	f := j.byStatus(text, rpc != nil)
	if f == nil {
		f = rpc
	}
	if f == nil {
		f = j.fail(UnexpectedStatus, "", text)
		// Some servers refuse a version before JSON-RPC, in words.
		f.offered = versionsIn(text)
	}
	return f
}

// byStatus judges the statuses that mean something by themselves.
func (j *judge) byStatus(text string, isRPC bool) *failure {
	evident := isRPC || j.isEvident() || parseChallenge(j.resp.Header).evident()
	switch status := j.resp.StatusCode; {
	case status == http.StatusUnauthorized:
		return j.fail(authOutcome(j.credential, evident), "", text)
	case status == http.StatusMisdirectedRequest:
		return j.fail(HostRejected, "", text)
	case status == http.StatusForbidden && hostRefused(text):
		return j.fail(HostRejected, "", text)
	case status == http.StatusForbidden:
		return j.fail(authOutcome(j.credential, evident), "", text)
	case status == http.StatusNotFound && j.call.session != "":
		return j.fail(SessionLost, "", text)
	case status == http.StatusBadRequest && speaksTLS(text):
		return j.fail(TLSExpected, "", text)
	}
	return nil
}

// speaksTLS: the usual words of a TLS server that got plain HTTP.
func speaksTLS(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "http request to an https server") ||
		strings.Contains(text, "http request was sent to https port") ||
		strings.Contains(text, "speaking plain http to an ssl-enabled server")
}

// text reads the beginning of a body that only explains; what cannot be read
// in time or at all is left out.
func (j *judge) text(ctx context.Context) string {
	timer := time.AfterFunc(errorTime, j.cancel)
	defer timer.Stop()
	body, err := openBody(ctx, j.resp, errorBody, j.total)
	if err != nil {
		return ""
	}
	// An error, the bound included, leaves what was read until then.
	data, _ := io.ReadAll(body)
	return string(data)
}

// reply answers a request of the server beside the stream it came on, since
// some servers send the answer only after it.
func (j *judge) reply(m message) {
	r, ok := replyTo(m)
	if !ok || j.call.modern || int(j.replies.Add(1)) > j.bounds.Replies {
		return
	}
	body, err := json.Marshal(r)
	if err != nil {
		return
	}
	header := j.headers(j.call)
	if header.Get(mcp.HeaderSessionID) == "" && j.session != "" {
		header.Set(mcp.HeaderSessionID, j.session)
	}
	j.background.Go(func() {
		ctx, cancel := context.WithTimeout(j.life, j.bounds.EndTime)
		defer cancel()
		if resp, f := j.send(ctx, j.call.step, http.MethodPost, body, header, new(atomic.Int32)); f == nil {
			closeBody(resp, cancel)
		}
	})
}
