// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// refName is the annotation by which containerd learns an image's name; the other one is
// the standard's, which must hold the tag alone.
const (
	imageName = "io.containerd.image.name"
	refName   = "org.opencontainers.image.ref.name"
)

// Write stores images of one tag, one per platform, as a tarball of an OCI layout: the
// form that keeps digests, and that can hold several platforms.
func Write(path, tag string, images []v1.Image) (v1.Hash, error) {
	reference, err := name.NewTag(tag)
	if err != nil {
		return v1.Hash{}, err
	}
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return v1.Hash{}, err
	}
	defer os.RemoveAll(dir)
	digest, err := writeLayout(dir, reference, images)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("image %s: %w", tag, err)
	}
	return digest, pack(dir, path)
}

func writeLayout(dir string, tag name.Tag, images []v1.Image) (v1.Hash, error) {
	target, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	annotations := layout.WithAnnotations(map[string]string{imageName: tag.Name(), refName: tag.TagStr()})
	if len(images) == 1 {
		if err := target.AppendImage(images[0], annotations); err != nil {
			return v1.Hash{}, err
		}
		return images[0].Digest()
	}
	index, err := Index(images)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := target.AppendIndex(index, annotations); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}

// Index joins the images of several platforms.
func Index(images []v1.Image) (v1.ImageIndex, error) {
	index := empty.Index
	var additions []mutate.IndexAddendum
	for _, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		platform := config.Platform()
		additions = append(additions, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	return mutate.AppendManifests(index, additions...), nil
}

// pack writes the files of a folder into a tarball, in the order of their names.
func pack(dir, path string) error {
	var files []File
	err := filepath.WalkDir(dir, func(source string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inside, err := filepath.Rel(dir, source)
		files = append(files, File{Path: "/" + filepath.ToSlash(inside), Mode: 0o644, Source: source})
		return err
	})
	if err != nil {
		return err
	}
	return create(path, files)
}

// create writes beside the target and renames, so that no reader sees half a tarball.
func create(path string, files []File) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(path), ".tmp-image-")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	if err := writeTar(out, files); err != nil {
		out.Close()
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	if err := os.Chmod(out.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(out.Name(), path)
}
