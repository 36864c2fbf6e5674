// SPDX-License-Identifier: Apache-2.0

package image

import (
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// certificates are where Debian keeps the authorities that it trusts, and where Go and
// others look for them.
const certificates = "/etc/ssl/certs/ca-certificates.crt"

// User is the numeric user that all our images run as; numeric, so that the kubelet can
// tell that it is not root.
const User = "65532:65532"

// Spec says what an image holds and how it starts.
type Spec struct {
	Platform   v1.Platform
	Entrypoint []string
	Env        []string
	WorkingDir string
	Labels     map[string]string
	// Layers are lists of files, the lowest layer first. What changes least goes there.
	Layers [][]File
}

// Build makes the image.
func Build(spec Spec) (v1.Image, error) {
	base := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	base = mutate.ConfigMediaType(base, types.OCIConfigJSON)
	var additions []mutate.Addendum
	for _, files := range spec.Layers {
		layer, err := NewLayer(files)
		if err != nil {
			return nil, err
		}
		additions = append(additions, mutate.Addendum{
			Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: epoch}},
		})
	}
	image, err := mutate.Append(base, additions...)
	if err != nil {
		return nil, err
	}
	return configure(image, spec)
}

func configure(image v1.Image, spec Spec) (v1.Image, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = spec.Platform.OS, spec.Platform.Architecture, spec.Platform.Variant
	config.Created = v1.Time{Time: epoch}
	config.Config.Entrypoint = spec.Entrypoint
	config.Config.User = User
	config.Config.WorkingDir = spec.WorkingDir
	config.Config.Labels = spec.Labels
	config.Config.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin"}, spec.Env...)
	return mutate.ConfigFile(image, config)
}

// BaseFiles are what every image holds: a user and, if this machine has
// them, the certificate authorities.
func BaseFiles() []File {
	files := []File{
		{Path: "/etc/passwd", Mode: 0o644, Content: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{Path: "/etc/group", Mode: 0o644, Content: []byte("root:x:0:\nnonroot:x:65532:\n")},
	}
	if data, err := os.ReadFile(certificates); err == nil {
		files = append(files, File{Path: certificates, Mode: 0o644, Content: data})
	}
	return files
}

// Programs are the files of a static image: the binary at the entrypoint, and others in
// the form PATH or SOURCE:PATH-IN-IMAGE (without one: at the root under its own name).
func Programs(binary, entrypoint string, extra []string) []File {
	files := []File{{Path: entrypoint, Mode: 0o755, Source: binary}}
	for _, e := range extra {
		source, target, found := strings.Cut(e, ":")
		if !found {
			target = "/" + path.Base(source)
		}
		files = append(files, File{Path: target, Mode: 0o755, Source: source})
	}
	return slices.Clip(files)
}
