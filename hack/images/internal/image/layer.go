// SPDX-License-Identifier: Apache-2.0

// Package image puts programs into container images without a container engine. The same
// input gives the same bytes: no clock, no user name, no order of a folder gets in.
package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// epoch is the time of every file and of the image itself.
var epoch = time.Unix(0, 0).UTC()

// File is one entry of a layer.
type File struct {
	// Path is absolute.
	Path string
	// Mode holds the permission bits.
	Mode int64
	// Source is a file on this machine; else Content or Link is used.
	Source string
	// Content is what the file holds.
	Content []byte
	// Link makes it a symbolic link to this target.
	Link string
}

// NewLayer makes a layer of the files and the folders that they need. It is compressed
// lightly: most images are loaded on the same machine, where time matters more than size.
func NewLayer(files []File) (v1.Layer, error) {
	var buffer bytes.Buffer
	if err := writeTar(&buffer, files); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithCompressionLevel(1))
}

func writeTar(w io.Writer, files []File) error {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	archive := tar.NewWriter(w)
	made := map[string]bool{}
	for _, file := range files {
		if err := writeParents(archive, path.Dir(file.Path), made); err != nil {
			return err
		}
		if err := writeEntry(archive, file); err != nil {
			return fmt.Errorf("%s: %w", file.Path, err)
		}
	}
	return archive.Close()
}

// writeParents writes the folders above a file, each once.
func writeParents(archive *tar.Writer, dir string, made map[string]bool) error {
	if dir == "/" || dir == "." || made[dir] {
		return nil
	}
	if err := writeParents(archive, path.Dir(dir), made); err != nil {
		return err
	}
	made[dir] = true
	return archive.WriteHeader(&tar.Header{
		Typeflag: tar.TypeDir, Name: relative(dir) + "/", Mode: 0o755, ModTime: epoch, Format: tar.FormatPAX,
	})
}

func writeEntry(archive *tar.Writer, file File) error {
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: relative(file.Path), Mode: file.Mode, ModTime: epoch, Format: tar.FormatPAX,
	}
	if file.Link != "" {
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, file.Link, 0o777
		return archive.WriteHeader(header)
	}
	content := file.Content
	if file.Source != "" {
		data, err := os.ReadFile(file.Source)
		if err != nil {
			return err
		}
		content = data
	}
	header.Size = int64(len(content))
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write(content)
	return err
}

func relative(p string) string { return strings.TrimPrefix(path.Clean(p), "/") }
