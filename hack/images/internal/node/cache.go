// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// format changes when the same packages are to give another image.
const format = 2

// Build writes the image to out, from the cache if it was made before.
func Build(ctx context.Context, spec Spec, out string) error {
	if len(spec.Packages) == 0 {
		return errors.New("no package named")
	}
	nodeVersion, err := version()
	if err != nil {
		return err
	}
	cached, err := cachePath(spec, nodeVersion)
	if err != nil {
		return err
	}
	if _, err := os.Stat(cached); err != nil {
		// Two callers may both get here: each writes a file of its own and renames it.
		if err := build(ctx, spec, cached); err != nil {
			return err
		}
	}
	return place(cached, out)
}

func cachePath(spec Spec, nodeVersion string) (string, error) {
	dir := os.Getenv("ESPALIER_CACHE")
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(base, "espalier")
	}
	return filepath.Join(dir, "images", "node-"+key(spec, nodeVersion)+".tar"), nil
}

func key(spec Spec, nodeVersion string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s %q %q %q", format, runtime.GOARCH, nodeVersion, spec.Packages, spec.Command, spec.Tag))
	return hex.EncodeToString(sum[:8])
}

// place makes out a copy of the cached tarball, by a hard link where possible.
func place(cached, out string) error {
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	if err := os.Remove(out); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if os.Link(cached, out) == nil {
		return nil
	}
	return copyFile(cached, out)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
