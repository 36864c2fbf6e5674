// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalogfile watches the mounted catalog and hands on each complete
// one. A catalog that is incomplete, unreadable or asks for features this
// server lacks leaves the old one in place, and the state says so.
package catalogfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const (
	// settle is how long events may follow one another before a look.
	settle = 10 * time.Millisecond
	// poll is how often to look without any event: not every file system
	// tells of its changes.
	poll = 5 * time.Second
	// retry is how soon to look again at a set that is not complete.
	retry = 250 * time.Millisecond
	// dataLink is the link that the kubelet swaps; what it points to is
	// written before and never changed after.
	dataLink = "..data"
)

// State is how the newest catalog on disk fared.
type State struct {
	State podreport.CatalogState
	// Missing features, with CatalogUnsupported.
	Missing []string
	// Trust is the newest probe trust that was read, in a catalog that is
	// served or not: a server that cannot serve must still be able to say so.
	Trust serverconfig.ProbeTrust
}

// Watcher looks after one folder.
type Watcher struct {
	folder string
	log    *slog.Logger
	load   func(ctx context.Context, config *serverconfig.Config, digest string)
	note   func(podreport.CatalogState)

	mu    sync.Mutex
	state State

	lastIndex []byte
	loaded    string
}

// New gives a watcher that calls load, one call at a time, for each new
// catalog, and note with the state of each set that it finds.
func New(folder string, log *slog.Logger, load func(context.Context, *serverconfig.Config, string), note func(podreport.CatalogState)) *Watcher {
	return &Watcher{folder: folder, log: log, load: load, note: note, state: State{State: podreport.CatalogMissing}}
}

// State gives the present state.
func (w *Watcher) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// Run watches until ctx ends. It looks once before it returns for the first
// time to its caller's events, so that a mounted catalog is loaded at once.
func (w *Watcher) Run(ctx context.Context) {
	events, closeEvents := w.events()
	defer closeEvents()
	next := w.look(ctx)
	timer := time.NewTimer(next)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			timer.Reset(settle)
		case <-timer.C:
			timer.Reset(w.look(ctx))
		}
	}
}

// events tells of changes in the folder. Without them polling has to do.
func (w *Watcher) events() (<-chan fsnotify.Event, func()) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		w.log.Warn("Catalog folder is polled only", "error", err.Error())
		return nil, func() {}
	}
	if err := watcher.Add(w.folder); err != nil {
		w.log.Warn("Catalog folder is polled only", "error", err.Error())
	}
	go func() {
		for err := range watcher.Errors { // An overflow loses events; the poll finds what they told.
			w.log.Debug("Catalog events were lost", "error", err.Error())
		}
	}()
	return watcher.Events, func() { _ = watcher.Close() }
}

// look reads the catalog and says when to look again.
func (w *Watcher) look(ctx context.Context) time.Duration {
	folder := w.folder
	if target, err := filepath.EvalSymlinks(filepath.Join(folder, dataLink)); err == nil {
		folder = target // One version of all files, whatever is swapped meanwhile.
	}
	read := func(name string) ([]byte, error) {
		if !filepath.IsLocal(name) || filepath.Base(name) != name {
			return nil, fmt.Errorf("%q is no file name", name)
		}
		return os.ReadFile(filepath.Join(folder, name))
	}
	index, err := read(serverconfig.IndexKey)
	if err == nil && bytes.Equal(index, w.lastIndex) {
		return poll
	}
	config, digest, err := serverconfig.Join(read)
	switch {
	case errors.Is(err, serverconfig.ErrIncomplete):
		w.set(State{State: podreport.CatalogIncomplete}, nil)
		return retry
	case errors.Is(err, fs.ErrNotExist):
		w.set(State{State: podreport.CatalogMissing}, nil)
		w.lastIndex = nil
		return retry
	case err != nil:
		w.log.Error("Catalog cannot be read, the old one stays", "error", err.Error())
		w.set(State{State: podreport.CatalogInvalid}, nil)
		w.lastIndex = index
		return poll
	}
	w.lastIndex = index
	w.take(ctx, config, digest)
	return poll
}

// take hands a complete catalog on if this server can serve it.
func (w *Watcher) take(ctx context.Context, config *serverconfig.Config, digest string) {
	missing := config.Missing()
	if config.Version > serverconfig.Version {
		missing = append(missing, fmt.Sprintf("version %d", config.Version))
	}
	if len(missing) > 0 {
		w.log.Error("Catalog requires features this server lacks, the old one stays", "digest", digest, "missing", missing)
		w.set(State{State: podreport.CatalogUnsupported, Missing: missing}, &config.Probe)
		return
	}
	if digest != w.loaded {
		w.load(ctx, config, digest)
		w.loaded = digest
	}
	w.set(State{State: podreport.CatalogLoaded}, &config.Probe)
}

func (w *Watcher) set(next State, trust *serverconfig.ProbeTrust) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if trust != nil {
		next.Trust = *trust
	} else {
		next.Trust = w.state.Trust
	}
	if next.State != w.state.State || next.State == podreport.CatalogLoaded {
		w.note(next.State)
	}
	w.state = next
}
