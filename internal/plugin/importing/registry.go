// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// registryWait is how long a registry may take to answer.
const registryWait = 15 * time.Second

// inspect asks the image's registry how it starts, with the credentials that
// docker has for it.
func inspect(ctx context.Context, image string) (*start, error) {
	reference, err := name.ParseReference(image)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, registryWait)
	defer cancel()
	found, err := remote.Image(reference, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"}))
	if err != nil {
		return nil, err
	}
	file, err := found.ConfigFile()
	if err != nil {
		return nil, err
	}
	return &start{Entrypoint: file.Config.Entrypoint, Cmd: file.Config.Cmd, User: file.Config.User}, nil
}
