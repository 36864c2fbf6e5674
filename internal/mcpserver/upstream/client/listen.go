// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"strconv"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// Listen hears what the server says by itself, for Changed, until ctx ends or
// the stream does; standing is called when the stream stands. offered is false
// where the server has none. Only one Listen may run at a time.
func (s *Session) Listen(ctx context.Context, standing func()) (offered bool, err error) {
	if !s.revision.modern {
		err = s.carrier.stream(ctx, standing)
		return err != errNotOffered, err //nolint:errorlint // It is never wrapped.
	}
	wanted := s.wanted()
	if wanted == nil {
		return false, nil
	}
	err = s.listen(ctx, wanted, standing)
	return !isRPC(err), err
}

// listen keeps a listen stream for the members wanted of its filter.
func (s *Session) listen(ctx context.Context, wanted []byte, standing func()) error {
	m := &message{id: s.next(), method: mcp.MethodSubscriptionsListen}
	m.params = append(append([]byte(`"notifications":{`), wanted...), '}')
	s.standing.Store(m.id, standing)
	defer s.standing.Delete(m.id)
	_, err := s.carrier.request(ctx, m)
	return err
}

// acknowledged calls who waits for a listen stream to stand.
func (s *Session) acknowledged(params []byte) {
	tag := member(member(params, "_meta"), mcp.MetaSubscriptionID)
	text := string(tag)
	if unquoted, ok := wire.Text(tag); ok {
		text = unquoted
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return
	}
	if f, ok := s.standing.LoadAndDelete(id); ok {
		f.(func())() //nolint:forcetypeassert // Nothing else is stored.
	}
}

// wanted are members of the filter of a listen stream for all that the server
// tells of its lists; nil where it tells nothing.
func (s *Session) wanted() []byte {
	var out []byte
	for _, n := range []struct {
		told bool
		key  string
	}{
		{s.abilities.ToolsChanged, "toolsListChanged"}, {s.abilities.ResourcesChanged, "resourcesListChanged"},
		{s.abilities.PromptsChanged, "promptsListChanged"},
	} {
		if !n.told {
			continue
		}
		if len(out) > 0 {
			out = append(out, ',')
		}
		out = append(out, `"`+n.key+`":true`...)
	}
	return out
}

// watchSize is how many resources one listen stream subscribes to.
const watchSize = 64

// WatchSize is how many resources one Watch should be for at most.
func (s *Session) WatchSize() int {
	if s.revision.modern {
		return watchSize
	}
	return 1
}

// ErrUnwanted is the cause with which the context of a Watch ends while the
// session goes on.
var ErrUnwanted = errors.New("the subscription is no longer wanted")

// Watch has the server tell of changes of resources, for Options.Updated,
// until ctx ends or the stream does; standing is called when it does from then
// on. In the modern era that is a listen stream, in the legacy one are
// subscriptions, whose updates come where Listen hears them. An *RPCError says
// that the server tells of none of them.
func (s *Session) Watch(ctx context.Context, uris []string, standing func()) error {
	if s.revision.modern {
		wanted := []byte(`"resourceSubscriptions":[`)
		for i, uri := range uris {
			if i > 0 {
				wanted = append(wanted, ',')
			}
			wanted = wire.AppendString(wanted, uri)
		}
		return s.listen(ctx, append(wanted, ']'), standing)
	}
	var taken []string
	defer func() {
		if errors.Is(context.Cause(ctx), ErrUnwanted) {
			s.unsubscribe(context.WithoutCancel(ctx), taken)
		}
	}()
	for _, uri := range uris {
		if _, err := s.carrier.request(ctx, s.aboutResource(mcp.MethodSubscribe, uri)); err != nil {
			return err
		}
		taken = append(taken, uri)
	}
	standing()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.Done():
		return &Error{Reason: ChildExited}
	}
}

// unsubscribe ends subscriptions. Nobody depends on its success: what a server
// tells all the same is not passed on.
func (s *Session) unsubscribe(ctx context.Context, uris []string) {
	ctx, cancel := context.WithTimeout(ctx, behind)
	defer cancel()
	for _, uri := range uris {
		if _, err := s.carrier.request(ctx, s.aboutResource(mcp.MethodUnsubscribe, uri)); err != nil && !isRPC(err) {
			return
		}
	}
}

func (s *Session) aboutResource(method, uri string) *message {
	return &message{id: s.next(), method: method, params: append([]byte(`"uri":`), wire.AppendString(nil, uri)...)}
}
