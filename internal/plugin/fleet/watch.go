// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/operator"
)

// lookEvery is how often it is looked whether the operator lives: nothing of
// a server changes when it dies.
const lookEvery = 5 * time.Second

// shows prints what changed.
type shows interface {
	row(Row) error
	gone(*mcpv1.MCPServer) error
	// told prints a sentence about the operator.
	told(string)
}

// lines print rows below a table.
type lines struct {
	*options
	table *Table
}

func (l *lines) row(row Row) error { l.table.Row(l.Out, row); return nil }

func (l *lines) gone(server *mcpv1.MCPServer) error {
	l.table.Row(l.Out, Row{Server: server, Health: "Deleted", Reason: "-", Replicas: "-", Tools: "-", Resources: "-", Prompts: "-", Protocol: "-", Since: "-", Proof: "-"})
	return nil
}

func (l *lines) told(text string) { fmt.Fprintln(l.ErrOut, text) }

// objects print each object that changed.
type objects struct{ *options }

func (o *objects) row(row Row) error { return o.printer().PrintObj(named(row.Server), o.Out) }

// gone prints the object as it was last, as kubectl does.
func (o *objects) gone(server *mcpv1.MCPServer) error {
	return o.printer().PrintObj(named(server), o.Out)
}

func (o *objects) told(text string) { fmt.Fprintln(o.ErrOut, text) }

// follower remembers what was printed of each server.
type follower struct {
	*options
	shows
	state   operator.State
	servers map[types.NamespacedName]*mcpv1.MCPServer
	printed map[types.NamespacedName]Row
}

// follow prints what changes until the context ends.
func (o *options) follow(ctx context.Context, out shows, rows []Row, state operator.State, version string) error {
	f := &follower{options: o, shows: out, state: state, servers: map[types.NamespacedName]*mcpv1.MCPServer{}, printed: map[types.NamespacedName]Row{}}
	for _, row := range rows {
		key := client.ObjectKeyFromObject(row.Server)
		f.servers[key], f.printed[key] = row.Server, row
	}
	for ctx.Err() == nil {
		again, err := f.watch(ctx, version)
		if err != nil {
			return err
		}
		version = again
	}
	return nil
}

// watch follows one watch until it ends, and gives the version to go on from.
func (f *follower) watch(ctx context.Context, version string) (string, error) {
	options := &client.ListOptions{Namespace: f.namespace, LabelSelector: f.selects}
	options.Raw = options.AsListOptions()
	options.Raw.ResourceVersion = version
	w, err := f.client.Watch(ctx, &mcpv1.MCPServerList{}, options)
	if err != nil {
		return "", unlessEnded(ctx, env.ClusterError(err))
	}
	defer w.Stop()
	looks := time.NewTicker(lookEvery)
	defer looks.Stop()
	for {
		select {
		case <-ctx.Done():
			return "", nil
		case <-looks.C:
			if err := f.look(ctx); err != nil {
				return "", err
			}
		case event, open := <-w.ResultChan():
			if !open || event.Type == watch.Error {
				// It is over, or too old: what changed meanwhile is in a new list.
				return f.again(ctx)
			}
			server, ok := event.Object.(*mcpv1.MCPServer)
			if !ok {
				continue
			}
			if err := f.changed(server, event.Type == watch.Deleted); err != nil {
				return "", err
			}
		}
	}
}

func (f *follower) changed(server *mcpv1.MCPServer, gone bool) error {
	key := client.ObjectKeyFromObject(server)
	if !f.wanted(server) {
		return nil
	}
	if gone {
		delete(f.servers, key)
		delete(f.printed, key)
		return f.gone(server)
	}
	f.servers[key] = server
	return f.show(key)
}

// show prints a server where something of its row differs from what was
// printed, but for how long it has been so.
func (f *follower) show(key types.NamespacedName) error {
	server := f.servers[key]
	f.state.Now = time.Now().Add(f.looker.Ahead())
	row := judge(server, f.state.Of(server.Namespace), f.state.Now)
	before, known := f.printed[key]
	f.printed[key] = row
	if known && f.same(before, row) {
		return nil
	}
	return f.row(row)
}

func (f *follower) same(a, b Row) bool {
	if f.output == formatJSON || f.output == formatYAML || f.output == formatName {
		return a.Server.ResourceVersion == b.Server.ResourceVersion
	}
	a.Server, b.Server, a.Since, b.Since = nil, nil, "", ""
	if a.Health == Unknown && b.Health == Unknown {
		// It is not known for longer and longer.
		a.Reason, b.Reason, a.Proof, b.Proof = "", "", "", ""
	}
	return a == b
}

// look sees whether the operator lives, and prints what that changes.
func (f *follower) look(ctx context.Context) error {
	state, err := f.looker.Look(ctx)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	before := f.state
	f.state = state
	told := map[string]bool{}
	for key := range f.servers {
		was, is := before.Of(key.Namespace), state.Of(key.Namespace)
		if was.Down() == is.Down() {
			continue
		}
		if text := is.String(); !told[text] {
			told[text] = true
			f.told(text)
		}
		if err := f.show(key); err != nil {
			return err
		}
	}
	return nil
}

// unlessEnded is err, but for what comes of the end that the user made.
func unlessEnded(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// again lists anew after a watch that ended.
func (f *follower) again(ctx context.Context) (string, error) {
	servers, version, err := f.list(ctx)
	if err != nil {
		return "", unlessEnded(ctx, err)
	}
	present := map[types.NamespacedName]bool{}
	for i := range servers {
		present[client.ObjectKeyFromObject(&servers[i])] = true
		if err := f.changed(&servers[i], false); err != nil {
			return "", err
		}
	}
	for key, server := range f.servers {
		if !present[key] {
			if err := f.changed(server, true); err != nil {
				return "", err
			}
		}
	}
	return version, nil
}
