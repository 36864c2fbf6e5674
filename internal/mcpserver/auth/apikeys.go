// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// recheck is how long what was read of a mounted Secret is used.
	recheck = time.Second
	// maxKeyFile is the longest key, in bytes; maxKeyFiles the most of one Secret.
	maxKeyFile  = 16 << 10
	maxKeyFiles = 10_000
)

// keyFolder holds the API keys of a mounted Secret: a file's name is the
// subject, its content the key. Rotation is live. Only hashes are kept.
type keyFolder struct {
	path string
	now  func() time.Time

	mu      sync.Mutex
	checked time.Time
	// version is what ..data points to; the kubelet swaps it as a whole.
	version  string
	loadedAt time.Time
	present  bool
	keys     []apiKey
}

type apiKey struct {
	subject string
	hash    [sha256.Size]byte
}

func newKeyFolder(path string, now func() time.Time) *keyFolder {
	return &keyFolder{path: path, now: now}
}

// subject gives who shows a key. It takes the same time for every key that
// was shown, whether and where it is found.
func (f *keyFolder) subject(shown string) (string, bool) {
	keys := f.load()
	hash := sha256.Sum256([]byte(shown))
	found := -1
	for i := range keys {
		if subtle.ConstantTimeCompare(hash[:], keys[i].hash[:]) == 1 && found < 0 {
			found = i
		}
	}
	if found < 0 {
		return "", false
	}
	return keys[found].subject, true
}

// status says whether the Secret is mounted and since when its present keys
// are in use.
func (f *keyFolder) status() (present bool, loadedAt time.Time) {
	f.load()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.present, f.loadedAt
}

func (f *keyFolder) load() []apiKey {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if !f.checked.IsZero() && now.Sub(f.checked) < recheck {
		return f.keys
	}
	f.checked = now
	folder := f.path
	target, err := filepath.EvalSymlinks(filepath.Join(f.path, "..data"))
	if err == nil {
		if f.present && target == f.version {
			return f.keys
		}
		folder = target // One version of all keys, whatever is swapped meanwhile.
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		// A Secret that is gone lets nobody in any more.
		f.keys, f.present, f.version = nil, false, ""
		return nil
	}
	f.keys, f.present, f.version, f.loadedAt = readKeys(folder, entries), true, target, now
	return f.keys
}

// readKeys reads the files in the order of their names. An empty one is no
// key: it would let in who shows nothing.
func readKeys(folder string, entries []os.DirEntry) []apiKey {
	var keys []apiKey
	for _, entry := range entries[:min(len(entries), maxKeyFiles)] {
		if strings.HasPrefix(entry.Name(), "..") {
			continue
		}
		file := filepath.Join(folder, entry.Name())
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Size() > maxKeyFile {
			continue
		}
		value, err := os.ReadFile(file)
		// A line break at the end is an accident of how the Secret was made.
		value = bytes.TrimRight(value, "\r\n")
		if err != nil || len(value) == 0 {
			continue
		}
		keys = append(keys, apiKey{subject: entry.Name(), hash: sha256.Sum256(value)})
	}
	return keys
}
