// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package credentials reads the keys of Secrets and ConfigMaps that are
// mounted below one folder. Values are read live: a rotated key is used within
// Recheck of the kubelet's change, without a restart.
package credentials

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const (
	// Recheck is how long a value is used before its file is looked at again.
	Recheck = time.Second
	// maxBytes of one key: a Secret holds no more.
	maxBytes = 1 << 20
)

// MissingError says which key is not mounted. Its text names the object and
// the key, never a value.
type MissingError struct {
	// Path below the folder.
	Path string
}

func (e *MissingError) Error() string {
	parts := strings.Split(filepath.ToSlash(e.Path), "/")
	if len(parts) != 3 {
		return "a credential is not mounted"
	}
	kind := "Secret"
	if parts[0] == serverconfig.CredentialsConfigMaps {
		kind = "ConfigMap"
	}
	return fmt.Sprintf("%s %q has no key %q mounted here", kind, parts[1], parts[2])
}

// Store reads and remembers keys. It is safe for concurrent use.
type Store struct {
	folder string
	now    func() time.Time

	mu      sync.Mutex
	entries map[string]*entry
}

type entry struct {
	value    []byte
	info     os.FileInfo
	err      error
	checked  time.Time
	loadedAt time.Time
}

// New gives a store over folder, which need not exist (yet).
func New(folder string) *Store {
	return &Store{folder: folder, now: time.Now, entries: map[string]*entry{}}
}

// Bytes gives the key at path, a path below the folder, for example
// secrets/NAME/KEY. The error is a *MissingError where the key is not there.
// The bytes must not be changed.
func (s *Store) Bytes(path string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.look(path)
	return e.value, e.err
}

// Text gives the key at path without the line break that editors leave at
// its end.
func (s *Store) Text(path string) (string, error) {
	value, err := s.Bytes(path)
	if err != nil {
		return "", err
	}
	return string(bytes.TrimRight(value, "\r\n")), nil
}

// Status says for the report whether the key is mounted and since when its
// present bytes are in use.
func (s *Store) Status(path string) podreport.Credential {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.look(path)
	c := podreport.Credential{Path: path, Present: e.err == nil}
	if c.Present {
		at := e.loadedAt
		c.LoadedAt = &at
	}
	return c
}

// Keep forgets all keys but those of paths.
func (s *Store) Keep(paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := make(map[string]*entry, len(paths))
	for _, path := range paths {
		if e := s.entries[path]; e != nil {
			kept[path] = e
		}
	}
	s.entries = kept
}

func (s *Store) look(path string) *entry {
	now := s.now()
	e := s.entries[path]
	if e != nil && now.Sub(e.checked) < Recheck {
		return e
	}
	next := s.read(path, e, now)
	next.checked = now
	s.entries[path] = next
	return next
}

// read looks at the file and reads it unless it is the one known already. The
// kubelet swaps whole folders, so a changed key is another file.
func (s *Store) read(path string, known *entry, now time.Time) *entry {
	missing := &entry{err: &MissingError{Path: path}}
	if !filepath.IsLocal(path) {
		return missing
	}
	file, err := os.Open(filepath.Join(s.folder, path))
	if err != nil {
		return missing
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return missing
	}
	if known != nil && known.err == nil && os.SameFile(known.info, info) &&
		known.info.ModTime().Equal(info.ModTime()) && known.info.Size() == info.Size() {
		return &entry{value: known.value, info: info, loadedAt: known.loadedAt}
	}
	value, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil || len(value) > maxBytes {
		return &entry{err: errors.New("a mounted key cannot be read")}
	}
	loadedAt := now
	if known != nil && known.err == nil && bytes.Equal(known.value, value) {
		loadedAt = known.loadedAt
	}
	return &entry{value: value, info: info, loadedAt: loadedAt}
}
