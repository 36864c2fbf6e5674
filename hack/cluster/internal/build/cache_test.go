// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func newCache(t *testing.T) *Cache {
	return &Cache{Dir: t.TempDir(), Root: t.TempDir(), Log: t.Logf}
}

func TestOnceFillsOnceForConcurrentCallers(t *testing.T) {
	cache := newCache(t)
	target := filepath.Join(cache.Dir, "bin", "x-1")
	var fills atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			err := cache.Once(t.Context(), target, func(temp string) error {
				fills.Add(1)
				return os.WriteFile(filepath.Join(temp, "x"), nil, 0o755)
			})
			if err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(target, "x")); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := fills.Load(); got != 1 {
		t.Errorf("filled %d times, want once", got)
	}
}

func TestOnceLeavesNothingOfAFailure(t *testing.T) {
	cache := newCache(t)
	target := filepath.Join(cache.Dir, "bin", "x-1")
	broken := errors.New("broken")
	err := cache.Once(t.Context(), target, func(temp string) error {
		_ = os.WriteFile(filepath.Join(temp, "half"), nil, 0o755)
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(target))
	if err != nil || len(entries) != 0 {
		t.Errorf("left %v, %v", entries, err)
	}
}

func TestAcquireStopsWaitingWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Acquire(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Acquire(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestEnsureBuildsAndRenames(t *testing.T) {
	cache := newCache(t)
	write(t, cache.Root, "m/go.mod", "module example.test/m\n\ngo 1.26.0\n")
	write(t, cache.Root, "m/main.go", "package main\n\nfunc main() {}\n")
	set := Set{Name: "m", Dir: "m", Packages: []string{"."}, Sources: []string{"*.go"}, Rename: map[string]string{"m": "n"}}
	dir, err := cache.Ensure(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	if got := programs(dir); len(got) != 1 || got[0] != "n" {
		t.Errorf("built %v", got)
	}
}
