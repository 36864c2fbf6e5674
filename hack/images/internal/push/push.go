// SPDX-License-Identifier: Apache-2.0

// Package push sends an image tarball to a registry.
package push

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push sends the only image or index of the tarball to target, with the credentials of
// the environment (Docker's config file and its helpers). Registries on localhost are
// spoken to without TLS.
func Push(ctx context.Context, tarball, target string) (v1.Hash, error) {
	reference, err := name.ParseReference(target)
	if err != nil {
		return v1.Hash{}, err
	}
	dir, err := os.MkdirTemp("", "push-")
	if err != nil {
		return v1.Hash{}, err
	}
	defer os.RemoveAll(dir)
	if err := unpack(tarball, dir); err != nil {
		return v1.Hash{}, fmt.Errorf("%s: %w", tarball, err)
	}
	return pushLayout(ctx, dir, reference)
}

func pushLayout(ctx context.Context, dir string, reference name.Reference) (v1.Hash, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return v1.Hash{}, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return v1.Hash{}, err
	}
	if len(manifest.Manifests) != 1 {
		return v1.Hash{}, fmt.Errorf("holds %d images, not one", len(manifest.Manifests))
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	only := manifest.Manifests[0]
	if only.MediaType.IsIndex() {
		child, err := index.ImageIndex(only.Digest)
		if err != nil {
			return v1.Hash{}, err
		}
		return only.Digest, remote.WriteIndex(reference, child, options...)
	}
	child, err := index.Image(only.Digest)
	if err != nil {
		return v1.Hash{}, err
	}
	return only.Digest, remote.Write(reference, child, options...)
}

// unpack extracts a tarball of an OCI layout, of which only plain files are of interest.
func unpack(tarball, dir string) error {
	file, err := os.Open(tarball)
	if err != nil {
		return err
	}
	defer file.Close()
	archive := tar.NewReader(file)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := extract(archive, dir, header.Name); err != nil {
			return err
		}
	}
}

func extract(archive io.Reader, dir, inside string) error {
	if !filepath.IsLocal(inside) {
		return fmt.Errorf("path %q leaves the layout", inside)
	}
	target := filepath.Join(dir, inside)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	out, err := os.Create(target)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, archive); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
