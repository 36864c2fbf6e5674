// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Cache holds finished programs, one folder per set and key.
type Cache struct {
	// Dir is the cache's root.
	Dir string
	// Root is the folder of hack/cluster, against which a set's Dir is resolved.
	Root string
	// Log is told what takes long.
	Log func(format string, args ...any)
}

// DefaultDir is the cache's place unless ESPALIER_CACHE names another.
func DefaultDir() (string, error) {
	if dir := os.Getenv("ESPALIER_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "espalier"), nil
}

// Path is where the programs of the set are, or would be once built.
func (c *Cache) Path(s Set) (string, error) {
	version, err := goVersion(filepath.Join(c.Root, s.Dir))
	if err != nil {
		return "", err
	}
	key, err := s.key(c.Root, version)
	if err != nil {
		return "", err
	}
	return filepath.Join(c.Dir, "bin", s.Name+"-"+key), nil
}

// Ensure returns the folder with the set's programs and builds them if need be.
func (c *Cache) Ensure(ctx context.Context, s Set) (string, error) {
	target, err := c.Path(s)
	if err != nil {
		return "", err
	}
	err = c.Once(ctx, target, func(temp string) error { return c.compile(ctx, s, temp) })
	return target, err
}

// Once makes the folder target by filling a temporary one and renaming it: no reader ever
// sees half of it. Of several callers, in this process or others, one does the work.
func (c *Cache) Once(ctx context.Context, target string, fill func(temp string) error) error {
	if exists(target) {
		return nil
	}
	name := filepath.Base(target)
	lock, err := Acquire(ctx, filepath.Join(c.Dir, "locks", name+".lock"), func() {
		c.Log("waiting for another process that builds %s", name)
	})
	if err != nil {
		return err
	}
	defer lock.Release()
	if exists(target) {
		return nil
	}
	return c.fill(target, fill)
}

func (c *Cache) fill(target string, fill func(temp string) error) error {
	parent := filepath.Dir(target)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(parent, ".tmp-"+filepath.Base(target)+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := fill(temp); err != nil {
		return err
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	return os.Rename(temp, target)
}

// compile runs go build into the folder out, with a sign of life for cold builds.
func (c *Cache) compile(ctx context.Context, s Set, out string) error {
	start := time.Now()
	c.Log("building %s (minutes when the Go build cache is cold)", s.Name)
	args := append([]string{"build"}, commonFlags...)
	args = append(args, "-ldflags", s.ldflags(), "-o", out+"/")
	cmd := exec.CommandContext(ctx, "go", append(args, s.Packages...)...)
	cmd.Dir = filepath.Join(c.Root, s.Dir)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	// The compilers are grandchildren: the whole group is told, or they would go on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	stop := c.signOfLife(s.Name, start)
	err := cmd.Run()
	stop()
	if err != nil {
		return fmt.Errorf("go build of %s: %w", s.Name, err)
	}
	for from, to := range s.Rename {
		if err := os.Rename(filepath.Join(out, from), filepath.Join(out, to)); err != nil {
			return err
		}
	}
	c.Log("built %s in %s", strings.Join(programs(out), " "), time.Since(start).Round(time.Second))
	return nil
}

// signOfLife reports every 30 s until the returned function is called.
func (c *Cache) signOfLife(name string, start time.Time) (stop func()) {
	done := make(chan struct{})
	ticker := time.NewTicker(30 * time.Second)
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				c.Log("still building %s, %s so far", name, time.Since(start).Round(time.Second))
			}
		}
	}()
	return func() { close(done) }
}

func programs(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
